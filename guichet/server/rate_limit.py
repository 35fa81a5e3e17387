"""Every rate limit of the service: the named limits as data, the class that counts, the check in front of the routes.

Source: docs/contract.md, "Limits"; D40.
"""

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, TypeVar

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet import metrics
from guichet.clock import SECOND, SystemClock
from guichet.domain.errors import RateLimited
from guichet.logs import log
from guichet.server.json_response import error_response
from guichet.settings import Network, Settings

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
#: And that may be asked for on one link, whatever the address.
OTP_CODES_PER_LINK: Final = RateLimit("otp-link", 60, minutes=10)
#: Against somebody who has a telephone buzz all day.
OTP_CODES_PER_PHONE_A_DAY: Final = RateLimit("otp-phone-day", 12, minutes=24 * 60)


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


class RateLimitMiddleware:
    """`limits`: by the beginning of the path; other paths are not counted.

    Every answer under a limit carries `X-RateLimit-Remaining`, a refusal also `Retry-After`
    (docs/contract.md, "Limits").
    """

    def __init__(
        self,
        app: ASGIApp,
        limiter: RateLimiter,
        limits: Mapping[str, RateLimit],
        trusted_proxies: Sequence[Network],
    ) -> None:
        self._app = app
        self._limiter = limiter
        self._limits = {prefix: limit for prefix, limit in limits.items() if limit.requests}
        self._trusted_proxies = trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = self._limit(scope["path"]) if scope["type"] == "http" else None
        if limit is None:
            await self._app(scope, receive, send)
            return
        address = client_address(scope, self._trusted_proxies)
        allowed = await self._limiter.hit(limit, address)
        announced = _announcing(await self._limiter.allowance(limit, address), send, refused=not allowed)
        if allowed:
            await self._app(scope, receive, announced)
        else:
            metrics.RATE_LIMITED.labels(limit.name).inc()
            await error_response(RateLimited())(scope, receive, announced)

    def _limit(self, path: str) -> RateLimit | None:
        return next((limit for prefix, limit in self._limits.items() if path.startswith(prefix)), None)


def _announcing(allowance: Allowance, send: Send, *, refused: bool) -> Send:
    async def announce(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-RateLimit-Remaining"] = str(allowance.remaining)
            if refused:
                headers["Retry-After"] = str(allowance.retry_after)
        await send(message)

    return announce


_UNKNOWN: Final = "unknown"


def client_address(scope: Scope, trusted_proxies: Sequence[Network]) -> str:
    """The peer's address; behind trusted proxies, the nearest address in `X-Forwarded-For` that is not one of them."""
    client = scope.get("client")
    address: str = client[0] if client else _UNKNOWN
    if not trusted_proxies or not _is_within(address, trusted_proxies):
        return address
    forwarded = Headers(scope=scope).getlist("x-forwarded-for")
    for hop in reversed([part.strip() for line in forwarded for part in line.split(",")]):
        if not _is_address(hop):
            return address
        address = hop
        if not _is_within(hop, trusted_proxies):
            return hop
    return address


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_within(text: str, networks: Sequence[Network]) -> bool:
    return _is_address(text) and any(ip_address(text) in network for network in networks)
