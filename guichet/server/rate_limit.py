"""Every rate limit of the service: the named limits as data, and the one class that counts them.

Source: docs/contract.md, "Limits"; D40.
"""

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter

from guichet.clock import SECOND, SystemClock
from guichet.logs import log
from guichet.settings import Settings

#: Seconds that Redis may take to count a request, and seconds that it is left alone after it did not.
REDIS_TIMEOUT: Final = 0.25
REDIS_RETRY: Final = 2.0
#: An address may ask for known pages this many times as often as for unknown ones: a waiting page asks by itself.
KNOWN_PAGES: Final = 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `requests` for one key (an address, a phone number) in any `minutes`; 0 requests: no limit at all."""

    name: str
    requests: int
    minutes: int = 1

    @property
    def item(self) -> RateLimitItemPerMinute:
        return RateLimitItemPerMinute(self.requests, self.minutes)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of a limit for one key, and in how many seconds (at least 1) there is room again."""

    remaining: int
    retry_after: int


#: Callbacks of providers, by address; a provider sends a few for each payment.
CALLBACKS: Final = RateLimit("callbacks", 3000)
#: Codes by text message that one phone number may be sent, whoever asks for them.
OTP_CODES_PER_PHONE: Final = RateLimit("otp-phone", 3, minutes=10)
#: And that one address may ask for: more, since an address may stand for a whole town, but not enough to try numbers.
OTP_CODES_PER_ADDRESS: Final = RateLimit("otp-address", 10, minutes=10)


def api_limit(settings: Settings) -> RateLimit:
    """Requests to the API, by address."""
    return RateLimit("api", settings.rate_limit)


def pages_limit(settings: Settings) -> RateLimit:
    """Hosted pages, by address."""
    return RateLimit("checkout", settings.page_rate_limit * KNOWN_PAGES)


def unknown_pages_limit(settings: Settings) -> RateLimit:
    """Hosted pages that do not exist, by address.

    Tokens hold 131 bits or more and cannot be guessed; this keeps anybody from trying. Whole towns share one address
    behind a mobile network, so what is counted strictly is what an honest customer does not do.
    """
    return RateLimit("checkout-unknown", settings.page_rate_limit)


class RateLimiter:
    """Counts in Redis when there is one, so that limits are exact across processes, else in this process's memory.

    While Redis is away each process counts for itself, and nobody is refused for it.
    """

    def __init__(self, shared: RedisStorage | None) -> None:
        self._local = MovingWindowRateLimiter(MemoryStorage())
        self._shared = None if shared is None else MovingWindowRateLimiter(shared)
        self._away_until = 0.0

    async def hit(self, limit: RateLimit, key: str) -> bool:
        """Counts a request; False when it must be refused, and then it is not counted."""
        return not limit.requests or await self._ask(lambda window: window.hit(limit.item, limit.name, key))

    async def has_room(self, limit: RateLimit, key: str) -> bool:
        """Whether a request would be allowed now; counts nothing."""
        return not limit.requests or await self._ask(lambda window: window.test(limit.item, limit.name, key))

    async def allowance(self, limit: RateLimit, key: str) -> Allowance:
        """What is left; `limit` has at least one request."""
        stats = await self._ask(lambda window: window.get_window_stats(limit.item, limit.name, key))
        return Allowance(stats.remaining, max(1, math.ceil(stats.reset_time - SystemClock().now() / SECOND)))

    async def _ask(self, question: Callable[[MovingWindowRateLimiter], Awaitable[T]]) -> T:
        if self._shared is not None and time.monotonic() >= self._away_until:
            try:
                return await question(self._shared)
            except self._shared.storage.base_exceptions as error:
                self._away_until = time.monotonic() + REDIS_RETRY
                log.error("ratelimit.redis_away", error=repr(error), limit="counted by each process meanwhile")
        return await question(self._local)


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
