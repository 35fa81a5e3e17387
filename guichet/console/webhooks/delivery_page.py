"""One delivery: the request as it is sent, each attempt with what the receiver answered, and sending it again."""

from typing import Any

from starlette.responses import Response

from guichet.accounts.rights import Member
from guichet.console.visit import Visit
from guichet.console.webhooks.delivery_list import delivery_of
from guichet.domain.audit_log import ActRefused
from guichet.domain.events import MAX_ATTEMPTS, Delivery
from guichet.printable import printable
from guichet.webhooks import deliveries
from guichet.webhooks.deliveries import PastAttempt, past_attempts
from guichet.webhooks.resend import resend
from guichet.webhooks.sender import SIGNATURE, headers_of


async def show(visit: Visit, acting: Member) -> Response:
    return await _page(visit, acting, await _named(visit, acting))


async def change(visit: Visit, acting: Member) -> Response:
    """Sends it again, with the same id and the same bytes."""
    await visit.form()
    delivery = await _named(visit, acting)
    ctx = visit.console.ctx
    acting.require("webhooks.resend", ctx.clock.now())
    try:
        await resend(ctx.db, ctx.clock, delivery, acting.actor)
    except ActRefused:
        fault = visit.text("webhooks.not_resent")
        return await _page(visit, acting, await _named(visit, acting), 409, fault)
    ctx.wakeups.deliveries.set()
    return visit.redirect(visit.here(f"/webhooks/deliveries/{delivery.reference}"))


async def _named(visit: Visit, acting: Member) -> Delivery:
    return await delivery_of(visit, acting, visit.request.path_params["reference"])


async def _page(visit: Visit, acting: Member, delivery: Delivery, status: int = 200, fault: Any = None) -> Response:
    references = await deliveries.payment_references(visit.console.ctx.db, [delivery])
    return visit.show(
        "webhooks/delivery.html",
        status,
        fault=fault,
        delivery=delivery,
        payment=references.get(delivery.payment_id) if delivery.payment_id else None,
        headers=headers_of(delivery),
        signature=SIGNATURE,
        most=MAX_ATTEMPTS,
        attempts=[_described(attempt) for attempt in reversed(past_attempts(delivery.history))],
        may_resend=acting.may("webhooks.resend") and delivery.status != "pending",
    )


def _described(attempt: PastAttempt) -> dict[str, Any]:
    """The answer is what a stranger's server chose to say: without characters that hide or reorder others."""
    return {
        "at": attempt.ended_at,
        "ms": round(attempt.duration / 1000),
        "status": attempt.response_code,
        "error": attempt.error,
        "answer": printable(attempt.answer, keep="\n\t"),
        "cut": attempt.cut,
    }
