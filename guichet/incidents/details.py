"""What an incident is about: rows of `incidents` keep it, `guichet incidents` and the back office show it.

`answer`: what the provider said. `bank_reason`: why a customer contests a payment, in the provider's word."""

from guichet.domain.messages import Code


class IncidentDetail(Code):
    STUCK = "incident_detail.stuck"
    NO_AMOUNT = "incident_detail.no_amount", "asked"
    OTHER_AMOUNT = "incident_detail.other_amount", "asked", "stated"
    CONTRADICTED = "incident_detail.contradicted", "total"
    RETURN_STUCK = "incident_detail.return_stuck"
    RETURN_FLOAT_EMPTY = "incident_detail.return_float_empty"
    RETURN_REFUSED = "incident_detail.return_refused"
    RETURN_FAILED = "incident_detail.return_failed", "answer"
    PAYEE_UNCONFIRMED = "incident_detail.payee_unconfirmed", "total"
    FLOAT_EMPTY = "incident_detail.float_empty", "account", "total"
    BANK_ASKS = "incident_detail.bank_asks", "bank_reason"
    BANK_TOOK = "incident_detail.bank_took", "total", "bank_reason"
    DISPUTE_LOST = "incident_detail.dispute_lost", "total"
    MERCHANT_UNKNOWN = "incident_detail.merchant_unknown", "account", "name"
    NOT_SERVED = "incident_detail.not_served", "operator"
    MISCONFIGURED = "incident_detail.misconfigured", "operator", "answer"
