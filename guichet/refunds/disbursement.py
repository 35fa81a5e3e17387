"""The disbursement of a refund: sent to a provider once, then polled until its outcome is known.

The row is marked as sent before the request is sent. After a crash in between, the provider is polled; the disbursement
is not sent a second time. Only when the provider says that our own balance with it (the float) was too small, and that
it moved nothing, is a new request made under a new reference: through another account that can pay, or later, the
oldest refund first. Where it says that perhaps, our balance is read (`ambiguous_refusals.py`).

A payout to a number needs the number that paid (`domain/phone_numbers.py`). Where nobody knows it, only the provider's
own refund of the debit can be used; without one, the refund waits until a person confirms the number.
"""

from typing import Final

from guichet import tracing
from guichet.clock import MINUTE, earlier, later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.queues.work_queue import LEASE_DURATION
from guichet.domain.messages import Amount, verbatim
from guichet.domain.payments import KEPT_FOR_FLOAT, REFUND_RETRY, Payment, Refund
from guichet.domain.phone_numbers import payee_number
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.logs import log
from guichet.payments import account_identity, outcomes, repository
from guichet.payments.account_identity import AccountMatch
from guichet.payments.polling import REQUEST_WAIT, result_within
from guichet.providers.base import (
    Accepted,
    AlreadyRefunded,
    AmbiguousRefusal,
    FloatEmpty,
    NotFound,
    NotProcessed,
    RefundInitiationResult,
    RefundStatusResult,
    Refused,
    Succeeded,
    Unknown,
)
from guichet.providers.registry import call_provider, decode_provider_data, encode_provider_data
from guichet.refunds import automatic, pending
from guichet.refunds import repository as refund_repository
from guichet.refunds.ambiguous_refusals import SECOND_TRY_AFTER, SecondTry, resolve_ambiguous
from guichet.refunds.settlement import settle_refund

#: Microseconds between two tries to pay the oldest refund that waits for our balance with a provider.
FLOAT_RETRY: Final = MINUTE
#: The same for a refund behind it, which cannot be paid before. When the older one is paid it is tried at once; this is
#: for what ends otherwise. With thousands that wait, a try of each every minute is most of what a worker does.
FLOAT_RETRY_BEHIND: Final = 10 * MINUTE
#: Refunds that are tried at once when there is money again; each that is paid leads to as many more.
_NEXT_IN_LINE: Final = 10

RefundResult = RefundInitiationResult | RefundStatusResult | SecondTry


async def poll_refund(ctx: AppContext, refund: Refund) -> Refund:
    """Polls the refund if it was sent to a provider and is pending; returns it as it is stored afterwards, or after
    REQUEST_WAIT seconds."""
    if refund.status != "pending" or refund.sent_at is None:
        return refund
    polled = await result_within(ctx, REQUEST_WAIT, process_refund(ctx, refund))
    return polled or await _stored(ctx, refund)


async def poll_refund_at_most(ctx: AppContext, refund: Refund) -> Refund | None:
    """As `poll_refund`, but at most once in MIN_POLL_INTERVAL, whichever process polled it before. None if it was not
    polled for that reason, or because another process works on it."""
    if refund.status != "pending" or refund.sent_at is None:
        return refund
    leased = await _lease(ctx, refund, outcomes.MIN_POLL_INTERVAL)
    return leased and await _process(ctx, leased)


@tracing.traced("process refund", lambda _, refund: {tracing.PAYMENT: refund.payment_reference})
async def process_refund(ctx: AppContext, refund: Refund) -> Refund:
    """One step of a pending refund: sends it to a provider if it was not sent yet, otherwise polls it.

    A lease lets one process work on it at a time. Returns the refund as it is stored afterwards.
    """
    leased = await _lease(ctx, refund)
    if leased is None:
        return await _stored(ctx, refund)
    return await _process(ctx, leased)


async def _stored(ctx: AppContext, refund: Refund) -> Refund:
    return require(await refund_repository.by_id(ctx.db, refund.id))


async def _lease(ctx: AppContext, refund: Refund, interval: int = 0) -> Refund | None:
    now = ctx.clock.now()
    return await pending.lease(ctx.db, refund.id, now, later(now, LEASE_DURATION), earlier(now, interval))


async def _process(ctx: AppContext, leased: Refund) -> Refund:
    payment = require(await repository.by_id(ctx.db, leased.payment_id))
    if not leased.held and leased.automatic is None:
        return await settle_refund(ctx, leased, payment, Refused("insufficient_funds"))
    if not leased.held:
        held = await automatic.hold(ctx, leased, payment)
        if held is None:
            return await _stored(ctx, leased)
        leased = held
    if leased.sent_at is None:
        return await _send(ctx, leased, payment)
    return await _apply(ctx, leased, payment, await outcomes.refund_status(ctx, leased, payment))


