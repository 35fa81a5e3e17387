"""Merchants, API keys, webhook endpoints. Every statement goes through a primary key or a unique index."""

import json
from collections.abc import Collection
from typing import Final

from sqlalchemy import bindparam, case, func, insert, select, text, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Transaction, require
from guichet.db.sql_functions import equal, is_listed, params
from guichet.db.tables import merchants, wallets, webhook_endpoints
from guichet.domain.events import Endpoint
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import ENVS, Environment, Merchant, MerchantStatus, new_webhook_secret
from guichet.domain.money import Currency
from guichet.domain.posting_rules import ACTIVE
from guichet.merchants.vault import Vault

#: Merchants that one page lists.
PAGE: Final = 25

_INSERT: Final = (
    insert(merchants)
    .values(**params("name", "status", "currency"), created_at=bindparam("now"))
    .returning(*merchants.c)
)
_BY_ID: Final = select(merchants).where(merchants.c.id == bindparam("id"))
_ALL: Final = select(merchants).order_by(merchants.c.id)
_NAMES: Final = select(merchants.c.id, merchants.c.name).where(is_listed(merchants.c.id, "ids"))
_THIS: Final = update(merchants).where(merchants.c.id == bindparam("merchant"))
_CHANGEABLE: Final = ("name", "status", "time_zone", "rate_limit", "payment_limit", "daily_limit")
_STORE: Final = _THIS.values({name: bindparam(f"new_{name}") for name in _CHANGEABLE})
#: In the words of its partial index.
_HOUSE: Final = select(merchants.c.id).where(text("is_house"))
_MAKE_HOUSE: Final = _THIS.values(is_house=True)
#: Rows that refer to the merchant can be inserted meanwhile. An act that has the head of the audit log does that, and
#: whoever locked the merchant waits for that head.
_LOCK: Final = _BY_ID.with_for_update(key_share=True)
_PAGE: Final = (
    select(merchants).where(merchants.c.id < bindparam("before")).order_by(merchants.c.id.desc()).limit(PAGE + 1)
)
_NAMED: Final = (
    select(merchants)
    .where(merchants.c.id < bindparam("before"), merchants.c.name.ilike(bindparam("pattern"), escape="\\"))
    .order_by(merchants.c.id.desc())
    .limit(PAGE + 1)
)
_PENDING: Final = (
    select(merchants).where(merchants.c.status == text("'pending'")).order_by(merchants.c.id).limit(PAGE + 1)
)

_INSERT_ENDPOINT: Final = insert(webhook_endpoints).values(
    **params("merchant_id", "env", "secret"), url=None, updated_at=bindparam("now")
)
_INSERT_WALLET: Final = insert(wallets).values(
    **params("merchant_id", "env", "currency"), status=ACTIVE, balance=0, updated_at=bindparam("now")
)
_ENDPOINT_KEY: Final = equal(webhook_endpoints, merchant_id="merchant", env="environment")
_ENDPOINT: Final = select(webhook_endpoints).where(*_ENDPOINT_KEY)
_LOCK_ENDPOINT: Final = _ENDPOINT.with_for_update()
_NEW_SECRET: Final = bindparam("new_secret", type_=webhook_endpoints.c.secret.type)
_OVERLAPS_UNTIL: Final = bindparam("overlaps_until", type_=webhook_endpoints.c.old_secret_until.type)
_SET_URL: Final = (
    update(webhook_endpoints)
    .where(*_ENDPOINT_KEY)
    .values(
        url=bindparam("new_url"),
        secret=func.coalesce(_NEW_SECRET, webhook_endpoints.c.secret),
        updated_at=bindparam("now"),
        # Where the secret changes: the old one overlaps, or ends at once.
        old_secret=case(
            (_NEW_SECRET.is_(None), webhook_endpoints.c.old_secret),
            (_OVERLAPS_UNTIL.is_(None), None),
            else_=webhook_endpoints.c.secret,
        ),
        old_secret_until=case((_NEW_SECRET.is_(None), webhook_endpoints.c.old_secret_until), else_=_OVERLAPS_UNTIL),
    )
    .returning(*webhook_endpoints.c)
)


