"""An operator's notification is a hint: it makes us ask, it is never believed.

Source: docs/providers/README.md, "Rules common to every family".
"""

from typing import Final

from guichet.context import AppContext
from guichet.domain.payments import Payment, Refund
from guichet.logs import log
from guichet.payments import incidents
from guichet.payments import refund_repository as refunds
from guichet.payments import repository as payments
from guichet.payments.polling import poll_payment
from guichet.payments.refund import poll_refund
from guichet.providers.base import Callback, CallbackReference
from guichet.schemas.wire import as_uuid

_KEPT_BODY: Final = 8 * 1024


async def receive(ctx: AppContext, name: str, reference: str | None, callback: Callback) -> None:
    """Finds what a notification to /providers/{name}/callback[/{reference}] speaks of, and asks its operator.

    `name` is a connection, or a family whose notifications all go to one address. The answer may be 200 only after
    this returns: what it spoke of was asked about, or the notification was stored.
    """
    providers = ctx.registry.callback_providers(name)
    if not providers:
        await _put_aside(ctx, name, callback, "unknown_connection")
        return
    hints = [(each, provider.parse_callback(callback)) for each, provider in providers.items()]
    readable = [(each, hint) for each, hint in hints if hint is not None]
    if not readable:
        await _put_aside(ctx, name, callback, "unreadable")
        return
    for connection, hint in readable:
        subject = await _find(ctx, connection, reference, hint)
        if isinstance(subject, Payment):
            await poll_payment(ctx, subject)
            return
        if subject is not None:
            await poll_refund(ctx, subject)
            return
    await _put_aside(ctx, name, callback, "no_match")


async def _find(
    ctx: AppContext, connection: str, reference: str | None, hint: CallbackReference
) -> Payment | Refund | None:
    """By our reference (in the address, in the body), else by the operator's. Always of this connection only."""
    for named in (reference, hint.reference):
        if named is not None and (ours := as_uuid(named)):
            payment = await payments.by_callback_reference(ctx.db, connection, ours)
            if payment is not None:
                return payment
            refund = await refunds.by_callback_reference(ctx.db, connection, ours)
            if refund is not None:
                return refund
    if hint.provider_reference is not None:
        payment = await payments.by_provider_ref(ctx.db, connection, hint.provider_reference)
        return payment or await refunds.by_provider_ref(ctx.db, connection, hint.provider_reference)
    return None


async def _put_aside(ctx: AppContext, name: str, callback: Callback, reason: str) -> None:
    log.warning("callback.stray", connection=name, reason=reason)
    text = callback.body[:_KEPT_BODY].decode("utf-8", "replace").replace("\0", "")
    await incidents.store_unmatched_callback(ctx.db, name[:64], callback.path[:500], text, reason, ctx.clock.now())
