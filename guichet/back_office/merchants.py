"""Creating a merchant and changing its status, its name and its time zone."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

from guichet.audit_log import entries as audit_log
from guichet.back_office.errors import NewerMerchant
from guichet.clock import Clock
from guichet.context import AppContext
from guichet.db.engine import Database, Reader, Transaction
from guichet.domain.audit_log import Act, Actor, Facts
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import ENVS, Environment, Merchant, MerchantStatus, new_webhook_secret
from guichet.domain.money import Currency
from guichet.merchants import api_keys
from guichet.merchants import repository as merchants
from guichet.merchants.api_keys import new_key

_NO_ID: Final = 2**63 - 1


async def create_merchant(
    ctx: AppContext,
    name: str,
    status: MerchantStatus = "active",
    currency: Currency = "XOF",
    keys: Mapping[Environment, str] | None = None,
    actor: Actor | None = None,
    after: int | None = None,
) -> tuple[Merchant, dict[Environment, str]]:
    """Creates a merchant with an API key, a webhook endpoint and a wallet for each environment.

    Returns the merchant and its keys by environment, which are stored only as hashes. `keys` are new unless given; an
    empty mapping makes none. `actor`: the person who creates it; None for the demonstration merchant. `after`: the
    newest merchant when the person asked, so that one form makes one merchant; only with an actor.

    Raises NewerMerchant.
    """
    now = ctx.clock.now()
    secrets = {env: ctx.vault.encrypt(new_webhook_secret()) for env in ENVS}
    keys = dict(keys) if keys is not None else {env: new_key(env) for env in ENVS}
    async with ctx.db.transaction() as tx:
        merchant = await merchants.create(tx, name, status, currency, secrets, now)
        for env, key in keys.items():
            await api_keys.add(tx, merchant.id, env, key, None, now)
        if actor is not None:
            facts: Facts = {"name": name, "status": status, "currency": currency}
            act = Act(actor, "merchant.created", "merchant", str(merchant.id), merchant.id, after=facts)
            await audit_log.record(tx, act, now)
            # From the entry on, whoever else creates a merchant waits: what is read here is what is there.
            if after is not None and after != await newest(tx, besides=merchant.id):
                raise NewerMerchant
    return merchant, keys


async def newest(db: Reader, besides: MerchantId | None = None) -> int:
    """The id of the merchant that was created last; 0 if there is none."""
    latest = await merchants.page(db, _NO_ID)
    return next((each.id for each in latest if each.id != besides), 0)


async def set_status(
    db: Database, clock: Clock, merchant_id: MerchantId, status: MerchantStatus, actor: Actor, reason: str = ""
) -> Merchant | None:
    """Live keys work only while it is `active`. None if there is no such merchant, as for all functions here."""

    async def change(tx: Transaction) -> Merchant | None:
        return await merchants.set_status(tx, merchant_id, status)

    return await _change(db, clock, merchant_id, change, "status", actor, reason)


async def set_name(db: Database, clock: Clock, merchant_id: MerchantId, name: str, actor: Actor) -> Merchant | None:
    """`name`: as `domain.merchants.merchant_name` gives it."""

    async def change(tx: Transaction) -> Merchant | None:
        return await merchants.set_name(tx, merchant_id, name)

    return await _change(db, clock, merchant_id, change, "name", actor)


async def set_time_zone(
    db: Database, clock: Clock, merchant_id: MerchantId, zone: str | None, actor: Actor
) -> Merchant | None:
    """`zone`: the name of a time zone that exists; None for the installation's."""

    async def change(tx: Transaction) -> Merchant | None:
        return await merchants.set_time_zone(tx, merchant_id, zone)

    return await _change(db, clock, merchant_id, change, "time_zone", actor)


async def _change(
    db: Database,
    clock: Clock,
    merchant_id: MerchantId,
    change: Callable[[Transaction], Awaitable[Merchant | None]],
    field: Literal["status", "name", "time_zone"],
    actor: Actor,
    reason: str = "",
) -> Merchant | None:
    """The audit log gets the field before and after."""
    async with db.transaction() as tx:
        before = await merchants.lock(tx, merchant_id)
        changed = await change(tx) if before else None
        if before is None or changed is None:
            return None
        act = Act(
            actor, f"merchant.{field}_changed", "merchant", str(merchant_id), merchant_id, reason,
            before={field: getattr(before, field)}, after={field: getattr(changed, field)},
        )  # fmt: skip
        await audit_log.record(tx, act, clock.now())
    return changed