async def create(
    tx: Transaction,
    name: str,
    status: MerchantStatus,
    currency: Currency,
    encrypted_secrets: dict[Environment, str],
    now: Instant,
) -> Merchant:
    """A merchant with, in each environment, its webhook secret (D33) and a wallet in its default currency."""
    row = await tx.write(_INSERT, name=name, status=status, currency=currency, now=now)
    merchant = Merchant(*require(row))
    for env in ENVS:
        await tx.write(_INSERT_ENDPOINT, merchant_id=merchant.id, env=env, secret=encrypted_secrets[env], now=now)
        await tx.write(_INSERT_WALLET, merchant_id=merchant.id, env=env, currency=currency, now=now)
    return merchant


async def house_merchant_id(db: Reader) -> MerchantId | None:
    """The merchant that stands for the service itself; None while nothing belongs to it."""
    return await db.one_as(MerchantId, _HOUSE)


async def house_merchant(tx: Transaction, vault: Vault, now: Instant) -> MerchantId:
    """As `house_merchant_id`; made when something first belongs to it. Of two processes that make it, one fails:
    `uq_merchants_house`."""
    existing = await house_merchant_id(tx)
    if existing is not None:
        return existing
    secrets = {env: vault.encrypt(new_webhook_secret()) for env in ENVS}
    created = await create(tx, "Guichet", "active", "XOF", secrets, now)
    await tx.write(_MAKE_HOUSE, merchant=created.id)
    return created.id


async def get(db: Reader, merchant_id: MerchantId) -> Merchant | None:
    return await db.one_as(Merchant, _BY_ID, id=merchant_id)


async def names(db: Reader, merchant_ids: Collection[MerchantId]) -> dict[MerchantId, str]:
    """Their names, by id: for lists of the staff."""
    return dict(await db.all(_NAMES, ids=json.dumps(sorted(merchant_ids)))) if merchant_ids else {}


async def all_merchants(db: Database) -> list[Merchant]:
    """Grows with the number of merchants; for the command line."""
    return [Merchant(*row) for row in await db.scan(_ALL)]


async def lock(tx: Transaction, merchant_id: MerchantId) -> Merchant | None:
    """The merchant, whom no other transaction changes until the end of this one."""
    return await tx.one_as(Merchant, _LOCK, id=merchant_id)


async def page(db: Reader, before: int) -> list[Merchant]:
    """The merchants with an id below `before`, newest first: at most PAGE and one more, which says that others
    follow."""
    return [Merchant(*row) for row in await db.all(_PAGE, before=before)]


async def named(db: Database, part: str, before: int) -> list[Merchant]:
    """As `page`, those whose name contains `part`. Reads merchants until the page is full: 30 ms for 100 000 of them,
    beside the loop."""
    escaped = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return [Merchant(*row) for row in await db.scan(_NAMED, pattern=f"%{escaped}%", before=before)]


async def waiting(db: Reader) -> list[Merchant]:
    """Merchants that are not accepted yet, the oldest first: at most PAGE and one more. Reads only those."""
    return [Merchant(*row) for row in await db.all(_PENDING)]


async def store(tx: Transaction, merchant: Merchant) -> None:
    """Its name, status, time zone and limits as they are in `merchant`, which `lock` gave in this transaction."""
    await tx.write(_STORE, merchant=merchant.id, **{f"new_{name}": getattr(merchant, name) for name in _CHANGEABLE})


async def endpoint(db: Reader, merchant_id: MerchantId, env: Environment) -> Endpoint:
    """There is one for each merchant and environment from its creation on; its `url` may be None."""
    row = await db.one(_ENDPOINT, merchant=merchant_id, environment=env)
    return Endpoint(*require(row))


async def lock_endpoint(tx: Transaction, merchant_id: MerchantId, env: Environment) -> Endpoint:
    """The same, which no other transaction changes until the end of this one."""
    return Endpoint(*require(await tx.one(_LOCK_ENDPOINT, merchant=merchant_id, environment=env)))


async def configure_endpoint(
    tx: Transaction,
    merchant_id: MerchantId,
    env: Environment,
    url: str | None,
    new_secret: str | None,
    now: Instant,
    overlaps_until: Instant | None = None,
) -> Endpoint:
    """`new_secret` (encrypted) replaces the secret, which goes on signing by the standard until `overlaps_until`; None
    keeps it."""
    row = await tx.one(
        _SET_URL,
        merchant=merchant_id,
        environment=env,
        new_url=url,
        new_secret=new_secret,
        now=now,
        overlaps_until=overlaps_until,
    )
    return Endpoint(*require(row))
