"""The rate limit: requests are counted in moving windows, in Redis or in this process's memory, in front of the routes.

No window depends on the machine's clock (docs/contract.md, "Limits"; D40; docs/decisions.md, "Clock of limits").
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from guichet import metrics
from guichet.clock import SECOND, Clock
from guichet.domain.errors import AddressNotAllowed, KeyExpired, RateLimited, Unauthorized
from guichet.domain.key_access import Network
from guichet.domain.merchants import Caller
from guichet.domain.records import Record
from guichet.logs import log
from guichet.merchants.api_keys import key_hash
from guichet.server.error_handler import ERROR_CODE, error_response
from guichet.server.rate_limits import RateLimit
from guichet.server.request_context import CALLER, RESPONSE_HEADERS, ClientAddresses, header

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from guichet.server.redis_windows import RedisWindows

#: Seconds that Redis is left alone after it did not count a request.
REDIS_RETRY: Final = 2.0
#: Keys of one limit that a process remembers. Beyond them it forgets the key that was counted longest ago, which then
#: has its whole limit again: a flood of addresses costs a few megabytes, and nobody is refused because of others.
MAX_KEYS: Final = 20_000
#: Expired keys that are removed with each request: more than one, so that they become fewer.
_REMOVED_AT_ONCE: Final = 8
#: Keys whose merchants' limits a process remembers.
_MOST_MERCHANTS: Final = 10_000
_KEY_FAULTS: Final = (Unauthorized.code, KeyExpired.code)
_OF_MERCHANT: Final = "Trop de requêtes : votre compte en accepte {} par minute. Réessayez dans un instant."


class Allowance(Record, frozen=True):
    """Whether a request is allowed, how many more are, and in how many seconds (at least 1) there is room again."""

    allowed: bool
    remaining: int
    retry_after: int

    @classmethod
    def of(cls, allowed: bool, remaining: int, room_in: int) -> Allowance:
        """`room_in`: microseconds until the oldest request leaves the window."""
        return cls(allowed, max(0, remaining), max(1, -(-room_in // SECOND)))


class RateLimiter:
    """Counts in Redis when there is one, so that limits are exact across processes, else in this process's memory.

    While Redis is away each process counts for itself, and nobody is refused for it.
    """

    def __init__(self, shared: Redis | None, clock: Clock) -> None:
        self._local = MemoryWindows(clock)
        self._shared = None if shared is None else _redis_windows(shared)
        self._clock = clock
        self._away_until = 0

    async def hit(self, limit: RateLimit, key: str) -> bool:
        """Counts a request; False when it must be refused, and then it is not counted."""
        return not limit.requests or (await self.count(limit, key)).allowed

    async def has_room(self, limit: RateLimit, key: str) -> bool:
        """Whether a request would be allowed now; counts nothing."""
        return not limit.requests or (await self.count(limit, key, requests=0)).allowed

    async def count(self, limit: RateLimit, key: str, requests: int = 1) -> Allowance:
        """Counts a request, unless `requests` is 0. `limit` has at least one request."""
        if self._shared is not None and self._clock.monotonic() >= self._away_until:
            try:
                return await self._shared.count(limit, key, requests)
            except OSError as error:
                self._away_until = self._clock.monotonic() + round(REDIS_RETRY * SECOND)
                log.error("ratelimit.redis_away", error=repr(error), limit="counted by each process meanwhile")
        return self._local.count(limit, key, requests)


def _redis_windows(redis: Redis) -> RedisWindows:
    from guichet.server.redis_windows import RedisWindows  # noqa: PLC0415 - sixty modules, and most have no Redis

    return RedisWindows(redis)


class MemoryWindows:
    """For each limit, the times of the requests of each key, in microseconds of the monotonic clock."""

    def __init__(self, clock: Clock, max_keys: int = MAX_KEYS) -> None:
        self._clock = clock
        self._max_keys = max_keys
        #: By the limit's name, then by key; the key that was counted longest ago is first.
        self._windows: dict[str, dict[str, array[int]]] = {}

    def count(self, limit: RateLimit, key: str, requests: int) -> Allowance:
        now = self._clock.monotonic()
        windows = self._windows.setdefault(limit.name, {})
        self._remove_expired(windows, now - limit.window)
        times = windows.pop(key, None) or array("q")
        del times[: bisect_right(times, now - limit.window)]
        allowed = len(times) < limit.requests
        if allowed and requests:
            times.append(now)
        if times:
            if len(windows) >= self._max_keys:
                del windows[next(iter(windows))]
            windows[key] = times
        return Allowance.of(allowed, limit.requests - len(times), times[0] + limit.window - now if times else 0)

    @property
    def size(self) -> int:
        return sum(map(len, self._windows.values()))

    @staticmethod
    def _remove_expired(windows: dict[str, array[int]], oldest: int) -> None:
        for _ in range(_REMOVED_AT_ONCE):
            first = next(iter(windows), None)
            if first is None or windows[first][-1] > oldest:
                return
            del windows[first]


class MerchantRate(Record, frozen=True):
    """`key`: what the requests are counted by. `networks`: where alone the key that they name is accepted from."""

    limit: RateLimit
    key: str
    networks: tuple[Network, ...]


class MerchantRates:
    """Request limits that merchants have of their own (`guichet merchant limits`).

    Who sends a request is known only once its key was looked up, and the limit stands in front of that. So the limits
    are learnt from requests that were authenticated: nothing is read for them, and while no merchant has one nothing is
    done. They are kept by the hash of the key that a request names. The first request of a key in a process is counted
    for its address as well, because its merchant is not known yet."""

    def __init__(self, addresses: ClientAddresses) -> None:
        self._addresses = addresses
        self._rates: dict[str, MerchantRate] = {}

    def of(self, scope: Scope) -> MerchantRate | None:
        """The limit of the request's merchant; None if it has none, or is not known yet, or if the request comes from
        where its key is not accepted: who stole a key must not use up what its merchant may ask."""
        rate = self._rates.get(_key_of(scope)) if self._rates else None
        if rate is None or (rate.networks and not self._addresses.is_within(scope, rate.networks)):
            return None
        return rate

    def learn(self, scope: Scope) -> MerchantRate | None:
        """After the request: what it must still be counted for, if its merchant's limit was not known before.

        A key that no longer works is forgotten: its requests must not use up what the merchant may ask.
        """
        caller: Caller | None = scope.get(CALLER)
        own = None if caller is None else caller.merchant.rate_limit
        if own is None and not self._rates:
            return None
        key = _key_of(scope)
        if caller is None or own is None:
            if caller is not None or scope.get(ERROR_CODE) in _KEY_FAULTS:
                self._rates.pop(key, None)
            return None
        if scope.get(ERROR_CODE) == AddressNotAllowed.code:
            return None
        before = self._rates.pop(key, None)
        while len(self._rates) >= _MOST_MERCHANTS:
            del self._rates[next(iter(self._rates))]
        self._rates[key] = MerchantRate(RateLimit("merchant", own), str(caller.merchant.id), caller.networks)
        return self._rates[key] if before is None else None


def _key_of(scope: Scope) -> str:
    """A hash of the key, read as `Authenticator` reads it."""
    return key_hash((header(scope, b"authorization") or "").partition(" ")[2].strip())


class RateLimitMiddleware:
    """`limits`: by the beginning of the path; other paths are not counted. `keyed`: how the paths begin that merchants
    call with their keys. A merchant with a limit of its own is counted by it, instead of by its address.

    Every answer under a limit carries `X-RateLimit-Remaining` and the three `RateLimit-…`, a refusal also `Retry-After`
    (docs/contract.md, "Limits").
    """

    def __init__(
        self,
        app: ASGIApp,
        limiter: RateLimiter,
        limits: Mapping[str, RateLimit],
        keyed: str,
        addresses: ClientAddresses,
    ) -> None:
        self._app = app
        self._limiter = limiter
        self._limits = {prefix: limit for prefix, limit in limits.items() if limit.requests}
        self._keyed = keyed
        self._addresses = addresses
        self._merchants = MerchantRates(addresses)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        is_keyed = path.startswith(self._keyed)
        own = self._merchants.of(scope) if is_keyed else None
        limit = own.limit if own is not None else self._limit(path)
        if limit is None or await self._allows(scope, receive, send, limit, own):
            await self._app(scope, receive, send)
        if is_keyed and (learnt := self._merchants.learn(scope)):
            await self._limiter.hit(learnt.limit, learnt.key)

    async def _allows(
        self, scope: Scope, receive: Receive, send: Send, limit: RateLimit, own: MerchantRate | None
    ) -> bool:
        """Counts the request; when it is one too many, answers it."""
        allowance = await self._limiter.count(limit, own.key if own is not None else self._addresses.counted(scope))
        remaining = b"%d" % allowance.remaining
        scope[RESPONSE_HEADERS] += (
            (b"x-ratelimit-remaining", remaining),
            (b"ratelimit-limit", b"%d" % limit.requests),
            (b"ratelimit-remaining", remaining),
            (b"ratelimit-reset", b"%d" % allowance.retry_after),
        )
        if not allowance.allowed:
            metrics.RATE_LIMITED.labels(limit.name).inc()
            refusal = RateLimited() if own is None else RateLimited(_OF_MERCHANT.format(limit.requests))
            response = error_response(refusal)
            response.headers["Retry-After"] = str(allowance.retry_after)
            await response(scope, receive, send)
        return allowance.allowed

    def _limit(self, path: str) -> RateLimit | None:
        for prefix, limit in self._limits.items():
            if path.startswith(prefix):
                return limit
        return None
