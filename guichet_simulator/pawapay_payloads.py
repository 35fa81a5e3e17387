"""How pawaPay words a deposit, a refund or a payout, in answers and in callbacks alike (docs/providers/pawapay.md)."""

from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import SECOND, iso
from guichet_simulator.pawapay_providers import PROVIDERS
from guichet_simulator.store import PENDING, Transaction

CREDITS: Final = ("refund", "payout")
#: Seconds after which an accepted operation is being processed, and a stuck one is being reconciled.
_PROCESSING_AFTER: Final = 1
_RECONCILED_AFTER: Final = 3

REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "INSUFFICIENT_BALANCE",
    "payer_not_found": "PAYER_NOT_FOUND",
    "rejected_by_payer": "PAYMENT_NOT_APPROVED",
    "expired": "PAYMENT_NOT_APPROVED",
    "limit_reached": "PAYER_LIMIT_REACHED",
}
_CREDIT_REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "WALLET_LIMIT_REACHED",
    "payer_not_found": "RECIPIENT_NOT_FOUND",
    "limit_reached": "WALLET_LIMIT_REACHED",
    "cancelled_by_hand": "MANUALLY_CANCELLED",
}


def failure(code: str) -> dict[str, object]:
    return {"failureReason": {"failureCode": code, "failureMessage": code.replace("_", " ").capitalize()}}


def words_of(tx: Transaction, now: int) -> str:
    """The status as pawaPay calls it."""
    if tx.state != PENDING:
        return {"succeeded": "COMPLETED"}.get(tx.state, "FAILED")
    age = (now - tx.created_at) / SECOND
    stuck = tx.scenario in ("never_final", "pending_long")
    if tx.kind == "credit" and stuck:
        return "ENQUEUED"
    if stuck and age > _RECONCILED_AFTER:
        return "IN_RECONCILIATION"
    return "PROCESSING" if age > _PROCESSING_AFTER else "ACCEPTED"


def shown(tx: Transaction, now: int, claim: str | None = None) -> dict[str, Any]:
    """The `data` object; `claim` states another end than the true one."""
    claimed = {"succeeded": "COMPLETED", "failed": "FAILED", "expired": "FAILED", "processing": "PROCESSING"}
    status = claimed[claim] if claim in claimed else words_of(tx, now)
    what = tx.detail["what"]
    account = {"type": "MMO", "accountDetails": {"phoneNumber": tx.phone, "provider": tx.operator}}
    data: dict[str, Any] = {
        f"{what}Id": tx.ref,
        "status": status,
        "currency": tx.shown_currency,
        "country": PROVIDERS[tx.operator].country,
        "recipient" if tx.kind == "credit" else "payer": account,
        "customerMessage": tx.detail.get("message"),
        "clientReferenceId": tx.client_ref,
        "created": iso(tx.created_at),
        "metadata": tx.detail["metadata"],
    }
    if tx.shown_amount is not None:
        data["amount"] = f"{tx.shown_amount // 100}.{tx.shown_amount % 100:02d}"
    if what == "refund":
        data["depositId"] = tx.detail["depositId"]
    if status == "COMPLETED":
        data["providerTransactionId"] = str(8_000_000_000 + tx.id)
    if status == "FAILED":
        names = REASONS if tx.kind == "debit" else _CREDIT_REASONS
        data |= failure(names.get(tx.reason, "UNSPECIFIED_FAILURE"))
    return data | _page(tx, status, now)


def _page(tx: Transaction, status: str, now: int) -> dict[str, str]:
    """Where the customer confirms, once the provider has told."""
    page = tx.detail.get("page_url")
    if not page or status in ("COMPLETED", "FAILED"):
        return {}
    if now - tx.created_at < SECOND // 2:
        return {"nextStep": "GET_AUTH_URL"}
    return {"nextStep": "REDIRECT_TO_AUTH_URL", "authorizationUrl": page}
