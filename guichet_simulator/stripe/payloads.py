"""Stripe's objects, events and errors (docs/providers/stripe.md)."""

from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import SECOND, Instant
from guichet.domain import money
from guichet_simulator.http_helpers import ErrorResponse, smallest_unit
from guichet_simulator.models import EXPIRED, FAILED, SUCCEEDED, Claim, QueuedCallback, Transaction, by_state

API_VERSION: Final = "2026-10-28.endive"
#: By whether the money came in.
_CENTS_FOR_A_FRANC: Final = {True: 0.1524, False: 0.1539}
#: A state or a claim → `status` and `payment_status`. A declined card leaves the session open.
_STATES: Final = by_state(
    pending=("open", "unpaid"), succeeded=("complete", "paid"), failed=("open", "unpaid"), expired=("expired", "unpaid")
)
_SESSION_EVENTS: Final[Mapping[str, str]] = {
    "succeeded": "checkout.session.completed",
    "expired": "checkout.session.expired",
    "failed": "checkout.session.async_payment_failed",
    "attempt_failed": "payment_intent.payment_failed",
}
_REFUND_STATES: Final = by_state(pending="pending", succeeded="succeeded", failed="failed", expired="canceled")
_REFUND_EVENTS: Final[Mapping[str, str]] = {
    "created": "refund.created",
    "succeeded": "refund.updated",
    "failed": "refund.failed",
    "expired": "refund.updated",
}


