"""Asks the operator what became of a payment: on GET, from the worker, after a callback. One asks at a time."""

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

import msgspec

from guichet import metrics, tracing
from guichet.clock import SECOND
from guichet.context import Core, charge_of
from guichet.db.engine import given
from guichet.domain.payments import INCIDENT_AGE_SECONDS, Payment, ask_again_after
from guichet.logs import log
from guichet.payments import incidents
from guichet.payments import repository as payments
from guichet.payments.integrity import confirms
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Accepted, NotTaken, Refused, StatusAnswer, Succeeded, Unknown

T = TypeVar("T")

#: How long an operator may take to answer a question, in seconds; the lease outlives it.
ASK_BUDGET: Final = 20.0
LEASE: Final = 30 * SECOND
_ANSWERS: Final[dict[type, str]] = {
    Accepted: "accepted",
    Succeeded: "succeeded",
    Refused: "refused",
    Unknown: "unknown",
    NotTaken: "not_taken",
}


async def refresh(core: Core, payment: Payment) -> Payment:
    """The payment after its operator was asked; as stored when somebody else is asking, or it is final.

    Whoever looks often does not move the worker's own next question.
    """
    return await _ask(core, payment, planned=False)


@tracing.traced("ask about payment", lambda _, payment: {tracing.PAYMENT: payment.reference})
async def ask_due(core: Core, payment: Payment) -> None:
    """A question of the worker: nothing pending is left without a next question."""
    await _ask(core, payment, planned=True)


async def _ask(core: Core, payment: Payment, *, planned: bool) -> Payment:
    if payment.status != "pending":
        return payment
    connector = core.registry.connector(given(payment.connection))
    if connector.remote:
        now = core.clock.now()
        leased = await payments.lease(core.db, payment.id, now, now + LEASE)
        if leased is None:
            return given(await payments.by_id(core.db, payment.id))
        payment = leased
    answer = await within_budget(connector.status(charge_of(core, payment)), given(payment.connection), "status")
    payment = await _apply(core, payment, answer)
    if payment.status == "pending" and planned:
        await _ask_later(core, payment)
    elif payment.status == "pending" and connector.remote:
        await payments.end_lease(core.db, payment.id)
    return payment


async def within_budget(question: Awaitable[T], connection: str, kind: str, *, timed: bool = True) -> T | Unknown:
    """An operator that takes longer than the budget has said nothing. Every call to one passes here and is counted.

    `timed`: False spares the timer where nobody far away is asked.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    answer: T | Unknown
    try:
        if timed:
            async with asyncio.timeout(ASK_BUDGET):
                answer = await question
        else:
            answer = await question
    except TimeoutError:
        answer = Unknown(f"no answer within {ASK_BUDGET:g} s")
    named, seconds = _ANSWERS.get(type(answer), "other"), loop.time() - began
    metrics.operator_call(connection, kind, named, seconds)
    tracing.operator_call(connection, kind, named, seconds)
    return answer


async def _apply(core: Core, payment: Payment, answer: StatusAnswer) -> Payment:
    match answer:
        case Succeeded():
            if await confirms(core, payment, answer, "payment", payment.reference):
                return await settle_payment(core, payment, answer)
        case Refused():
            return await settle_payment(core, payment, answer)
        case Accepted():
            payment = await _learn(core, payment, answer)
        case Unknown():
            log.info("status.unknown", reference=payment.reference, raw=answer.raw)
    return payment


async def _learn(core: Core, payment: Payment, answer: Accepted) -> Payment:
    """A lost answer found again, or a page that the operator prepared meanwhile."""
    new_ref = payment.provider_ref is None and answer.provider_ref is not None
    new_page = payment.redirect_url is None and answer.redirect_url is not None
    if not (new_ref or new_page):
        return payment
    memo = msgspec.json.encode(answer.memo).decode() if answer.memo else payment.provider_memo
    learned = await payments.record_initiation(
        core.db,
        payment.id,
        given(payment.connection),
        answer.provider_ref or payment.provider_ref,
        memo,
        answer.redirect_url or payment.redirect_url,
        given(payment.due_at),
    )
    return learned or payment


async def _ask_later(core: Core, payment: Payment) -> None:
    """Nothing pending is ever without a next question; after 72 hours a person is told as well."""
    now = core.clock.now()
    age = (now - payment.created_at) / SECOND
    if age >= INCIDENT_AGE_SECONDS and payment.env == "live":
        await incidents.report(
            core.db,
            payment.merchant_id,
            payment.env,
            incidents.STUCK,
            "payment",
            payment.reference,
            payment.connection,
            "pending for more than 72 hours",
            now,
        )
    await payments.ask_later(core.db, payment.id, now + ask_again_after(payment.asked, age) * SECOND)
