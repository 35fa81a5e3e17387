"""Polling: requests the status of a pending payment from its provider.

A payment is polled by the API when a merchant reads it, by the worker when its poll is due, by the hosted pages, and
after a provider's callback. A lease on the row lets only one of them poll at a time.
"""

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Final

from msgspec import structs

from guichet import tracing
from guichet.clock import Instant, earlier, later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.queues.work_queue import Claim
from guichet.domain.ids import PaymentId
from guichet.domain.payments import Payment
from guichet.logs import log
from guichet.payments import integrity, misconfigured_routes, never_arrived, repository
from guichet.payments.awaited_polls import REQUEST_WAIT, result_within
from guichet.payments.poll_schedule import LEASE_DURATION, QUESTION_INTERVAL, next_poll
from guichet.payments.provider_calls import (
    ANOTHER_ACCOUNT,
    call_provider,
    charge_for,
    encode_provider_data,
    is_another_account,
)
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Accepted, NotFound, Refused, StatusResult, Succeeded, Unknown
from guichet.providers.shared.answers import ProviderAnswer

#: How many running questions a caller joins. The first may end without asking, because somebody asked seconds ago, and
#: then another caller asks without that limit.
_MOST_JOINED: Final = 2


async def poll_payment(ctx: AppContext, payment: Payment) -> Payment:
    """Asks the provider about a pending payment and returns it as it is stored afterwards, or after REQUEST_WAIT.

    A question that this process is asking already is joined. While another process asks, the payment is returned as it
    is stored: waiting for a process that may have died would make the merchant wait for the end of its lease.
    The time of the worker's next poll does not change, however often a merchant reads the payment.
    """
    if payment.status != "pending":
        return payment
    polled = await result_within(ctx, REQUEST_WAIT, _join_or_ask(ctx, payment))
    return polled or require(await repository.by_id(ctx.db, payment.id))


async def poll_payment_at_most(ctx: AppContext, payment: Payment, *, joins: bool = True) -> Payment | None:
    """As `poll_payment`, but asks a provider at most once in QUESTION_INTERVAL, whichever process asked before.

    None if nothing was asked for that reason, if another question is running, or if the payment is final. `joins`:
    False for the question that a callback causes, since a running one may have been answered before the callback came.
    """
    if payment.status != "pending":
        return None
    return await _join_or_ask(ctx, payment, interval=QUESTION_INTERVAL, joins=joins)


@tracing.traced("poll payment", lambda _, payment: {tracing.PAYMENT: payment.reference})
async def poll_due_payment(ctx: AppContext, payment: Payment) -> None:
    """The worker's poll: polls a payment that is due and sets its next poll."""
    polled = await _join_or_ask(ctx, payment, scheduled=True)
    if polled is not None and polled.status == "pending":
        await repository.schedule_next_poll(ctx.db, polled, await next_poll(ctx, polled))


async def _join_or_ask(
    ctx: AppContext,
    payment: Payment,
    *,
    interval: int = 0,
    joins: bool = True,
    scheduled: bool = False,
) -> Payment | None:
    """The payment after a question that was running in this process already, or that is asked now; None if another
    process has the lease, the last question is less than `interval` ago, or the payment became final.

    A question of a provider runs in a task of its own: it is asked to its end even if whoever waits for it goes away.
    `scheduled`: the caller ends the lease.
    """
    if not ctx.registry.provider(require(payment.provider_account)).remote:
        return await _ask(ctx, payment)
    for _ in range(_MOST_JOINED):
        running = ctx.questions.get(payment.id)
        if running is None or running.done():  # Done: it is removed in the next iteration of the event loop.
            break
        if not joins:
            return None
        joined = await asyncio.shield(running)
        if joined is not None or interval:
            return joined
    else:
        return None
    task = asyncio.create_task(_ask_alone(ctx, payment, interval, scheduled=scheduled))
    ctx.questions[payment.id] = task
    task.add_done_callback(partial(_forget_question, ctx, payment.id))
    return await asyncio.shield(task)


