"""Callbacks of providers: a callback only causes a poll, and what it says about the outcome is ignored.

Source: docs/providers/README.md, "Rules common to every family".
"""

from typing import Final

from guichet.context import AppContext
from guichet.db.references import parse_reference
from guichet.domain.payments import Payment, Refund
from guichet.logs import log
from guichet.payments import incidents, refund_repository, repository
from guichet.payments.disbursement import poll_refund
from guichet.payments.polling import poll_payment
from guichet.providers.base import Callback, CallbackReference

#: Bytes of an unmatched callback's body that are kept.
_KEPT_BODY: Final = 8 * 1024


async def receive(ctx: AppContext, name: str, reference: str | None, callback: Callback) -> None:
    """Polls the payment or refund that a callback names; stores the callback as unmatched if it names none of ours.

    `name` is a provider account, or a provider that sends all its callbacks to one address. `reference` is the one in
    the callback's address. The callback may be answered 200 only after this function has returned.
    """
    providers = ctx.registry.callback_providers(name)
    if not providers:
        await _store_unmatched(ctx, name, callback, "unknown_account")
        return
    parsed = [(account, provider.parse_callback(callback)) for account, provider in providers.items()]
    readable = [(account, named) for account, named in parsed if named is not None]
    if not readable:
        await _store_unmatched(ctx, name, callback, "unreadable")
        return
    if any(named.about_statement for _, named in readable):
        return
    for account, named in readable:
        subject = await _find(ctx, account, reference, named)
        if isinstance(subject, Payment):
            await poll_payment(ctx, subject, callback_reference=named.provider_reference)
            return
        if subject is not None:
            await poll_refund(ctx, subject)
            return
    await _store_unmatched(ctx, name, callback, "no_match")


async def _find(
    ctx: AppContext, account: str, reference: str | None, named: CallbackReference
) -> Payment | Refund | None:
    """Searches this account by our reference (in the address, then in the body), then by the provider's."""
    for text in (reference, named.reference):
        if text is not None and (ours := parse_reference(text)):
            payment = await repository.by_callback_reference(ctx.db, account, ours)
            if payment is not None:
                return payment
            refund = await refund_repository.by_callback_reference(ctx.db, account, ours)
            if refund is not None:
                return refund
    if named.provider_reference is not None:
        payment = await repository.by_provider_reference(ctx.db, account, named.provider_reference)
        return payment or await refund_repository.by_provider_reference(ctx.db, account, named.provider_reference)
    return None


async def _store_unmatched(ctx: AppContext, name: str, callback: Callback, reason: str) -> None:
    log.warning("callback.unmatched", provider_account=name, reason=reason)
    body = callback.body[:_KEPT_BODY].decode("utf-8", "replace").replace("\0", "")
    await incidents.store_unmatched_callback(
        ctx.db,
        provider_account=name[:64],
        path=callback.path[:500],
        body=body,
        reason=reason,
        now=ctx.clock.now(),
    )
