"""MTN's environments, its sandbox numbers, and the JSON it sends (docs/providers/mtn.md)."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from guichet.domain import money
from guichet_simulator.http_helpers import ErrorResponse
from guichet_simulator.models import Transaction


class Environment(NamedTuple):
    """What a target environment serves."""

    operator: str
    currency: str


ENVIRONMENTS: Final = {
    "mtnbenin": Environment("mtn", "XOF"),
    "mtnivorycoast": Environment("mtn_ci", "XOF"),
    "mtncongo": Environment("mtn_cg", "XAF"),
    "sandbox": Environment("sandbox", "EUR"),
}
#: A state or a claim → the `status`.
STATES: Final[Mapping[str, str]] = {
    "pending": "PENDING",
    "succeeded": "SUCCESSFUL",
    "failed": "FAILED",
    "expired": "FAILED",
}
#: A reason of a scenario → the `reason` of a failed debit.
REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "NOT_ENOUGH_FUNDS",
    "payer_not_found": "PAYER_NOT_FOUND",
    "rejected_by_payer": "APPROVAL_REJECTED",
    "expired": "EXPIRED",
}
_CREDIT_REASONS: Final[Mapping[str | None, str]] = {
    **REASONS,
    "insufficient_funds": "PAYEE_LIMIT_REACHED",
    "payer_not_found": "PAYEE_NOT_FOUND",
}
#: The numbers of MTN's own sandbox (docs/providers/mtn.md, "Sandbox") → the scenario.
SANDBOX_NUMBERS: Final = {
    "46733123450": "declined",
    "46733123451": "rejected",
    "46733123452": "expires",
    "46733123453": "succeeds_late",
    "46733123454": "never_final",
    "46733123455": "refused",
    "46733123458": "not_configured",
    "46733123461": "error_500_not_stored",
    "46733123462": "unavailable",
    "46733123463": "expires",
}


def error(status: int, code: str) -> ErrorResponse:
    return ErrorResponse(status, {"code": code, "message": code.replace("_", " ").capitalize()})


def transaction_payload(tx: Transaction, status: str | None = None) -> dict[str, Any]:
    """The response to a status call, and a callback; `status` states another one than the true one."""
    stated = status or STATES[tx.state]
    party = "payer" if tx.kind == "debit" else "payee"
    payload: dict[str, Any] = {
        "externalId": tx.detail["externalId"],
        "currency": tx.stated_currency,
        party: {"partyIdType": "MSISDN", "partyId": tx.phone},
        "payerMessage": tx.detail["payerMessage"],
        "payeeNote": tx.detail["payeeNote"],
        "status": stated,
    }
    if tx.stated_amount is not None:
        payload["amount"] = money.plain(tx.stated_amount)
    if stated == "SUCCESSFUL":
        payload["financialTransactionId"] = str(7_000_000_000 + tx.id)
    if stated == "FAILED":
        reasons = REASONS if tx.kind == "debit" else _CREDIT_REASONS
        payload["reason"] = reasons.get(tx.reason, "INTERNAL_PROCESSING_ERROR")
    return payload
