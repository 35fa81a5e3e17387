"""Counters of the rate limit in Redis, for all processes. Imported only where GUICHET_REDIS_URL is set."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from guichet.server.rate_limit import Allowance
from guichet.server.rate_limits import RateLimit

#: Seconds that Redis may take to count a request.
REDIS_TIMEOUT: Final = 0.25


class RedisWindows:
    """`MemoryWindows` in Redis, with the times of Redis: what the clocks of the machines say does not matter."""

    #: Times are in microseconds, newest first. If the clock of Redis was set back, times in the future are forgotten:
    #: they would refuse requests until that time comes.
    _COUNT: Final = """
        local clock = redis.call('TIME')
        local now = clock[1] * 1000000 + clock[2]
        local limit, window, requests = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
        local newest = redis.call('LINDEX', KEYS[1], 0)
        if newest and tonumber(newest) > now then
            redis.call('DEL', KEYS[1])
        end
        local oldest = redis.call('LINDEX', KEYS[1], -1)
        while oldest and tonumber(oldest) <= now - window do
            redis.call('RPOP', KEYS[1])
            oldest = redis.call('LINDEX', KEYS[1], -1)
        end
        local counted = redis.call('LLEN', KEYS[1])
        local allowed = counted < limit
        if allowed and requests > 0 then
            redis.call('LPUSH', KEYS[1], string.format('%.0f', now))
            redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
            counted = counted + 1
            oldest = oldest or now
        end
        return {allowed and 1 or 0, limit - counted, oldest and oldest + window - now or 0}
    """

    def __init__(self, redis: Redis) -> None:
        self._count = redis.register_script(self._COUNT)

    async def count(self, limit: RateLimit, key: str, requests: int) -> Allowance:
        """Raises OSError while Redis is away."""
        keys = [f"guichet:limit:{limit.name}:{key}"]
        try:
            allowed, remaining, room_in = await self._count(keys, [limit.requests, limit.window, requests])
        except RedisError as error:
            raise ConnectionError(repr(error)) from error
        return Allowance.of(bool(allowed), remaining, room_in)


@asynccontextmanager
async def connected(redis_url: str) -> AsyncIterator[Redis]:
    """The Redis at this address, closed at the end."""
    redis = Redis.from_url(
        redis_url,
        socket_timeout=REDIS_TIMEOUT,
        socket_connect_timeout=REDIS_TIMEOUT,
        retry=Retry(NoBackoff(), 1),
    )
    try:
        yield redis
    finally:
        await redis.aclose()