async def _send(ctx: AppContext, refund: Refund, payment: Payment) -> Refund:
    """Sends the refund through the first account that can pay it; it waits if none can now.

    An account cannot pay while its float is empty, or while an older refund waits for it. A payout needs a payee.
    """
    collected_by = require(payment.provider_account)
    routes = ctx.registry.refund_routes(payment.env, payment.operator, collected_by)
    if not routes and refund.automatic is None:
        return await settle_refund(ctx, refund, payment, Refused("no_refund"))
    if not routes:
        await automatic.wait(ctx, refund, payment, IncidentDetail.REFUND_AWAITS_ROUTE)
        return await _stored(ctx, refund)
    payee = payee_number(refund, payment)
    payouts = {account for account in routes if ctx.registry.pays_out(account, payment.operator, collected_by)}
    accounts = [account for account in routes if payee is not None or account not in payouts]
    if not accounts:
        return await _wait_for_payee(ctx, refund)
    if accounts := await _that_know(ctx, payment, accounts, payouts):
        return await _send_through(ctx, refund, payment, accounts, payouts)
    log.warning("refund.account_changed", reference=refund.reference, provider_account=collected_by)
    await outcomes.report_if_stuck(ctx, refund)
    await pending.mark_not_sent(ctx.db, refund, outcomes.next_poll(refund, ctx.clock.now()))
    return await _stored(ctx, refund)


async def _that_know(ctx: AppContext, payment: Payment, accounts: list[str], payouts: set[str]) -> list[str]:
    """Without the account that collected, if its name may stand for another account now: it would say that it does not
    know the payment, which proves nothing."""
    collected_by = require(payment.provider_account)
    if collected_by not in accounts or collected_by in payouts:
        return accounts
    match = await outcomes.account_match(ctx, ctx.registry.provider(collected_by), payment)
    return accounts if match is AccountMatch.SAME else [name for name in accounts if name != collected_by]


async def _send_through(
    ctx: AppContext, refund: Refund, payment: Payment, accounts: list[str], payouts: set[str]
) -> Refund:
    """Sends the refund through the first of these accounts whose float covers it."""
    payee, waited, behind = payee_number(refund, payment), refund.float_empty_accounts is not None, True
    for account in _after(refund.last_empty_account, accounts):
        if await pending.has_older_pending_refund(ctx.db, refund.id, account):
            continue
        requested = await _request(ctx, refund, payment, account, payee if account in payouts else None)
        if requested is None:
            break
        sent, result = requested
        if not isinstance(result, FloatEmpty):
            applied = await _apply(ctx, sent, payment, result)
            if waited:  # There is money again, for those behind it too.
                await pending.wake_next_in_line(ctx.db, account, _NEXT_IN_LINE, ctx.clock.now())
                ctx.wakeups.refunds.set()
            return applied
        behind = False
        refund = await _float_is_empty(ctx, sent, result) or sent
    else:
        await _wait_for_float(ctx, refund, accounts, behind)
    return await _stored(ctx, refund)


async def _request(
    ctx: AppContext, refund: Refund, payment: Payment, account: str, payee: str | None
) -> tuple[Refund, RefundResult] | None:
    """Marks the refund as sent, then sends it: the refund as marked, and what the provider said. None if it was marked
    before: it is not sent a second time."""
    provider = ctx.registry.provider(account)
    prepared = provider.prepare_refund(outcomes.refund_request_for(ctx, refund, payment))
    sent = await pending.mark_sent(
        ctx.db,
        refund.id,
        provider_account=account,
        fingerprint=provider.fingerprint,
        provider_data=encode_provider_data(dict(prepared)),
        payee_number=payee,
        now=ctx.clock.now(),
    )
    if sent is None:
        return None
    call = provider.refund(await outcomes.named_refund_request(ctx, provider, sent, payment))
    result: RefundResult = await call_provider(provider, call, account, "refund")
    if provider.identified_by_key:
        account_identity.read_soon(ctx, provider, account)
    if isinstance(result, AmbiguousRefusal):
        result = await resolve_ambiguous(ctx, sent, payment, result)
    return sent, result


async def _wait_for_float(ctx: AppContext, refund: Refund, accounts: list[str], behind: bool) -> None:
    """`behind`: older refunds wait for each of these accounts; the one that is paid wakes this one.

    It may have been paid, and have woken this one, just before this one began to wait: so it looks once more.
    """
    now = ctx.clock.now()
    retry_at = later(now, FLOAT_RETRY_BEHIND if behind else FLOAT_RETRY)
    await pending.wait_for_float(ctx.db, refund.id, accounts, retry_at)
    if not behind:
        return
    for account in accounts:
        if not await pending.has_older_pending_refund(ctx.db, refund.id, account):
            await pending.wait_for_float(ctx.db, refund.id, accounts, now)
            ctx.wakeups.refunds.set()
            return


