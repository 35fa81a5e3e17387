"""The caller of the API, found by its key (docs/contract.md, "Authentication")."""

from guichet.clock import Clock, Instant
from guichet.db.engine import Database
from guichet.domain.errors import KeyExpired, MerchantInactive, Unauthorized
from guichet.domain.merchants import Caller, key_env, key_hash
from guichet.merchants import repository as merchants
from guichet.merchants.ttl_cache import TtlCache


class Authenticator:
    """Looks keys up by their hash and remembers them for less than a second (D39)."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._clock = clock

        async def load(hashed: str) -> tuple[Caller, Instant | None] | None:
            return await merchants.caller_by_hash(db, hashed)

        self._callers: TtlCache[str, tuple[Caller, Instant | None]] = TtlCache(clock, load)

    async def caller(self, header: str | None) -> Caller:
        """The caller named by an `Authorization` header.

        Raises Unauthorized (absent, malformed, unknown, revoked), KeyExpired, MerchantInactive (live keys only).
        """
        scheme, _, key = (header or "").partition(" ")
        key = key.strip()
        if scheme.lower() != "bearer" or key_env(key) is None:
            raise Unauthorized
        found = await self._callers.get(key_hash(key))
        if found is None:
            raise Unauthorized
        caller, expires_at = found
        if expires_at is not None and expires_at <= self._clock.now():
            raise KeyExpired
        if caller.livemode and caller.merchant.status != "active":
            raise MerchantInactive
        return caller
