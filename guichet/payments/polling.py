"""Polling: requests the status of a pending payment from its provider.

A payment is polled by the API when a merchant reads it, by the worker when its poll is due, by the hosted pages, and
after a provider's callback. A lease on the row lets only one of them poll at a time.

Readers wait for a poll for a short time only. It calls a provider, which may be slow, and writes: its lease, what it
found. While the standby is away no write ends, and reading must work all the same.
"""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from guichet import tracing
from guichet.clock import earlier, later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.errors import StorageError
from guichet.db.queues.work_queue import LEASE_DURATION
from guichet.domain.ids import PaymentId
from guichet.domain.messages import Answer
from guichet.domain.payments import Payment, never_arrived
from guichet.logs import log
from guichet.payments import outcomes, pending, repository
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Accepted, NotFound, Refused, StatusResult, Succeeded, Unknown
from guichet.providers.registry import encode_provider_data
from guichet.providers.shared.answers import ProviderAnswer

T = TypeVar("T")

#: Seconds that a merchant's GET waits for a poll.
REQUEST_WAIT: Final = 2.0
#: Seconds after which a page is shown even if the provider has not answered yet.
_PAGE_WAIT: Final = 1.5
#: How many running polls a caller joins. The first may end without a call, because somebody polled seconds ago, and
#: then another caller polls without that limit.
_MOST_JOINED: Final = 2


async def poll_payment(ctx: AppContext, payment: Payment) -> Payment:
    """Polls a pending payment and returns it as it is stored afterwards, or after REQUEST_WAIT.

    A poll that runs in this process already is joined. While another process polls, the payment is returned as it is
    stored: waiting for a process that may have died would make the merchant wait for the end of its lease.
    The time of the worker's next poll does not change, however often a merchant reads the payment.
    """
    if payment.status != "pending":
        return payment
    polled = await result_within(ctx, REQUEST_WAIT, _join_or_poll(ctx, payment))
    return polled or require(await repository.by_id(ctx.db, payment.id))


async def poll_after_callback(ctx: AppContext, payment_id: PaymentId) -> Payment | None:
    """As `poll_payment`, but at most once in MIN_POLL_INTERVAL, whichever process polled before, for a live payment
    that was not read yet.

    None if it was not polled for that reason, if another poll is running, or if the payment is final. No poll is
    joined: a running one may have been answered before the callback came.
    """
    if _running_poll(ctx, payment_id) is not None:
        return None
    return await _start_poll(ctx, payment_id, outcomes.MIN_POLL_INTERVAL)


async def poll_for_page(ctx: AppContext, payment: Payment) -> Payment:
    """The payment as known after at most `_PAGE_WAIT` seconds. Its provider is asked at most once in five seconds, no
    matter how often and by which process the page is loaded; that of the test environment always."""
    now = ctx.clock.now()
    if payment.status != "pending" or (payment.env == "live" and outcomes.may_poll_at(payment.asked_at, now) > now):
        return payment
    try:
        poll = _join_or_poll(ctx, payment, interval=outcomes.MIN_POLL_INTERVAL)
        return await result_within(ctx, _PAGE_WAIT, poll) or payment
    except Exception as error:  # The page is shown all the same.
        log.error("page.poll_failed", error=repr(error))
        return payment


@tracing.traced("poll payment", lambda _, payment: {tracing.PAYMENT: payment.reference})
async def poll_due_payment(ctx: AppContext, payment: Payment) -> None:
    """The worker's poll: polls a payment that is due and sets its next poll."""
    polled = await _join_or_poll(ctx, payment, scheduled=True)
    if polled is not None and polled.status == "pending":
        await outcomes.report_if_stuck(ctx, polled)
        await pending.schedule_next_poll(ctx.db, polled, outcomes.next_poll(polled, ctx.clock.now()))


def poll_soon(ctx: AppContext, payment: Payment) -> None:
    """`poll_due_payment` beside what runs, of a test payment."""
    task = asyncio.create_task(poll_due_payment(ctx, payment))
    ctx.awaited_polls.add(task)
    task.add_done_callback(ctx.awaited_polls.discard)
    task.add_done_callback(_log_failure)


async def result_within(ctx: AppContext, seconds: float, poll: Coroutine[Any, Any, T | None]) -> T | None:
    """What `poll` returns if it ends in time, else None: it goes on by itself, and is used when it ends. None also if
    the database refused one of its writes."""
    task = asyncio.create_task(poll)
    ctx.awaited_polls.add(task)
    task.add_done_callback(ctx.awaited_polls.discard)
    try:
        await asyncio.sleep(0)  # Enough for the test environment; to wait for longer takes 30,000 instructions.
        if not task.done():
            await asyncio.wait({task}, timeout=seconds)
        return task.result() if task.done() else None
    except StorageError as error:
        log.error("poll.not_stored", error=repr(error))
        return None
    finally:
        if not task.done():
            task.add_done_callback(_log_failure)


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("poll.failed", error=repr(error))


