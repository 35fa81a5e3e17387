"""What a live key does to its merchant's webhooks and links leaves a row in the team's activity, and the owners get a
mail: whoever has the secret can sign false webhooks, and whoever moves the address gets the true ones.

Changes leave a row each, reads one an hour and key. What touches neither secret nor address causes no mail. Otherwise a
key causes a mail an hour at most: a change that comes while one
was sent in the last hour is told when that has passed, so that no read before it can hide it.
"""

from collections.abc import Sequence
from typing import Final

from guichet.accounts import users
from guichet.clock import HOUR, Instant, later
from guichet.context import AppContext
from guichet.db.engine import Transaction
from guichet.domain.audit_log import ActRefused
from guichet.domain.errors import Conflict
from guichet.domain.events import Delivery
from guichet.domain.ids import ApiKeyId
from guichet.domain.merchants import ApiKey, Caller
from guichet.domain.payment_links import PaymentLink
from guichet.domain.refusals import Refusal
from guichet.links import repository as link_repository
from guichet.mail.outbox import Outbox
from guichet.merchants import key_acts
from guichet.merchants.key_acts import KeyAction
from guichet.webhooks import endpoints, resend
from guichet.webhooks.endpoints import Configuration

READ: Final[KeyAction] = "webhook_secret.shown"
CHANGED: Final[KeyAction] = "webhook_endpoint.changed"
ROTATED: Final[KeyAction] = "webhook_secret.rotated"


async def read_endpoint(ctx: AppContext, caller: Caller) -> Configuration:
    """The endpoint with its secret, once it is written down that the key read it."""
    now, key_id = ctx.clock.now(), _live_key(caller)
    if key_id is not None and _an_hour_ago(await key_acts.secret_read_at(ctx.db, key_id), now):
        async with ctx.db.transaction() as tx:
            await _record(ctx, tx, caller, key_id, [READ], None, now)
    return await endpoints.read(ctx.db, ctx.vault, caller.merchant.id, caller.env)


async def configure_endpoint(
    ctx: AppContext, caller: Caller, url: str | None, *, rotate: bool, overlap_hours: int
) -> Configuration:
    """As `endpoints.configure`. The answer holds the secret, so a request that changes nothing has read it."""
    now, key_id = ctx.clock.now(), _live_key(caller)
    async with ctx.db.transaction() as tx:
        before, configured = await endpoints.change(
            tx, ctx.vault, caller.merchant.id, caller.env, url, now, rotate=rotate, overlap_hours=overlap_hours
        )
        if key_id is not None:
            acts = [act for act, done in ((CHANGED, before != url), (ROTATED, rotate)) if done]
            await _record(ctx, tx, caller, key_id, acts or [READ], url, now)
    return configured


async def resend_delivery(ctx: AppContext, caller: Caller, delivery: Delivery) -> None:
    """As `resend.make_due`, with a row in the team's activity. Raises Conflict."""
    now, key_id = ctx.clock.now(), _live_key(caller)
    try:
        async with ctx.db.transaction() as tx:
            url = await resend.make_due(tx, delivery, now)
            if key_id is not None:
                await key_acts.add(tx, caller.merchant.id, key_id, "delivery.resent", url, now)
    except ActRefused as error:
        if error.message.code == Refusal.NO_ENDPOINT:
            raise Conflict(
                "Aucun point de terminaison n'est configuré : enregistrez une adresse d'abord.",
                reason="endpoint_disabled",
            ) from None
        raise Conflict(
            "Des tentatives sont encore à faire pour cet envoi : attendez-en la fin.", reason="delivery_pending"
        ) from None


async def close_link(ctx: AppContext, caller: Caller, link: PaymentLink) -> PaymentLink:
    """The link, closed from now on, with a row in the team's activity; one that has ended stays as it is."""
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        closed = await link_repository.close(tx, link, now)
        if closed is not None and caller.key_id is not None:
            await key_acts.add(tx, caller.merchant.id, caller.key_id, "link.closed", None, now)
    return closed or link


def _live_key(caller: Caller) -> ApiKeyId | None:
    return caller.key_id if caller.livemode else None


def _an_hour_ago(at: Instant | None, now: Instant) -> bool:
    return at is None or later(at, HOUR) <= now


async def _record(
    ctx: AppContext,
    tx: Transaction,
    caller: Caller,
    key_id: ApiKeyId,
    acts: Sequence[KeyAction],
    url: str | None,
    now: Instant,
) -> None:
    key = await key_acts.lock_key(tx, key_id)
    is_read = READ in acts
    if is_read and not _an_hour_ago(key.secret_read_at, now):
        return
    for act in acts:
        await key_acts.add(tx, caller.merchant.id, key_id, act, url if act == CHANGED else None, now)
    due = _mail_due(key, now, is_read=is_read)
    if due is not None:
        await _mail_owners(ctx, tx, caller, key, acts[0], now, due)
    await key_acts.note(tx, key_id, now if is_read else key.secret_read_at, due or key.owners_mailed_at)


def _mail_due(key: ApiKey, now: Instant, *, is_read: bool) -> Instant | None:
    """When the owners are mailed about an act of now; None if they are not."""
    if key.owners_mailed_at is None or _an_hour_ago(key.owners_mailed_at, now):
        return now
    if is_read or key.owners_mailed_at > now:  # One about a change waits already.
        return None
    return later(key.owners_mailed_at, HOUR)


async def _mail_owners(
    ctx: AppContext, tx: Transaction, caller: Caller, key: ApiKey, act: KeyAction, now: Instant, due: Instant
) -> None:
    """Everybody of the team who may revoke the key."""
    merchant, outbox = caller.merchant, Outbox(ctx.vault)
    link = f"{ctx.settings.public_url}/console/{merchant.id}/live/activity"
    for role, owner in await users.team(tx, merchant.id):
        if role == "owner" and owner.status == "active":
            values = {"name": owner.name, "place": merchant.name, "key": key.label, "deed": act, "date": str(now)}
            if merchant.time_zone is not None:
                values["zone"] = merchant.time_zone
            await outbox.add(tx, owner, "key_used_on_webhooks", {**values, "link": link}, now, due)
