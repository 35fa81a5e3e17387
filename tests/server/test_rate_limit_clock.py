"""Rate limits do not depend on the machine's clock, and remember a bounded number of addresses."""

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from guichet.clock import MINUTE
from guichet.server.rate_limit import MemoryWindows, RateLimiter
from guichet.server.rate_limits import RateLimit
from guichet.server.redis_windows import connected
from guichet.settings import Settings
from tests.fakes.clock import ManualClock
from tests.fakes.redis import running_redis
from tests.service_fixture import open_service

LIMIT = RateLimit("api", 3)
_HEADERS = {"Authorization": "Bearer nobody"}


@pytest.fixture
async def redis_url(tmp_path: Path) -> AsyncIterator[str]:
    with running_redis(tmp_path) as server:
        yield server.url


async def test_a_clock_that_was_stepped_back_locks_nobody_out(
    sqlite_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour back, then the minute passes that the limit asks to wait."""
    async with open_service(replace(sqlite_settings, rate_limit=3)) as service:
        assert [(await service.call("GET", "/v1/balance", headers=_HEADERS)).status for _ in range(4)][-1] == 429
        stepped_back = time.time() - 3600
        monkeypatch.setattr(time, "time", lambda: stepped_back)
        service.clock.jump(-3600)
        refused = await service.call("GET", "/v1/balance", headers=_HEADERS)
        assert (refused.status, 1 <= int(refused.headers["Retry-After"]) <= 60) == (429, True)
        service.clock.advance(61)
        monkeypatch.setattr(time, "time", lambda: stepped_back + 61)
        assert (await service.call("GET", "/v1/balance", headers=_HEADERS)).status == 401


@pytest.mark.parametrize("seconds", [-3600, 3600])
async def test_machines_with_wrong_clocks_share_one_limit_in_redis(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    real = time.time
    async with connected(redis_url) as redis:
        right, wrong = (RateLimiter(redis, ManualClock()) for _ in range(2))
        answers = [await right.count(LIMIT, "a") for _ in range(2)]
        monkeypatch.setattr(time, "time", lambda: real() + seconds)
        answers += [await wrong.count(LIMIT, "a") for _ in range(2)]
    assert [(answer.allowed, answer.remaining) for answer in answers] == [(True, 2), (True, 1), (True, 0), (False, 0)]
    assert all(1 <= answer.retry_after <= 60 for answer in answers)


async def test_a_clock_of_redis_that_was_stepped_back_locks_nobody_out(redis_url: str) -> None:
    """The window then holds times of the future."""
    async with connected(redis_url) as redis:
        limiter = RateLimiter(redis, ManualClock())
        await limiter.count(LIMIT, "a")
        (key,) = await redis.keys("*")
        future = (int(time.time()) + 3600) * 1_000_000
        await redis.lpush(key, *[str(future)] * LIMIT.requests)
        assert (await limiter.count(LIMIT, "a")).remaining == LIMIT.requests - 1


async def test_keys_in_redis_expire(redis_url: str) -> None:
    async with connected(redis_url) as redis:
        await RateLimiter(redis, ManualClock()).count(LIMIT, "a")
        (key,) = await redis.keys("*")
        assert 0 < await redis.pttl(key) <= 60_000


def test_the_window_moves_with_each_request() -> None:
    clock = ManualClock()
    windows = MemoryWindows(clock)
    for _ in range(3):
        windows.count(LIMIT, "a", 1)
        clock.advance(20)
    assert windows.count(LIMIT, "a", 1).allowed
    refused = windows.count(LIMIT, "a", 1)
    assert (refused.allowed, refused.remaining, refused.retry_after) == (False, 0, 20)
    clock.advance(20)
    looked = windows.count(LIMIT, "a", 0)
    assert (looked.allowed, looked.remaining) == (True, 1)


def test_a_flood_of_addresses_forgets_the_one_that_was_quiet_for_longest() -> None:
    windows = MemoryWindows(ManualClock(), max_keys=100)
    for _ in range(3):
        windows.count(LIMIT, "quiet", 1)
    for number in range(99):
        windows.count(LIMIT, f"other-{number}", 1)
    assert not windows.count(LIMIT, "quiet", 1).allowed  # Which was a request: it is no longer the quietest.
    for number in range(1_000):
        windows.count(LIMIT, f"flood-{number}", 1)
    assert windows.count(LIMIT, "quiet", 1).remaining == 2
    assert windows.size == 100


def test_a_flood_of_addresses_on_pages_does_not_reset_codes_by_text_message() -> None:
    windows = MemoryWindows(ManualClock(), max_keys=100)
    codes = RateLimit("otp-phone", 1, window=10 * MINUTE)
    windows.count(codes, "22997001234", 1)
    for number in range(1_000):
        windows.count(LIMIT, f"flood-{number}", 1)
    assert not windows.count(codes, "22997001234", 1).allowed


def test_addresses_that_left_are_removed() -> None:
    clock = ManualClock()
    windows = MemoryWindows(clock)
    for number in range(1_000):
        windows.count(LIMIT, f"gone-{number}", 1)
    clock.advance(61)
    for number in range(200):
        windows.count(LIMIT, f"here-{number}", 1)
    assert windows.size == 200