async def _join_or_poll(
    ctx: AppContext, payment: Payment, *, interval: int = 0, scheduled: bool = False
) -> Payment | None:
    """The payment after a poll that was running in this process already, or that is made now; None if another process
    has the lease, the last poll is less than `interval` ago, or the payment became final.

    `scheduled`: the worker claimed it, and ends the lease itself.
    """
    if not ctx.registry.provider(require(payment.provider_account)).remote:
        return await _poll(ctx, payment)
    for _ in range(_MOST_JOINED):
        running = _running_poll(ctx, payment.id)
        if running is None:
            break
        joined = await asyncio.shield(running)
        if joined is not None or interval:
            return joined
    else:
        return None
    return await _start_poll(ctx, payment.id, interval, payment if scheduled else None)


def _running_poll(ctx: AppContext, payment_id: PaymentId) -> asyncio.Task[Payment | None] | None:
    running = ctx.running_polls.get(payment_id)
    # Done: it is removed in the next iteration of the event loop.
    return None if running is None or running.done() else running


async def _start_poll(
    ctx: AppContext, payment_id: PaymentId, interval: int, claimed: Payment | None = None
) -> Payment | None:
    """A provider is called in a task of its own: the call ends even if whoever waits for it goes away."""
    task = asyncio.create_task(_poll_under_lease(ctx, payment_id, interval, claimed))
    ctx.running_polls[payment_id] = task
    task.add_done_callback(partial(_forget_poll, ctx, payment_id))
    return await asyncio.shield(task)


def _forget_poll(ctx: AppContext, payment_id: PaymentId, task: asyncio.Task[Payment | None]) -> None:
    """Unless another poll took its place since it ended."""
    if ctx.running_polls.get(payment_id) is task:
        del ctx.running_polls[payment_id]


async def _poll_under_lease(
    ctx: AppContext, payment_id: PaymentId, interval: int, claimed: Payment | None
) -> Payment | None:
    """Polls under the lease of the payment's row; see `_join_or_poll`. `claimed`: by the worker, which ends it."""
    now, leased = ctx.clock.now(), claimed
    if leased is None or not pending.is_leased_by_claim(leased, now):
        leased = await pending.lease(ctx.db, payment_id, now, later(now, LEASE_DURATION), earlier(now, interval))
        if leased is None:
            return None
    polled = await _poll(ctx, leased)
    if claimed is None and polled.status == "pending" and polled.lease_expires_at is not None:
        await pending.end_lease(ctx.db, polled)
    return polled


async def _poll(ctx: AppContext, payment: Payment) -> Payment:
    return await _apply(ctx, payment, await outcomes.payment_status(ctx, payment))


async def _apply(ctx: AppContext, payment: Payment, result: StatusResult) -> Payment:
    match await outcomes.check_and_report_amount(ctx, payment, result):
        case Succeeded() as success:
            return await settle_payment(ctx, payment, success)
        case Refused() as refusal:
            return await outcomes.refuse_payment(ctx, payment, refusal)
        case Accepted() as accepted:
            return await _keep_new_facts(ctx, payment, accepted)
        case NotFound(raw=raw):
            return await _count_not_found(ctx, payment, raw)
        case Unknown(raw=raw):
            log.info("polling.unknown", reference=payment.reference, raw=raw)
    return outcomes.reset_not_found(ctx, payment)


async def _count_not_found(ctx: AppContext, payment: Payment, raw: Answer) -> Payment:
    """Counts the answer; the payment fails once it is proven that its request never arrived."""
    log.info("polling.not_found", reference=payment.reference, raw=raw)
    counted = outcomes.count_not_found(ctx, payment)
    if never_arrived(counted):
        return await settle_payment(
            ctx, payment, Refused("operator_unavailable", ProviderAnswer.NEVER_ARRIVED(answer=raw), stated=False)
        )
    return counted


async def _keep_new_facts(ctx: AppContext, payment: Payment, result: Accepted) -> Payment:
    """Stores the provider's reference and page if they are not known yet because the response to the initiation was
    lost."""
    new_reference = payment.provider_reference is None and result.provider_reference is not None
    new_page = payment.redirect_url is None and result.redirect_url is not None
    if not (new_reference or new_page):
        return outcomes.reset_not_found(ctx, payment)
    stored = await pending.record_initiation(
        ctx.db,
        payment,
        provider_reference=result.provider_reference or payment.provider_reference,
        provider_data=encode_provider_data(dict(result.provider_data)) or payment.provider_data,
        redirect_url=result.redirect_url or payment.redirect_url,
        next_poll_at=require(payment.next_poll_at),
    )
    return stored or payment
