"""The JSON that Wave sends: sessions, payouts, errors (docs/providers/wave.md)."""

from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import MINUTE, Instant, iso, later, whole_second
from guichet.domain import money
from guichet_simulator.http_helpers import ErrorResponse
from guichet_simulator.models import Claim, Fees, Transaction, by_state

LIFETIME_MINUTES: Final = 30
#: Percent of the amount that Wave keeps.
FEES: Final[Fees] = {"debit": 1}
#: Items of a page, unless the request says otherwise.
_PAGE: Final = 100
EVENTS: Final[Mapping[str, str]] = {
    "succeeded": "checkout.session.completed",
    "attempt_failed": "checkout.session.payment_failed",
}
#: A state or a claim → `checkout_status` and `payment_status`.
_STATES: Final = by_state(
    pending=("open", "processing"),
    succeeded=("complete", "succeeded"),
    failed=("open", "cancelled"),
    expired=("expired", "cancelled"),
)
_PAYOUT_STATES: Final = by_state(pending="processing", succeeded="succeeded", failed="failed", expired="failed")
REASONS: Final[Mapping[str | None, str]] = {
    "insufficient_funds": "insufficient-funds",
    "payer_not_found": "blocked-account",
    "limit_reached": "kyb-limits-exceeded",
}


def error(status: int, code: str, headers: Mapping[str, str] | None = None) -> ErrorResponse:
    return ErrorResponse(status, {"code": code, "message": code.replace("-", " ").capitalize()}, headers or {})


def session_object(tx: Transaction, claim: Claim | None = None) -> dict[str, Any]:
    """A session; `claim` states another state than the true one."""
    checkout, payment = _STATES.get(claim or tx.state, _STATES["pending"])
    done = payment == "succeeded"
    failure = tx.detail.get("last_error")
    code = REASONS.get(failure, "payment-failure")
    return {
        "id": tx.ref,
        "amount": None if tx.stated_amount is None else money.plain(tx.stated_amount),
        "checkout_status": checkout,
        "client_reference": tx.client_ref,
        "currency": tx.stated_currency,
        "error_url": tx.detail["cancel_url"],
        "last_payment_error": {"code": code, "message": code.replace("-", " ")} if failure and not done else None,
        "business_name": "Simulateur",
        "payment_status": payment,
        "transaction_id": tx.detail["transaction_id"] if done else None,
        "aggregated_merchant_id": tx.detail["aggregated_merchant_id"],
        "success_url": tx.detail["success_url"],
        "wave_launch_url": tx.detail["page_url"],
        "when_completed": second(tx.decided_at) if done and tx.decided_at else None,
        "when_created": second(tx.created_at),
        "when_expires": second(later(tx.created_at, LIFETIME_MINUTES * MINUTE)),
    }


def second(instant: Instant) -> str:
    return iso(whole_second(instant))[:19] + "Z"


def payout_object(tx: Transaction) -> dict[str, Any]:
    status = _PAYOUT_STATES[tx.state]
    payload: dict[str, Any] = {
        "id": tx.ref,
        "currency": tx.stated_currency,
        "receive_amount": None if tx.stated_amount is None else money.plain(tx.stated_amount),
        "fee": "0",
        "mobile": f"+{tx.phone}",
        "client_reference": tx.client_ref,
        "status": status,
        "timestamp": second(tx.created_at),
    }
    if status == "failed":
        payload["payout_error"] = {"error_code": "recipient-limit-exceeded", "error_message": "Limit exceeded"}
    return payload


def page_of(rows: Mapping[str, dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """One page of `rows`, which are keyed by their cursors: at most `first` of those that come after `after`."""
    cursors, after = list(rows), query.get("after")
    start = cursors.index(after) + 1 if after in cursors else 0
    first = query.get("first", "")
    page = cursors[start : start + (int(first) if first.isdecimal() else _PAGE)]
    more = bool(page) and page[-1] != cursors[-1]
    info = {"start_cursor": after, "end_cursor": page[-1] if page else None, "has_next_page": more}
    return {"page_info": info, "items": [rows[cursor] for cursor in page]}
