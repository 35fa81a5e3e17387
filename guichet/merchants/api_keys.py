"""API keys: their form, what is stored of them, and who is calling (docs/contract.md, "Authentication"; D39)."""

import hashlib
import json
import re
from collections.abc import Collection
from functools import partial
from typing import Final

from sqlalchemy import bindparam, func, insert, select, update

from guichet.clock import Clock, Instant
from guichet.db.engine import Database, Reader, Transaction, Writer, require
from guichet.db.read_cache import ReadCache
from guichet.db.sql_functions import equal, is_listed, params
from guichet.db.tables import api_keys, merchants
from guichet.domain.errors import KeyExpired, MerchantInactive, Unauthorized
from guichet.domain.ids import ApiKeyId, MerchantId
from guichet.domain.key_access import UNRESTRICTED, KeyAccess, networks_of
from guichet.domain.merchants import ApiKey, Caller, Environment, Merchant, key_label, random_text

_KEY: Final = re.compile(r"sk_(test|live)_[A-Za-z0-9]{32}")

_INSERT_KEY: Final = (
    insert(api_keys)
    .values(
        **params("merchant_id", "env", "hash", "preview", "expires_at", "scopes", "networks", "name"),
        created_at=bindparam("now"),
    )
    .returning(*api_keys.c)
)
_KEYS_OF: Final = select(api_keys).where(api_keys.c.merchant_id == bindparam("merchant_id")).order_by(api_keys.c.id)
_OF_ENV: Final = equal(api_keys, "merchant_id", env="environment")
_EXPIRING: Final = (
    select(api_keys.c.preview, api_keys.c.name, api_keys.c.expires_at)
    .where(
        *_OF_ENV,
        api_keys.c.revoked_at.is_(None),
        api_keys.c.expires_at.between(bindparam("since"), bindparam("until")),
    )
    .order_by(api_keys.c.id)
)
_NEWEST: Final = select(api_keys).where(*_OF_ENV).order_by(api_keys.c.id.desc()).limit(bindparam("most"))
_NOT_REVOKED: Final = _NEWEST.where(api_keys.c.revoked_at.is_(None))
_REVOKED: Final = _NEWEST.where(api_keys.c.revoked_at.is_not(None))
_FIND: Final = select(api_keys).where(*_OF_ENV, api_keys.c.id == bindparam("key_id"))
_BY_ID: Final = select(api_keys).where(api_keys.c.id == bindparam("key_id"))
_LABELS: Final = select(api_keys.c.id, api_keys.c.preview, api_keys.c.name).where(is_listed(api_keys.c.id, "ids"))
_EXPIRE: Final = (
    update(api_keys)
    .where(
        api_keys.c.id == bindparam("key_id"),
        api_keys.c.revoked_at.is_(None),
        func.coalesce(api_keys.c.expires_at, bindparam("end")) > bindparam("now"),
        func.coalesce(api_keys.c.expires_at, 0) != bindparam("end"),
    )
    .values(expires_at=bindparam("end"))
    .returning(*api_keys.c)
)
_REVOKE: Final = (
    update(api_keys)
    .where(api_keys.c.id == bindparam("key_id"), api_keys.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("now"))
    .returning(*api_keys.c)
)
_CALLER: Final = (
    select(api_keys.c.id, api_keys.c.env, api_keys.c.expires_at, api_keys.c.scopes, api_keys.c.networks, *merchants.c)
    .join(merchants, merchants.c.id == api_keys.c.merchant_id)
    .where(api_keys.c.hash == bindparam("hash"), api_keys.c.revoked_at.is_(None))
)


def new_key(env: Environment) -> str:
    return f"sk_{env}_{random_text(32)}"


def key_env(key: str) -> str | None:
    """The environment a key claims by its prefix; None if it is malformed."""
    match = _KEY.fullmatch(key)
    return match[1] if match else None


def key_hash(key: str) -> str:
    """190 random bits need no salt and no slow hash."""
    return hashlib.sha256(key.encode()).hexdigest()


def key_preview(key: str) -> str:
    return key[:12] + "…"


