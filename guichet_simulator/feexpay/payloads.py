"""The JSON that FeexPay sends about a transaction (docs/providers/feexpay.md)."""

from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import Instant, iso
from guichet_simulator.feexpay.networks import NETWORKS
from guichet_simulator.http_helpers import units
from guichet_simulator.models import PENDING, SUCCEEDED, Transaction

#: A reason of a scenario → the `reason` of a failed transaction.
REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED",
    "payer_not_found": "PAYER_NOT_FOUND",
    "rejected_by_payer": "APPROVAL_REJECTED",
    "expired": "EXPIRED",
    "declined": "CARD_DECLINED",
}

#: A state or a claim → the `status`.
STATES: Final[Mapping[str, str]] = {
    "pending": "PENDING",
    "succeeded": "SUCCESSFUL",
    "failed": "FAILED",
    "expired": "FAILED",
}


def callback_info_text(callback_info: object) -> str | None:
    return None if callback_info is None else str(callback_info)


def echoed_fields(body: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a request that responses and callbacks repeat."""
    names = ("first_name", "last_name", "email", "description", "motif")
    return {name: str(body[name]) for name in names if body.get(name)}


def network_label(tx: Transaction) -> str:
    return NETWORKS[tx.operator].label if tx.operator in NETWORKS else tx.operator


def initiation_payload(tx: Transaction, *, final: bool) -> dict[str, Any]:
    """The response to a payin. Only some networks state a final status in it; Moov Bénin does."""
    page = tx.detail.get("page_url")
    payload = {
        "reference": tx.ref,
        "transref": tx.ref,
        "status": STATES[tx.state] if final else "PENDING",
        "message": "Accepted",
        "amount": tx.amount // 100,
        "description": tx.detail["body"].get("description", ""),
        "callback_info": tx.client_ref,
        "phoneNumber": tx.phone,
    }
    return payload | ({"payment_url": page} if page else {})


def transaction_payload(tx: Transaction, status: str | None = None) -> dict[str, Any]:
    """The response to a status call; `status` states another one than the true one."""
    stated = status or STATES[tx.state]
    payload = {
        "reference": tx.ref,
        "transref": tx.ref,
        "serviceref": tx.ref,
        "amount": units(tx.stated_amount),
        "phoneNumber": tx.phone,
        "status": stated,
        "callback_info": tx.client_ref,
        "responsecode": stated,
        "responsemsg": stated,
        "reason": REASONS.get(tx.reason, "") if stated == "FAILED" else "",
        "comment": "",
        "description": tx.detail["body"].get("description", tx.detail["body"].get("motif", "")),
        "operator_id": _operator_id(tx) if stated == "SUCCESSFUL" else "",
        "date": iso(tx.decided_at or tx.created_at),
    }
    if tx.stated_amount is None:
        del payload["amount"]
    return payload


def callback_payload(tx: Transaction, status: str, now: Instant) -> dict[str, Any]:
    stated = transaction_payload(tx, status)
    return {
        "reference": tx.ref,
        "order_id": tx.ref,
        "status": stated["status"],
        "amount": stated.get("amount"),
        "callback_info": tx.client_ref,
        "type": "Paiement" if tx.kind == "debit" else "Payout",
        "reseau": network_label(tx),
        "phoneNumber": tx.phone,
        "date": iso(now),
        "description": stated["description"],
        "reason": stated["reason"],
        "ref_operator": stated["operator_id"],
    } | {name: tx.detail["body"].get(name, "") for name in ("first_name", "last_name", "email")}


def history_row(tx: Transaction) -> dict[str, Any]:
    return {
        "reference": tx.ref,
        "type": "PAYMENT_API" if tx.kind == "debit" else "PAYOUT_API",
        "status": STATES[tx.state],
        "amount": units(tx.stated_amount),
        "reseau": network_label(tx),
        "phone_number": tx.phone,
        "financial_transaction_id": _operator_id(tx) if tx.state == SUCCEEDED else "",
        "custom_id": "",
        "description": tx.detail["body"].get("description", ""),
        "callback_info": tx.client_ref,
        "reason": "" if tx.state in (PENDING, SUCCEEDED) else REASONS.get(tx.reason, ""),
        "date": iso(tx.created_at),
    }


def _operator_id(tx: Transaction) -> str:
    return str(9_000_000_000 + tx.id)