async def _wait_for_payee(ctx: AppContext, refund: Refund) -> Refund:
    """Leaves the refund to a person. In one transaction: a confirmation that comes meanwhile must not be overlooked for
    an hour, and its incident must not open again."""
    now = ctx.clock.now()
    detail = IncidentDetail.PAYEE_UNCONFIRMED(total=Amount(refund.amount, refund.currency))
    async with ctx.db.transaction() as tx:
        if await pending.wait_for_payee(tx, refund.id, later(now, REFUND_RETRY)):
            await incidents.report_about(tx, refund, incidents.PAYEE_UNCONFIRMED, detail, now)
    return await _stored(ctx, refund)


def _after(account: str | None, accounts: list[str]) -> list[str]:
    """All accounts, those first that come after the one whose float was empty last."""
    start = accounts.index(account) + 1 if account in accounts else 0
    return accounts[start:] + accounts[:start]


async def _float_is_empty(ctx: AppContext, refund: Refund, result: FloatEmpty) -> Refund | None:
    """The refund as it waits now, for a new request."""
    now, account = ctx.clock.now(), require(refund.provider_account)
    log.error("refund.float_empty", reference=refund.reference, provider_account=account, raw=result.raw)
    code = IncidentDetail.FLOAT_EMPTY if result.is_certain else IncidentDetail.FLOAT_UNREADABLE
    await _report_float(ctx, refund, code)
    retry_at = later(now, FLOAT_RETRY)
    return await pending.start_next_request(ctx.db, refund, retry_at, empty_account=account)


async def _report_float(ctx: AppContext, refund: Refund, code: IncidentDetail) -> None:
    detail = code(account=require(refund.provider_account), total=Amount(refund.amount, refund.currency))
    await incidents.report_about(ctx.db, refund, incidents.FLOAT_EMPTY, detail, ctx.clock.now())


async def _apply(ctx: AppContext, refund: Refund, payment: Payment, result: RefundResult) -> Refund:
    if isinstance(result, AmbiguousRefusal):
        result = await resolve_ambiguous(ctx, refund, payment, result)
    checked_result = await outcomes.check_and_report_amount(ctx, refund, result)
    if isinstance(checked_result, Succeeded | Refused):
        return await settle_refund(ctx, refund, payment, checked_result)
    await outcomes.report_if_stuck(ctx, refund)
    await _record_no_end(ctx, refund, checked_result)
    return await _stored(ctx, refund)


async def _record_no_end(
    ctx: AppContext,
    refund: Refund,
    result: Accepted | Unknown | NotFound | NotProcessed | FloatEmpty | AlreadyRefunded | outcomes.Mismatch | SecondTry,
) -> None:
    now = ctx.clock.now()
    next_poll_at = outcomes.next_poll(refund, now)
    match result:
        case NotProcessed():
            log.warning("refund.not_processed", reference=refund.reference, raw=result.raw)
            await pending.mark_not_sent(ctx.db, refund, next_poll_at)
        case FloatEmpty():
            await _float_is_empty(ctx, refund, result)
            account = require(refund.provider_account)
            await pending.wait_for_float(ctx.db, refund.id, [account], later(now, FLOAT_RETRY))
        case SecondTry(code=code):
            again_at = later(now, SECOND_TRY_AFTER)
            await pending.start_next_request(ctx.db, refund, again_at, ambiguous_code=code)
        case AlreadyRefunded():
            await incidents.report_about(ctx.db, refund, incidents.ALREADY_REFUNDED, verbatim(result.raw), now)
            await pending.schedule_next_poll(ctx.db, refund.id, next_poll_at)
        case Accepted(provider_reference=reference, provider_data=data, float_empty=kept) if reference or data:
            next_poll_at = result.next_poll_at or next_poll_at
            if kept:
                await _report_float(ctx, refund, IncidentDetail.FLOAT_EMPTY)
            stored_data = encode_provider_data({**decode_provider_data(refund.provider_data), **data})
            await pending.record_acceptance(
                ctx.db,
                refund,
                reference,
                stored_data,
                next_poll_at,
                ambiguous_code=KEPT_FOR_FLOAT if kept else None,
            )
        case NotFound():
            log.info("refund.not_found", reference=refund.reference, raw=result.raw)
            counted = outcomes.count_not_found(ctx, refund)
            await pending.schedule_next_poll(ctx.db, refund.id, next_poll_at, counted)
        case _:
            await pending.schedule_next_poll(ctx.db, refund.id, next_poll_at)