def error(
    status: int,
    kind: str,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> ErrorResponse:
    """`kind` is Stripe's `type`; `param` the parameter that is wrong."""
    body = {"type": kind, "message": message}
    body |= {name: value for name, value in (("code", code), ("param", param)) if value}
    return ErrorResponse(status, {"error": body}, headers or {})


def invalid_request(message: str, *, code: str | None = None, param: str | None = None) -> ErrorResponse:
    return error(400, "invalid_request_error", message, code=code, param=param)


def missing(resource: str, ref: str) -> ErrorResponse:
    message = f"No such {resource}: '{ref}'"
    return error(404, "invalid_request_error", message, code="resource_missing", param="id")


def hundredths(smallest: int, currency: str) -> int:
    """An amount in the smallest unit of the currency, in hundredths."""
    return smallest if money.DECIMALS[currency] else smallest * 100


def session_object(tx: Transaction, claim: Claim | None = None) -> dict[str, Any]:
    """A session; `claim` states another state than the true one."""
    status, payment = _STATES.get(claim or tx.state, _STATES["pending"])
    return {
        "id": tx.ref,
        "object": "checkout.session",
        "amount_total": smallest_unit(tx.stated_amount, tx.currency),
        "cancel_url": tx.detail["cancel_url"],
        "client_reference_id": tx.client_ref,
        "created": tx.created_at // SECOND,
        "currency": (tx.stated_currency or "").lower(),
        "expires_at": tx.detail["expires_at"],
        "livemode": tx.detail["live"],
        "metadata": tx.detail["metadata"],
        "mode": "payment",
        "payment_intent": tx.detail["payment_intent"] if payment == "paid" else None,
        "payment_status": payment,
        "status": status,
        "success_url": tx.detail["success_url"],
        "url": tx.detail["page_url"] if status == "open" else None,
    }


def refund_object(tx: Transaction, claim: Claim | None = None) -> dict[str, Any]:
    status = _REFUND_STATES.get(claim or tx.state, "pending")
    payload = {
        "id": tx.ref,
        "object": "refund",
        "amount": smallest_unit(tx.stated_amount, tx.currency),
        "created": tx.created_at // SECOND,
        "currency": (tx.stated_currency or "").lower(),
        "metadata": {"reference": tx.client_ref},
        "payment_intent": tx.detail["payment_intent"],
        "status": status,
    }
    why_pending = "insufficient_funds" if tx.detail.get("kept") else "processing"
    why = {"failed": {"failure_reason": "insufficient_funds"}, "pending": {"pending_reason": why_pending}}
    return payload | why.get(status, {})


def dispute_object(tx: Transaction, *, expanded: bool = False) -> dict[str, Any]:
    """The dispute about a debit. `expanded`: with the payment intent instead of its id."""
    dispute, intent = tx.detail["dispute"], tx.detail["payment_intent"]
    return {
        "id": dispute["id"],
        "object": "dispute",
        "amount": dispute["amount"],
        "charge": f"ch_{intent[3:]}",
        "created": dispute["created"],
        "currency": tx.currency.lower(),
        "evidence_details": {"due_by": dispute["created"] + 7 * 86_400, "has_evidence": False, "submission_count": 0},
        "livemode": tx.detail["live"],
        "metadata": {},
        "payment_intent": {"id": intent, "object": "payment_intent", "metadata": tx.detail["intent_metadata"]}
        if expanded
        else intent,
        "reason": dispute["reason"],
        "status": dispute["status"],
    }


def event_payload(tx: Transaction, queued: QueuedCallback, created: int) -> dict[str, Any] | None:
    """The event to send for a claim; None when Stripe sends none. Repeats have the same identifier."""
    names = _SESSION_EVENTS if tx.kind == "debit" else _REFUND_EVENTS
    if queued.claim == "disputed":
        closed = tx.detail["dispute"]["status"] in ("won", "lost", "prevented")
        names = {"disputed": "charge.dispute.closed" if closed else "charge.dispute.created"}
    if queued.claim not in names:
        return None
    if queued.claim == "disputed":
        subject = dispute_object(tx)
    elif tx.kind == "credit":
        subject = refund_object(tx, queued.claim)
    elif queued.claim == "attempt_failed":
        subject = _failed_intent(tx)
    else:
        subject = session_object(tx, queued.claim)
    return {
        "id": f"evt_{queued.event_id[:24]}",
        "object": "event",
        "api_version": API_VERSION,
        "created": created,
        "livemode": tx.detail["live"],
        "type": names[queued.claim],
        "data": {"object": subject},
    }


def _failed_intent(tx: Transaction) -> dict[str, Any]:
    funds = tx.detail.get("last_error") == "insufficient_funds"
    error = {
        "type": "card_error",
        "code": "card_declined",
        "decline_code": "insufficient_funds" if funds else "generic_decline",
    }
    return {**intent_object(tx), "last_payment_error": error, "status": "requires_payment_method"}


def intent_object(tx: Transaction) -> dict[str, Any]:
    """The payment intent of a session. It has metadata of its own, and none of the session's."""
    intent, paid = str(tx.detail["payment_intent"]), tx.state == SUCCEEDED
    return {
        "id": intent,
        "object": "payment_intent",
        "amount": smallest_unit(tx.amount, tx.currency),
        "currency": tx.currency.lower(),
        "latest_charge": f"ch_{intent[3:]}" if paid else None,
        "livemode": tx.detail["live"],
        "metadata": tx.detail["intent_metadata"],
        "status": "succeeded" if paid else "requires_payment_method",
    }


def charge_object(tx: Transaction) -> dict[str, Any]:
    """What a paid session charged, with the metadata of its payment intent."""
    intent = str(tx.detail["payment_intent"])
    return {
        "id": f"ch_{intent[3:]}",
        "object": "charge",
        "amount": smallest_unit(tx.amount, tx.currency),
        "currency": tx.currency.lower(),
        "livemode": tx.detail["live"],
        "metadata": tx.detail["intent_metadata"],
        "payment_intent": intent,
        "status": "succeeded",
    }


def balance_movements(tx: Transaction, held_in: str) -> list[dict[str, Any]]:
    """The balance transactions of a session or a refund, each with its source. A refund leaves the balance when it is
    made, and comes back when it fails. `held_in`: the currency of the balance, "" for that of the transaction."""
    return [_converted(row, held_in) if held_in else row for row in _movements(tx)]


def _converted(row: dict[str, Any], held_in: str) -> dict[str, Any]:
    """At the rate of the moment, which is another one for what goes back; a charge costs a fee."""
    rate = _CENTS_FOR_A_FRANC[row["amount"] > 0]
    amount = round(row["amount"] * rate)
    fee = amount // 50 if row["type"] == "charge" else 0
    exchanged = {"amount": amount, "fee": fee, "net": amount - fee, "exchange_rate": rate / 100}
    return {**row, **exchanged, "currency": held_in.lower()}


def _movements(tx: Transaction) -> list[dict[str, Any]]:
    if tx.kind == "debit":
        charged = tx.state == SUCCEEDED
        return [_movement(tx, "charge", tx.decided_at or tx.created_at, charge_object(tx), 1)] if charged else []
    refund = {**refund_object(tx), "charge": f"ch_{tx.detail['payment_intent'][3:]}"}
    if not tx.detail.get("ours", True):
        refund["metadata"] = {}
    made = [_movement(tx, "refund", tx.created_at, refund, -1)]
    failed = tx.state in (FAILED, EXPIRED)
    return [*made, _movement(tx, "refund_failure", tx.decided_at or tx.created_at, refund, 1)] if failed else made


def _movement(tx: Transaction, kind: str, at: Instant, source: Mapping[str, Any], sign: int) -> dict[str, Any]:
    amount = sign * (smallest_unit(tx.amount, tx.currency) or 0)
    return {
        "id": f"txn_{tx.id}_{kind}",
        "object": "balance_transaction",
        "amount": amount,
        "created": at // SECOND,
        "currency": tx.currency.lower(),
        "fee": 0,
        "net": amount,
        "reporting_category": kind,
        "source": source,
        "status": "available",
        "type": kind,
    }
