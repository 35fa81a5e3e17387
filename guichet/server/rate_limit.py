"""So many requests a minute for one client address, in a sliding window (docs/contract.md, "Limits"; D40)."""

import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers
from starlette.types import Scope

from guichet import metrics
from guichet.clock import SECOND, SystemClock
from guichet.logs import log
from guichet.settings import Network

#: Seconds Redis may take to count a request, and seconds it is left alone once it did not.
REDIS_TIMEOUT: Final = 0.25
REDIS_RETRY: Final = 2.0
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Allowance:
    """`remaining` requests are left in the window; `retry_after` (seconds) is 0 unless the request is refused."""

    allowed: bool
    remaining: int
    retry_after: int


class RateLimiter:
    """Counts in Redis when there is one, so that the limit is exact across processes, else in this process's memory.

    `per_minute` 0 switches it off. While Redis is away each process counts for itself, and payments go on.
    """

    def __init__(
        self, per_minute: int, trusted_proxies: Sequence[Network], name: str, shared: RedisStorage | None = None
    ) -> None:
        self.per_minute: Final = per_minute
        self._name = name
        self._trusted = trusted_proxies
        self._item = RateLimitItemPerMinute(max(1, per_minute))
        self._local = MovingWindowRateLimiter(MemoryStorage())
        self._shared = None if shared is None else MovingWindowRateLimiter(shared)
        self._away_until = 0.0
        self._refused = metrics.RATE_LIMITED.labels(name)

    async def take(self, scope: Scope) -> Allowance | None:
        """Counts this request; None when the limit is off."""
        if not self.per_minute:
            return None
        address = client_address(scope, self._trusted)
        if self._shared is not None and time.monotonic() >= self._away_until:
            try:
                return await self._hit(self._shared, address)
            except self._shared.storage.base_exceptions as error:
                self._away_until = time.monotonic() + REDIS_RETRY
                log.error("ratelimit.redis_away", error=repr(error), limit="counted by each process meanwhile")
        return await self._hit(self._local, address)

    async def _hit(self, window: MovingWindowRateLimiter, address: str) -> Allowance:
        allowed = await window.hit(self._item, self._name, address)
        if not allowed:
            self._refused.inc()
        stats = await window.get_window_stats(self._item, self._name, address)
        retry_after = 0 if allowed else max(1, math.ceil(stats.reset_time - SystemClock().now() / SECOND))
        return Allowance(allowed, stats.remaining, retry_after)


@asynccontextmanager
async def shared_counters(redis_url: str | None) -> AsyncIterator[RedisStorage | None]:
    """Counters in Redis for all processes, closed at the end; None without an address."""
    if redis_url is None:
        yield None
        return
    storage = RedisStorage(
        f"async+{redis_url}",
        implementation="redispy",
        key_prefix="guichet",
        socket_timeout=REDIS_TIMEOUT,
        socket_connect_timeout=REDIS_TIMEOUT,
    )
    try:
        yield storage
    finally:
        await storage.bridge.get_connection().aclose()  # type: ignore[attr-defined]


def client_address(scope: Scope, trusted: Sequence[Network]) -> str:
    """The peer's address; behind trusted proxies, the nearest address in `X-Forwarded-For` that is not one of them."""
    client = scope.get("client")
    peer = client[0] if client else _UNKNOWN
    if not trusted or not _within(peer, trusted):
        return peer
    forwarded = Headers(scope=scope).getlist("x-forwarded-for")
    for hop in reversed([part.strip() for line in forwarded for part in line.split(",")]):
        if not _is_address(hop):
            return peer
        peer = hop
        if not _within(hop, trusted):
            return hop
    return peer


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _within(text: str, networks: Sequence[Network]) -> bool:
    return _is_address(text) and any(ip_address(text) in network for network in networks)
