"""What the staff change of a merchant: status, name, time zone, own limits, the state of its live wallet (D24); and
payment modes and fees."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import structs

from guichet.audit_log import entries as audit_log
from guichet.back_office.errors import ClosedForEverybody, NewerMerchant, UnknownOperator
from guichet.clock import Clock
from guichet.context import AppContext
from guichet.db.engine import Database, Reader
from guichet.domain.audit_log import Act, Actor, ActRefused, Facts
from guichet.domain.catalogue import Catalogue, ModeOverride, PaymentMode
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import ENVS, Environment, Merchant, MerchantLimits, MerchantStatus, new_webhook_secret
from guichet.domain.money import MIN_AMOUNT, Currency, Hundredths, parse_typed
from guichet.domain.posting_rules import WalletStatus
from guichet.domain.refusals import Refusal
from guichet.ledger import wallets
from guichet.merchants import api_keys
from guichet.merchants import repository as merchants
from guichet.merchants.api_keys import new_key
from guichet.merchants.catalogue import Catalogues, set_override

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
    return next((merchant.id for merchant in latest if merchant.id != besides), 0)


async def set_status(
    db: Database, clock: Clock, merchant_id: MerchantId, status: MerchantStatus, actor: Actor, reason: str = ""
) -> Merchant:
    """Live keys work only while it is `active`. Raises ActRefused without such a merchant, as all functions here."""
    return await _change(db, clock, merchant_id, "status", {"status": status}, actor, reason)


async def set_name(db: Database, clock: Clock, merchant_id: MerchantId, name: str, actor: Actor) -> Merchant:
    """`name`: as `domain.merchants.merchant_name` gives it."""
    return await _change(db, clock, merchant_id, "name", {"name": name}, actor)


async def set_time_zone(
    db: Database, clock: Clock, merchant_id: MerchantId, zone: str | None, actor: Actor
) -> Merchant:
    """`zone`: the name of a time zone that exists; None for the installation's."""
    return await _change(db, clock, merchant_id, "time_zone", {"time_zone": zone}, actor)


async def _change(
    db: Database,
    clock: Clock,
    merchant_id: MerchantId,
    what: Literal["status", "name", "time_zone", "limits"],
    after: Facts,
    actor: Actor,
    reason: str = "",
) -> Merchant:
    """`after`: fields of the merchant. The audit log gets them, before and after; of the limits, those that change."""
    async with db.transaction() as tx:
        merchant = await merchants.lock(tx, merchant_id)
        if merchant is None:
            raise ActRefused(Refusal.NO_MERCHANT(merchant=merchant_id))
        before: Facts = {name: getattr(merchant, name) for name in after}
        if what == "limits":
            names = [name for name in after if before[name] != after[name]]
            before, after = ({name: facts[name] for name in names} for facts in (before, after))
        if after:
            merchant = structs.replace(merchant, **{str(name): value for name, value in after.items()})
            await merchants.store(tx, merchant)
            act = Act(
                actor, f"merchant.{what}_changed", "merchant", str(merchant_id), merchant_id, reason, before, after
            )
            await audit_log.record(tx, act, clock.now())
    return merchant


MAX_RATE: Final = 100_000
#: Of a day, in hundredths: enough for any merchant, and far below what a database's integer holds.
_MAX_AMOUNT: Final = 10**15


def read_rate(text: str) -> int | None:
    """Requests a minute, 1 to MAX_RATE; None for any other text."""
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        return None
    rate = int(text)
    return rate if 1 <= rate <= MAX_RATE else None


def read_amount(text: str) -> Hundredths | None:
    """A limit typed in the currency's unit, with or without spaces; None for any other text."""
    amount = parse_typed(text, 2)
    return Hundredths(amount) if amount is not None and MIN_AMOUNT <= amount <= _MAX_AMOUNT else None


async def set_limits(
    db: Database, clock: Clock, merchant_id: MerchantId, limits: MerchantLimits, actor: Actor, reason: str = ""
) -> Merchant:
    """The merchant with these limits, None among them for the common ones.

    Servers follow within a second, and a merchant's own rate of requests with its next request.
    """
    facts: Facts = {
        "rate_limit": limits.rate_limit,
        "payment_limit": limits.payment_limit,
        "daily_limit": limits.daily_limit,
    }
    return await _change(db, clock, merchant_id, "limits", facts, actor, reason)


async def current_catalogue(ctx: AppContext, merchant_id: MerchantId | None) -> Catalogue:
    """The catalogue as it is now; the cached one of the service may be a second old. None: without a merchant's own
    settings."""
    return await Catalogues(ctx.db, ctx.clock, ctx.catalogues.base).of(merchant_id)


def find_mode(catalogue: Catalogue, operator: str) -> PaymentMode:
    """Raises UnknownOperator."""
    mode = catalogue.by_operator(operator)
    if mode is None:
        raise UnknownOperator(operator)
    return mode


async def change_mode(ctx: AppContext, change: ModeOverride, actor: Actor, reason: str = "") -> PaymentMode:
    """Lays `change` over what is set already, and returns the mode as it is from now on. What is None stays.

    Raises UnknownOperator, ClosedForEverybody.
    """
    mode = find_mode(await current_catalogue(ctx, change.merchant_id), change.operator)
    for_one = change.merchant_id is not None
    if change.active and for_one and not find_mode(await current_catalogue(ctx, None), mode.operator).active:
        raise ClosedForEverybody(mode.operator)
    overrides: Facts = {"active": change.active, "fee_percent": change.fee_percent, "fee_fixed": change.fee_fixed}
    facts: Facts = {name: value for name, value in overrides.items() if value is not None}
    before: Facts = {name: getattr(mode, name) for name in facts}
    act = Act(actor, "mode.changed", "mode", mode.operator, change.merchant_id, reason, before=before, after=facts)
    async with ctx.db.transaction() as tx:
        await set_override(tx, structs.replace(change, operator=mode.operator))
        await audit_log.record(tx, act, ctx.clock.now())
    return find_mode(await current_catalogue(ctx, change.merchant_id), mode.operator)


async def change_status(
    db: Database,
    clock: Clock,
    merchant_id: MerchantId,
    currency: Currency,
    status: WalletStatus,
    actor: Actor,
    reason: str,
) -> None:
    """In one transaction with the entry of the audit log; nothing is done if the wallet has this status already, so
    that a form that is sent again is one act. What was suspended is posted by the worker once the wallet is `Actif`
    again (`ledger/suspense.py`)."""
    now = clock.now()
    async with db.transaction() as tx:
        before = (await wallets.lock(tx, merchant_id, "live", currency, now)).status
        if before == status:
            return
        await wallets.set_wallet_status(tx, merchant_id, "live", currency, status, now)
        old: Facts = {"status": before}
        new: Facts = {"status": status}
        act = Act(actor, "wallet.status_changed", "wallet", currency, merchant_id, reason, old, new)
        await audit_log.record(tx, act, now)