def _forget_question(ctx: AppContext, payment_id: PaymentId, task: asyncio.Task[Payment | None]) -> None:
    """Unless another question took its place since it ended."""
    if ctx.questions.get(payment_id) is task:
        del ctx.questions[payment_id]


async def _ask_alone(ctx: AppContext, payment: Payment, interval: int, *, scheduled: bool) -> Payment | None:
    """Asks under the lease of the payment's row; see `_join_or_ask`."""
    now = ctx.clock.now()
    leased = await repository.lease(ctx.db, payment.id, now, later(now, LEASE_DURATION), earlier(now, interval))
    if leased is None:
        return None
    polled = await _ask(ctx, leased)
    if not scheduled and polled.status == "pending" and polled.lease_expires_at is not None:
        await repository.end_lease(ctx.db, polled)
    return polled


async def _ask(ctx: AppContext, payment: Payment) -> Payment:
    """Asks the provider, and applies its answer."""
    account = require(payment.provider_account)
    provider = ctx.registry.provider(account)
    if is_another_account(provider, payment):
        return await _apply(ctx, payment, ANOTHER_ACCOUNT)
    charge = charge_for(ctx, payment)
    if provider.remote and payment.provider_reference is None:  # The answer to the initiation was lost.
        charge = structs.replace(charge, callback_reference=await repository.reference_from_callback(ctx.db, payment))
    result = await call_provider(provider, provider.status(charge), account, "status")
    return await _apply(ctx, payment, result)


async def _apply(ctx: AppContext, payment: Payment, result: StatusResult) -> Payment:
    match result:
        case Succeeded():
            if await integrity.check(ctx, payment, result):
                return await settle_payment(ctx, payment, result)
        case Refused():
            settled = await settle_payment(ctx, payment, result)
            await misconfigured_routes.report(ctx, settled, result.raw)
            return settled
        case Accepted():
            return await _keep_new_facts(ctx, payment, result)
        case NotFound():
            return await _count_not_found(ctx, payment, result)
        case Unknown():
            log.info("polling.unknown", reference=payment.reference, raw=result.raw)
    return never_arrived.forget_answers(ctx, payment)


async def _count_not_found(ctx: AppContext, payment: Payment, result: NotFound) -> Payment:
    """Counts the answer; the payment fails once it is proven that its request never arrived."""
    log.info("polling.not_found", reference=payment.reference, raw=result.raw)
    counted = never_arrived.count_answer(ctx, payment)
    if never_arrived.is_proven(counted):
        return await settle_payment(
            ctx, payment, Refused("operator_unavailable", ProviderAnswer.NEVER_ARRIVED(answer=result.raw))
        )
    return counted


async def _keep_new_facts(ctx: AppContext, payment: Payment, result: Accepted) -> Payment:
    """Stores the provider's reference and page if they are not known yet because the response to the initiation was
    lost."""
    new_reference = payment.provider_reference is None and result.provider_reference is not None
    new_page = payment.redirect_url is None and result.redirect_url is not None
    if not (new_reference or new_page):
        return never_arrived.forget_answers(ctx, payment)
    stored = await repository.record_initiation(
        ctx.db,
        payment.id,
        provider_account=require(payment.provider_account),
        provider_reference=result.provider_reference or payment.provider_reference,
        provider_data=encode_provider_data(dict(result.provider_data)) or payment.provider_data,
        redirect_url=result.redirect_url or payment.redirect_url,
        next_poll_at=require(payment.next_poll_at),
    )
    return stored or payment


class PollingJobs:
    """The worker's queue of payments whose poll is due (see `worker/queue_loop.py`)."""

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Collection[str]) -> Claim[Payment]:
        return await repository.claim_due(self._ctx.db, now, until, most, saturated)

    def partition(self, job: Payment) -> str:
        return job.provider_account or ""

    async def work(self, job: Payment) -> None:
        await poll_due_payment(self._ctx, job)
