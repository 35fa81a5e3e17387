"""Polling: requests the status of a pending payment from its provider.

A payment is polled by the API when a merchant reads it, by the worker when its poll is due, and when a provider sends a
callback. A lease on the row lets only one of them poll at a time.
"""

from collections.abc import Sequence

from msgspec import structs

from guichet import tracing
from guichet.clock import Instant, later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.work_queue import Claim
from guichet.domain.payments import Payment
from guichet.logs import log
from guichet.payments import integrity, repository
from guichet.payments.poll_schedule import LEASE_DURATION, next_poll
from guichet.payments.provider_calls import (
    ANOTHER_ACCOUNT,
    call_provider,
    charge_for,
    encode_provider_data,
    is_another_account,
)
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Accepted, Refused, StatusResult, Succeeded, Unknown


async def poll_payment(ctx: AppContext, payment: Payment, *, callback_reference: str | None = None) -> Payment:
    """Polls the payment and returns it as it is stored afterwards; does not poll it if it is final or another process
    has the lease.

    The time of the worker's next poll does not change, however often a merchant reads the payment.
    `callback_reference`: see `Charge`.
    """
    polled = await _poll(ctx, payment, callback_reference)
    if polled is None:
        return require(await repository.by_id(ctx.db, payment.id))
    if polled.status == "pending" and polled.lease_expires_at is not None:
        await repository.end_lease(ctx.db, polled.id)
    return polled


@tracing.traced("poll payment", lambda _, payment: {tracing.PAYMENT: payment.reference})
async def poll_due_payment(ctx: AppContext, payment: Payment) -> None:
    """The worker's poll: polls a payment that is due and sets its next poll."""
    polled = await _poll(ctx, payment)
    if polled is not None and polled.status == "pending":
        await repository.schedule_next_poll(ctx.db, polled.id, await next_poll(ctx, polled))


async def _poll(ctx: AppContext, payment: Payment, callback_reference: str | None = None) -> Payment | None:
    """None if another process has the lease, or the payment became final in the meantime."""
    if payment.status != "pending":
        return payment
    account = require(payment.provider_account)
    provider = ctx.registry.provider(account)
    if provider.remote:
        now = ctx.clock.now()
        leased = await repository.lease(ctx.db, payment.id, now, later(now, LEASE_DURATION))
        if leased is None:
            return None
        payment = leased
    if is_another_account(provider, payment):
        return await _apply(ctx, payment, ANOTHER_ACCOUNT)
    charge = charge_for(ctx, payment)
    if callback_reference is not None:
        charge = structs.replace(charge, callback_reference=callback_reference)
    result = await call_provider(provider, provider.status(charge), account, "status")
    return await _apply(ctx, payment, result)


async def _apply(ctx: AppContext, payment: Payment, result: StatusResult) -> Payment:
    match result:
        case Succeeded():
            if await integrity.check(ctx, payment, result):
                return await settle_payment(ctx, payment, result)
        case Refused():
            return await settle_payment(ctx, payment, result)
        case Accepted():
            return await _keep_new_facts(ctx, payment, result)
        case Unknown():
            log.info("polling.unknown", reference=payment.reference, raw=result.raw)
    return payment


async def _keep_new_facts(ctx: AppContext, payment: Payment, result: Accepted) -> Payment:
    """Stores the provider's reference and page if they are not known yet because the response to the initiation was
    lost."""
    new_reference = payment.provider_reference is None and result.provider_reference is not None
    new_page = payment.redirect_url is None and result.redirect_url is not None
    if not (new_reference or new_page):
        return payment
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

    async def claim(
        self, now: Instant, until: Instant, most: int, saturated: Sequence[Sequence[str]]
    ) -> Claim[Payment]:
        return await repository.claim_due(self._ctx.db, now, until, most, saturated)

    def partition_key(self, job: Payment) -> tuple[str, ...]:
        return (job.provider_account or "",)

    async def work(self, job: Payment) -> None:
        await poll_due_payment(self._ctx, job)
