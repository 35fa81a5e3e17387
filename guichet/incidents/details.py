"""What an incident is about: rows of `incidents` keep it, `guichet incidents` and the back office show it.

`answer`: what the provider said. `bank_reason`: why a customer contests a payment, in the provider's word."""

from guichet.domain.sentences import Sentences


class IncidentDetail(Sentences):
    STUCK = "pending for more than 72 hours"
    NO_AMOUNT = "asked {asked:money}, the provider states no amount"
    OTHER_AMOUNT = "asked {asked:money}, the provider states {stated:money}"
    CONTRADICTED = "the provider says otherwise now: {total:money}; see `guichet late-money list`"
    RETURN_STUCK = "the way back to the payer has no end for 72 hours: see `guichet late-money`"
    RETURN_FLOAT_EMPTY = "the payer could not be paid back: our balance with the provider is empty; decide again"
    RETURN_REFUSED = "the payer could not be paid back: refused; decide again"
    RETURN_FAILED = "the payer could not be paid back: {answer}; decide again"
    PAYEE_UNCONFIRMED = "no provider states who paid: confirm the number that gets {total:money} back"
    FLOAT_EMPTY = "the balance with {account:word} does not cover this refund of {total:money}"
    BANK_ASKS = "the bank asks about it ({bank_reason}); nothing was taken back"
    BANK_TOOK = "the bank took {total:money} back ({bank_reason}); answer the provider"
    DISPUTE_LOST = "the dispute about {total:money} is lost: `guichet dispute resolve`"
    MERCHANT_UNKNOWN = (
        "{account:word} has no id of this merchant: `guichet providers setup wave-merchants --account {name:word}`"
    )
    NOT_SERVED = "{operator:word}: no account serves it"
    MISCONFIGURED = "{operator:word}: {answer}"
