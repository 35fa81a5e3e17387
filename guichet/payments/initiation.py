"""The initiation of a payment: calls the accounts of its route, and applies the result.

A request waits twenty seconds at most, and an initiation that takes longer ends in the background: some networks answer
only after the customer typed the PIN. The request is then answered with the pending payment. The provider's answer is
applied when it comes; a refusal is told by a webhook, since no 402 can tell it any more.
"""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

import msgspec

from guichet import tracing
from guichet.clock import SECOND, Instant, later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.lost_answers import repeat_when_lost
from guichet.domain.errors import PaymentFailed, ServerError
from guichet.domain.failures import OUR_FAULTS, failure_of
from guichet.domain.payments import POLL_INTERVALS, Payment
from guichet.logs import log
from guichet.payments import pending, repository
from guichet.providers.base import (
    Accepted,
    Charge,
    InitiationResult,
    NotProcessed,
    Provider,
    Refused,
    Succeeded,
    Unknown,
)
from guichet.providers.registry import call_provider, charge_for, encode_provider_data

#: Seconds that a request, of a merchant or of a hosted page, waits for an initiation at most.
REQUEST_WAIT: Final = 20.0
#: Microseconds by which the lease of an initiation is longer than the provider may take to answer.
_LEASE_MARGIN: Final = 10 * SECOND
_NOT_TRIED: Final = NotProcessed()
_ROUTE_FAULT: Final = (
    "Ce moyen de paiement a un problème de notre côté, et nous en sommes avertis. Rien n'a été débité : le paiement "
    "est enregistré « failed »."
)


class WaitingRequest(msgspec.Struct):
    """The request that waits for an initiation. `has_result`: the provider's last answer is known and being applied, so
    the request will be answered with it. `is_answered`: nobody waits any more. Never both, as one event loop sets them.
    """

    has_result: bool = False
    is_answered: bool = False


def initiation_lease(now: Instant, provider: Provider) -> Instant:
    return later(now, round(provider.initiation_timeout * SECOND) + _LEASE_MARGIN)


async def initiate_within_request(ctx: AppContext, payment: Payment, charge: Charge, route: list[str]) -> Payment:
    """The payment after its initiation, or still pending after REQUEST_WAIT seconds. Raises PaymentFailed and
    ServerError."""
    waiting = WaitingRequest()
    initiation = _initiate(ctx, payment, charge, route, waiting)
    if sum([ctx.registry.provider(account).initiation_timeout for account in route]) <= REQUEST_WAIT:
        return await initiation
    return await _wait_for_initiation(ctx, payment, initiation, waiting)


async def _wait_for_initiation(
    ctx: AppContext, payment: Payment, initiation: Coroutine[Any, Any, Payment], waiting: WaitingRequest
) -> Payment:
    """Runs `initiation` in a task. Returns or raises what it does if its result is there within REQUEST_WAIT seconds,
    otherwise returns `payment`, which is pending."""
    task = asyncio.create_task(initiation)
    ctx.slow_initiations.add(task)
    task.add_done_callback(ctx.slow_initiations.discard)
    try:
        await asyncio.wait({task}, timeout=REQUEST_WAIT)
    finally:  # Whoever waits may also have gone away.
        if not (waiting.has_result or task.done()):
            waiting.is_answered = True
            task.add_done_callback(_log_failure)
            log.info("initiation.slow", reference=payment.reference)
    return payment if waiting.is_answered else await asyncio.shield(task)


