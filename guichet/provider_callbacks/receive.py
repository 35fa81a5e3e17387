"""Callbacks of providers: stored, answered, then asked about; what one says about the outcome is never believed
(docs/decisions.md, "Callbacks are hints").

Source: docs/providers/README.md, "Rules common to every family".
"""

from typing import Final

from msgspec import structs

from guichet import metrics
from guichet.clock import SECOND, Instant, later
from guichet.context import AppContext
from guichet.db.references import parse_reference
from guichet.domain.errors import RateLimited
from guichet.domain.ids import PaymentId, RefundId
from guichet.domain.payments import Payment, Refund
from guichet.late_money.results import poll_ended
from guichet.logs import log
from guichet.payments import repository
from guichet.payments.outcomes import may_poll_at
from guichet.payments.polling import poll_after_callback
from guichet.provider_callbacks import repository as callback_repository
from guichet.provider_callbacks import unmatched as unmatched_callbacks
from guichet.provider_callbacks.repository import CallbackSubject, ProviderCallback
from guichet.provider_callbacks.unmatched import UNKNOWN_ACCOUNT, UnmatchedReason
from guichet.providers.base import Callback, CallbackReference
from guichet.providers.shared.fields import REPLACEMENT
from guichet.refunds import repository as refund_repository
from guichet.refunds.disbursement import poll_refund_at_most

#: Microseconds until a callback is looked at again while another process works on its payment or refund.
_RETRY: Final = SECOND
#: Characters of a provider's reference.
_MAX_REFERENCE: Final = 255


async def receive(ctx: AppContext, name: str, reference: str | None, callback: Callback) -> None:
    """Stores that the payment or refund which a callback names must be asked about, and wakes the worker; keeps a
    sample of the callbacks that name none of ours.

    `name` is a provider account, or a provider that sends all its callbacks to one address. `reference` is the one in
    the callback's address. The callback may be answered 200 only after this function has returned. Raises RateLimited,
    and stores nothing, when one payment or refund is named too often.
    """
    providers = ctx.registry.callback_providers(name)
    if not providers:
        await _keep_unmatched(ctx, UNKNOWN_ACCOUNT, callback, "unknown_account")
        return
    parsed = [(account, provider.parse_callback(callback)) for account, provider in providers.items()]
    readable = [(account, _bounded(named)) for account, named in parsed if named is not None]
    if not readable:
        await _keep_unmatched(ctx, name, callback, "unreadable")
        return
    if any(named.about_dispute for _, named in readable):
        ctx.wakeups.disputes.set()
        return
    if any(named.about_statement for _, named in readable):
        return
    for account, named in readable:
        subject = await _find(ctx, account, reference, named)
        if subject is not None:
            await _record(ctx, subject, account, named)
            return
    await _keep_unmatched(ctx, name, callback, "no_match")


async def _record(ctx: AppContext, subject: CallbackSubject, account: str, named: CallbackReference) -> None:
    if not ctx.repeated_callbacks.take((subject.subject_type, subject.id), ctx.clock.monotonic()):
        raise RateLimited
    now = ctx.clock.now()
    await callback_repository.record(
        ctx.db,
        subject,
        provider_account=account,
        provider_reference=named.provider_reference,
        now=now,
        due_at=may_poll_at(subject.asked_at, now),
    )
    ctx.wakeups.callbacks.set()


async def _find(
    ctx: AppContext, account: str, reference: str | None, named: CallbackReference
) -> CallbackSubject | None:
    """Searches this account by our reference (in the address, then in the body), then by the provider's."""
    for text in (reference, named.reference):
        if text is not None and (ours := parse_reference(text)):
            subject = await callback_repository.by_our_reference(ctx.db, account, ours)
            if subject is not None:
                return subject
    if named.provider_reference is None:
        return None
    return await callback_repository.by_provider_reference(ctx.db, account, named.provider_reference)


def _bounded(named: CallbackReference) -> CallbackReference:
    """Without a provider's reference that can be none: anybody can send callbacks, and this one is stored."""
    reference = named.provider_reference
    if reference is None or (
        len(reference) <= _MAX_REFERENCE and reference.isprintable() and REPLACEMENT not in reference
    ):
        return named
    return structs.replace(named, provider_reference=None)


async def _keep_unmatched(ctx: AppContext, account: str, callback: Callback, reason: UnmatchedReason) -> None:
    """Counts the callback; few of many are logged and offered to the sample."""
    metrics.UNMATCHED_CALLBACKS.labels(account, reason).inc()
    kept = False
    if ctx.unmatched_callbacks.take(account, ctx.clock.monotonic()):
        log.warning("callback.unmatched", provider_account=account, path=callback.path[:200], reason=reason)
        kept = await unmatched_callbacks.keep_sample(
            ctx.db,
            provider_account=account,
            path=callback.path,
            body=callback.body,
            reason=reason,
            now=ctx.clock.now(),
        )
    metrics.UNMATCHED_CALLBACKS_SAMPLED.labels(account, "kept" if kept else "dropped").inc()


async def follow_callback(ctx: AppContext, callback: ProviderCallback) -> None:
    """The worker's job: asks the provider what a callback is a hint of, or puts that off."""
    retry_at = await _poll_subject(ctx, callback)
    if retry_at is None:
        await callback_repository.mark_asked(ctx.db, callback)
    else:
        await callback_repository.poll_later(ctx.db, callback, retry_at)


async def _poll_subject(ctx: AppContext, callback: ProviderCallback) -> Instant | None:
    """Asks the provider about the subject of a callback. Returns when to try again if it may not be asked now, because
    it was asked less than five seconds ago or another process works on the subject.

    Most callbacks are about a payment that is pending and was not asked about yet: its lease says so, and is taken
    before the payment is read."""
    payment_id = PaymentId(callback.subject_id) if callback.subject_type == "payment" else None
    if payment_id is not None and await poll_after_callback(ctx, payment_id) is not None:
        return None
    subject = await _subject(ctx, callback)
    if subject is None:
        return None
    now = ctx.clock.now()
    allowed_at = may_poll_at(subject.asked_at, now)
    if allowed_at > now:
        return allowed_at
    if subject.status != "pending":
        await poll_ended(ctx, subject)
        return None
    if isinstance(subject, Refund) and await poll_refund_at_most(ctx, subject) is not None:
        return None
    return later(now, _RETRY)


async def _subject(ctx: AppContext, callback: ProviderCallback) -> Payment | Refund | None:
    if callback.subject_type == "payment":
        return await repository.by_id(ctx.db, PaymentId(callback.subject_id))
    return await refund_repository.by_id(ctx.db, RefundId(callback.subject_id))
