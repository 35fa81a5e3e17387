"""One delivery: the request as it is sent, each attempt with what the receiver answered, and sending it again."""

from typing import Any

from starlette.responses import Response

from guichet.console.page_request import MerchantRequest
from guichet.console.webhooks.delivery_list import delivery_of
from guichet.domain.audit_log import ActRefused
from guichet.domain.events import MAX_ATTEMPTS, Delivery
from guichet.printable import printable
from guichet.webhooks import deliveries
from guichet.webhooks.history import PastAttempt, past_attempts
from guichet.webhooks.resend import resend
from guichet.webhooks.sender import SIGNATURE, headers_of


async def show(request: MerchantRequest) -> Response:
    return await _page(request, await _named(request))


async def change(request: MerchantRequest) -> Response:
    """Sends it again, with the same id and the same bytes."""
    await request.form()
    delivery = await _named(request)
    ctx = request.ctx
    request.require("webhooks.resend")
    try:
        await resend(ctx.db, ctx.clock, delivery, request.actor)
    except ActRefused:
        fault = request.text("webhooks.not_resent")
        return await _page(request, await _named(request), 409, fault)
    ctx.wakeups.deliveries.set()
    return request.redirect(request.here(f"/webhooks/deliveries/{delivery.reference}"))


async def _named(request: MerchantRequest) -> Delivery:
    return await delivery_of(request, request.path["reference"])


async def _page(request: MerchantRequest, delivery: Delivery, status: int = 200, fault: Any = None) -> Response:
    references = await deliveries.payment_references(request.db, [delivery])
    return request.show(
        "webhooks/delivery.html",
        status,
        fault=fault,
        delivery=delivery,
        payment=references.get(delivery.payment_id) if delivery.payment_id else None,
        headers=headers_of(delivery),
        signature=SIGNATURE,
        most=MAX_ATTEMPTS,
        attempts=[_described(attempt) for attempt in reversed(past_attempts(delivery.history))],
        may_resend=request.may("webhooks.resend") and delivery.status != "pending",
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
