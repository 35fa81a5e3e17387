"""How FeexPay words a transaction: in answers, in the history, in notifications (docs/providers/feexpay.md)."""

from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import iso
from guichet_simulator.base import units
from guichet_simulator.feexpay_networks import NETWORKS
from guichet_simulator.store import PENDING, SUCCEEDED, Transaction

#: Our reasons in the operators' words, as `reason` of a failed transaction shows them.
REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED",
    "payer_not_found": "PAYER_NOT_FOUND",
    "rejected_by_payer": "APPROVAL_REJECTED",
    "expired": "EXPIRED",
    "declined": "CARD_DECLINED",
}

STATES: Final = {"pending": "PENDING", "succeeded": "SUCCESSFUL", "failed": "FAILED", "expired": "FAILED"}


def echo(callback_info: object) -> str | None:
    return None if callback_info is None else str(callback_info)


def kept(body: Mapping[str, Any]) -> dict[str, str]:
    """What comes back in answers and notifications; the code does not."""
    names = ("first_name", "last_name", "email", "description", "motif")
    return {name: str(body[name]) for name in names if body.get(name)}


def label(tx: Transaction) -> str:
    return NETWORKS[tx.operator].label if tx.operator in NETWORKS else tx.operator


def taken(tx: Transaction, *, final: bool) -> dict[str, Any]:
    """The answer to an initiation. Only some networks state the end of it there (Moov Bénin does)."""
    page = tx.detail.get("page_url")
    answer = {
        "reference": tx.ref,
        "transref": tx.ref,
        "status": STATES[tx.state] if final else "PENDING",
        "message": "Accepted",
        "amount": tx.amount // 100,
        "description": tx.detail["body"].get("description", ""),
        "callback_info": tx.client_ref,
        "phoneNumber": tx.phone,
    }
    return answer | ({"payment_url": page} if page else {})


def shown(tx: Transaction, status: str | None = None) -> dict[str, Any]:
    stated = status or STATES[tx.state]
    done = stated == "SUCCESSFUL"
    answer = {
        "reference": tx.ref,
        "transref": tx.ref,
        "serviceref": tx.ref,
        "amount": units(tx.shown_amount),
        "phoneNumber": tx.phone,
        "status": stated,
        "callback_info": tx.client_ref,
        "responsecode": stated,
        "responsemsg": stated,
        "reason": REASONS.get(tx.reason, "") if stated == "FAILED" else "",
        "comment": "",
        "description": tx.detail["body"].get("description", tx.detail["body"].get("motif", "")),
        "operator_id": str(9_000_000_000 + tx.id) if done else "",
        "date": iso(tx.decided_at or tx.created_at),
    }
    if tx.shown_amount is None:
        del answer["amount"]
    return answer


def history_row(tx: Transaction) -> dict[str, Any]:
    return {
        "reference": tx.ref,
        "type": "PAYMENT_API" if tx.kind == "debit" else "PAYOUT_API",
        "status": STATES[tx.state],
        "amount": units(tx.shown_amount),
        "reseau": label(tx),
        "phone_number": tx.phone,
        "financial_transaction_id": str(9_000_000_000 + tx.id) if tx.state == SUCCEEDED else "",
        "custom_id": "",
        "description": tx.detail["body"].get("description", ""),
        "callback_info": tx.client_ref,
        "reason": "" if tx.state in (PENDING, SUCCEEDED) else REASONS.get(tx.reason, ""),
        "date": iso(tx.created_at),
    }