def _log_failure(task: asyncio.Task[Payment]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("initiation.failed", error=repr(error))


async def _initiate(
    ctx: AppContext, payment: Payment, charge: Charge, route: list[str], waiting: WaitingRequest
) -> Payment:
    """Calls the accounts of the route in order; the next one only if the one before provably processed nothing."""
    tracing.about_payment(payment.reference)
    result: InitiationResult = _NOT_TRIED
    for account in route:
        if account != payment.provider_account:
            next_provider = ctx.registry.provider(account)
            until = initiation_lease(ctx.clock.now(), next_provider)
            switched = await pending.switch_provider_account(ctx.db, payment, account, next_provider.fingerprint, until)
            if switched is None:
                return require(await repository.by_id(ctx.db, payment.id))
            payment, charge = switched, charge_for(switched, ctx.settings.public_url, charge.otp)
        provider = ctx.registry.provider(account)
        if provider.needs_merchant_id:
            from guichet.payments.outcomes import name_merchant  # noqa: PLC0415 - a server listens without

            charge = await name_merchant(ctx, payment, charge)
        result = await call_provider(
            provider, provider.initiate(charge), account, "initiate", provider.initiation_timeout
        )
        if provider.remote:
            ctx.attempts.add(payment.operator, result, ctx.clock.now())
        if provider.identified_by_key:
            from guichet.payments import account_identity  # noqa: PLC0415 - a server listens without

            account_identity.read_soon(ctx, provider, account)
        if not isinstance(result, NotProcessed):
            break
        log.warning("initiation.not_processed", reference=payment.reference, provider_account=account, raw=result.raw)
    waiting.has_result = True
    return await _apply(ctx, payment, result, waiting)


async def _apply(ctx: AppContext, payment: Payment, result: InitiationResult, waiting: WaitingRequest) -> Payment:
    if isinstance(result, Accepted):
        return await _record_acceptance(ctx, payment, result)
    from guichet.payments.outcomes import check_and_report_amount, refuse_payment  # noqa: PLC0415 - a server listens without
    from guichet.payments.settlement import settle_payment  # noqa: PLC0415 - a server listens without

    match await check_and_report_amount(ctx, payment, result):
        case Succeeded() as success:
            await settle_payment(ctx, payment, success)
            return payment
        case Refused(reason=reason, raw=raw) | NotProcessed(reason=reason, raw=raw):
            refusal = Refused(reason, raw)
            settled = await refuse_payment(ctx, payment, refusal, at_initiation=not waiting.is_answered)
            if settled.status != "failed" or waiting.is_answered:
                return settled
            raise refusal_of(settled)
        case Unknown():
            log.warning("initiation.unknown", reference=payment.reference, result=repr(result))
    now = ctx.clock.now()
    await pending.record_lost_initiation(ctx.db, payment.id, now, later(now, POLL_INTERVALS[0]))
    return payment


def refusal_of(payment: Payment) -> PaymentFailed | ServerError:
    """What the caller is told about a payment that failed at its initiation: the operator refused it, or a route of
    ours does not work."""
    if payment.failure_reason in OUR_FAULTS:
        return ServerError(_ROUTE_FAULT, reference=payment.reference)
    failure = failure_of(payment.failure_reason)
    return PaymentFailed(failure.message, reason=failure.code, reference=payment.reference)


async def _record_acceptance(ctx: AppContext, payment: Payment, result: Accepted) -> Payment:
    """Stores what the provider returned. The sandbox returns nothing that must be stored."""
    account = require(payment.provider_account)
    if ctx.registry.provider(account).remote:
        record = partial(
            pending.record_initiation,
            ctx.db,
            payment,
            provider_reference=result.provider_reference,
            provider_data=encode_provider_data(dict(result.provider_data)),
            redirect_url=result.redirect_url,
            next_poll_at=result.next_poll_at or later(ctx.clock.now(), POLL_INTERVALS[0]),
        )
        stored = await repeat_when_lost(ctx.db, record)
        payment = stored or payment
    if payment.next_poll_at is not None and payment.next_poll_at <= ctx.clock.now():
        ctx.wakeups.polling.set()
    return payment


async def finish_slow_initiations(ctx: AppContext, grace: float) -> None:
    """When the process stops: initiations that are running have `grace` seconds to end. The others are given up like
    lost answers: the payments are polled once their leases have run out."""
    if ctx.slow_initiations:
        await asyncio.wait(ctx.slow_initiations, timeout=grace)
    for task in list(ctx.slow_initiations):
        task.cancel()
    await asyncio.gather(*ctx.slow_initiations, return_exceptions=True)
