"""Asks the operator what became of a payment: on GET, from the worker, after a callback. One asks at a time."""

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

import msgspec

from guichet import metrics, tracing
from guichet.clock import SECOND
from guichet.context import AppContext, charge_for
from guichet.db.engine import require
from guichet.domain.payments import INCIDENT_AGE_SECONDS, Payment, poll_interval
from guichet.logs import log
from guichet.payments import incidents
from guichet.payments import repository as payments
from guichet.payments.integrity import confirm_amount
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Accepted, NotProcessed, Refused, StatusResult, Succeeded, Unknown

T = TypeVar("T")

#: How long an operator may take to answer a question, in seconds; the lease outlives it.
PROVIDER_TIMEOUT: Final = 20.0
LEASE_DURATION: Final = 30 * SECOND
_ANSWERS: Final[dict[type, str]] = {
    Accepted: "accepted",
    Succeeded: "succeeded",
    Refused: "refused",
    Unknown: "unknown",
    NotProcessed: "not_taken",
}


async def poll_payment(ctx: AppContext, payment: Payment) -> Payment:
    """The payment after its operator was asked; as stored when somebody else is asking, or it is final.

    Whoever looks often does not move the worker's own next question.
    """
    return await _ask(ctx, payment, planned=False)


@tracing.traced("ask about payment", lambda _, payment: {tracing.PAYMENT: payment.reference})
async def poll_due_payment(ctx: AppContext, payment: Payment) -> None:
    """A question of the worker: nothing pending is left without a next question."""
    await _ask(ctx, payment, planned=True)


async def _ask(ctx: AppContext, payment: Payment, *, planned: bool) -> Payment:
    if payment.status != "pending":
        return payment
    provider = ctx.registry.provider(require(payment.connection))
    if provider.remote:
        now = ctx.clock.now()
        leased = await payments.lease(ctx.db, payment.id, now, now + LEASE_DURATION)
        if leased is None:
            return require(await payments.by_id(ctx.db, payment.id))
        payment = leased
    answer = await call_provider(provider.status(charge_for(ctx, payment)), require(payment.connection), "status")
    payment = await _apply(ctx, payment, answer)
    if payment.status == "pending" and planned:
        await _ask_later(ctx, payment)
    elif payment.status == "pending" and provider.remote:
        await payments.end_lease(ctx.db, payment.id)
    return payment


async def call_provider(question: Awaitable[T], connection: str, kind: str, *, timed: bool = True) -> T | Unknown:
    """An operator that takes longer than the budget has said nothing. Every call to one passes here and is counted.

    `timed`: False spares the timer where nobody far away is asked.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    answer: T | Unknown
    try:
        if timed:
            async with asyncio.timeout(PROVIDER_TIMEOUT):
                answer = await question
        else:
            answer = await question
    except TimeoutError:
        answer = Unknown(f"no answer within {PROVIDER_TIMEOUT:g} s")
    named, seconds = _ANSWERS.get(type(answer), "other"), loop.time() - began
    metrics.provider_call(connection, kind, named, seconds)
    tracing.provider_call(connection, kind, named, seconds)
    return answer


async def _apply(ctx: AppContext, payment: Payment, answer: StatusResult) -> Payment:
    match answer:
        case Succeeded():
            if await confirm_amount(ctx, payment, answer, "payment", payment.reference):
                return await settle_payment(ctx, payment, answer)
        case Refused():
            return await settle_payment(ctx, payment, answer)
        case Accepted():
            payment = await _learn(ctx, payment, answer)
        case Unknown():
            log.info("status.unknown", reference=payment.reference, raw=answer.raw)
    return payment


async def _learn(ctx: AppContext, payment: Payment, answer: Accepted) -> Payment:
    """A lost answer found again, or a page that the operator prepared meanwhile."""
    new_ref = payment.provider_ref is None and answer.provider_reference is not None
    new_page = payment.redirect_url is None and answer.redirect_url is not None
    if not (new_ref or new_page):
        return payment
    memo = msgspec.json.encode(answer.provider_data).decode() if answer.provider_data else payment.provider_memo
    learned = await payments.record_initiation(
        ctx.db,
        payment.id,
        require(payment.connection),
        answer.provider_reference or payment.provider_ref,
        memo,
        answer.redirect_url or payment.redirect_url,
        require(payment.due_at),
    )
    return learned or payment


async def _ask_later(ctx: AppContext, payment: Payment) -> None:
    """Nothing pending is ever without a next question; after 72 hours a person is told as well."""
    now = ctx.clock.now()
    age = (now - payment.created_at) / SECOND
    if age >= INCIDENT_AGE_SECONDS and payment.env == "live":
        await incidents.report(
            ctx.db,
            payment.merchant_id,
            payment.env,
            incidents.STUCK,
            "payment",
            payment.reference,
            payment.connection,
            "pending for more than 72 hours",
            now,
        )
    await payments.schedule_next_poll(ctx.db, payment.id, now + poll_interval(payment.asked, age) * SECOND)