async def add(
    tx: Transaction,
    merchant_id: MerchantId,
    env: Environment,
    key: str,
    expires_at: Instant | None,
    now: Instant,
    access: KeyAccess = UNRESTRICTED,
    name: str | None = None,
) -> ApiKey:
    row = await tx.write(
        _INSERT_KEY,
        merchant_id=merchant_id,
        env=env,
        hash=key_hash(key),
        preview=key_preview(key),
        expires_at=expires_at,
        scopes=access.scopes,
        networks=access.networks,
        name=name,
        now=now,
    )
    return ApiKey(*require(row))


async def list_of(db: Database, merchant_id: MerchantId) -> list[ApiKey]:
    return [ApiKey(*row) for row in await db.all(_KEYS_OF, merchant_id=merchant_id)]


async def expiring(
    db: Reader, merchant_id: MerchantId, env: Environment, since: Instant, until: Instant
) -> list[tuple[str, Instant]]:
    """The labels and the ends of the keys that expire between two instants, both included, and are not revoked.
    Cost: all keys that the merchant ever had."""
    rows = await db.all(_EXPIRING, merchant_id=merchant_id, environment=env, since=since, until=until)
    return [(key_label(preview, name), expires_at) for preview, name, expires_at in rows]


async def not_revoked(db: Reader, merchant_id: MerchantId, env: Environment, most: int) -> list[ApiKey]:
    """The keys that are not revoked, newest first. Cost: all keys that the merchant ever had."""
    rows = await db.all(_NOT_REVOKED, merchant_id=merchant_id, environment=env, most=most)
    return [ApiKey(*row) for row in rows]


async def revoked(db: Reader, merchant_id: MerchantId, env: Environment, most: int) -> list[ApiKey]:
    """The newest keys that were revoked. Cost: as `not_revoked`."""
    rows = await db.all(_REVOKED, merchant_id=merchant_id, environment=env, most=most)
    return [ApiKey(*row) for row in rows]


async def find(db: Reader, merchant_id: MerchantId, env: Environment, key_id: ApiKeyId) -> ApiKey | None:
    return await db.one_as(ApiKey, _FIND, merchant_id=merchant_id, environment=env, key_id=key_id)


async def by_id(db: Reader, key_id: ApiKeyId) -> ApiKey | None:
    """Whoever's it is: for the staff."""
    return await db.one_as(ApiKey, _BY_ID, key_id=key_id)


async def labels(db: Reader, key_ids: Collection[ApiKeyId]) -> dict[ApiKeyId, str]:
    """How people recognise these keys. Cost: those rows."""
    rows = await db.all(_LABELS, ids=json.dumps(sorted(key_ids))) if key_ids else []
    return {key_id: key_label(preview, name) for key_id, preview, name in rows}


async def expire(db: Writer, key_id: ApiKeyId, end: Instant, now: Instant) -> ApiKey | None:
    """None when the key works no more, or has this end already."""
    return await db.write_as(ApiKey, _EXPIRE, key_id=key_id, end=end, now=now)


async def revoke(db: Writer, key_id: ApiKeyId, now: Instant) -> ApiKey | None:
    """None when there is no such key, or it was revoked before: the first revocation's time stays."""
    return await db.write_as(ApiKey, _REVOKE, key_id=key_id, now=now)


async def caller_by_hash(db: Database, hashed: str) -> tuple[Caller, Instant | None] | None:
    """Who a key that is not revoked belongs to, and when it expires. One index probe."""
    row = await db.one(_CALLER, hash=hashed)
    if row is None:
        return None
    key_id, env, expires_at, scopes, networks, *merchant = row
    return Caller(Merchant(*merchant), env, key_id, scopes, networks_of(networks)), expires_at


class Authenticator:
    """Finds the caller of a key. A known key is remembered for less than a second, an unknown one not at all."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._clock = clock
        self._known = ReadCache(clock, partial(caller_by_hash, db))

    async def caller(self, header: str | None) -> Caller:
        """The caller named by an `Authorization` header.

        Raises Unauthorized (absent, malformed, unknown, revoked), KeyExpired, MerchantInactive (live keys only).
        """
        scheme, _, key = (header or "").partition(" ")
        key = key.strip()
        if scheme.lower() != "bearer" or key_env(key) is None:
            raise Unauthorized
        entry = await self._known.get(key_hash(key))
        if entry is None:
            raise Unauthorized
        caller, expires_at = entry
        if expires_at is not None and expires_at <= self._clock.now():
            raise KeyExpired
        if caller.env == "live" and caller.merchant.status != "active":
            raise MerchantInactive
        return caller
