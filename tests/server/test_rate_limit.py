"""The rate limit across processes: exact with Redis, separate for each process while Redis is away."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from guichet.server.rate_limits import OTP_CODES_PER_PHONE
from guichet.settings import Settings
from tests.checkout.checkout_fixture import open_checkout
from tests.checkout.test_otp_codes import ask
from tests.fakes.redis import RedisServer, running_redis
from tests.service_fixture import open_service

_HEADERS = {"Authorization": "Bearer nobody"}


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with running_redis(tmp_path) as server:
        yield server


async def test_two_processes_share_one_limit(sqlite_settings: Settings, redis: RedisServer) -> None:
    limited = replace(sqlite_settings, rate_limit=10, redis_url=redis.url)
    async with open_service(limited) as one, open_service(limited) as two:
        answers = [await service.call("GET", "/v1/balance", headers=_HEADERS) for service in (one, two) * 6]
    assert [answer.status for answer in answers] == [401] * 10 + [429] * 2
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers[:10]] == [str(9 - n) for n in range(10)]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60


async def test_requests_are_accepted_while_redis_is_away(
    sqlite_settings: Settings, redis: RedisServer, capfd: pytest.CaptureFixture[str]
) -> None:
    limited = replace(sqlite_settings, rate_limit=5, redis_url=redis.url)
    async with open_service(limited) as service:
        for _ in range(5):
            assert (await service.call("GET", "/v1/balance", headers=_HEADERS)).status == 401
        redis.stop()
        alone = [(await service.call("GET", "/v1/balance", headers=_HEADERS)).status for _ in range(6)]
    assert alone == [401] * 5 + [429]


async def test_otp_requests_share_one_limit_across_processes(sqlite_settings: Settings, redis: RedisServer) -> None:
    shared = replace(sqlite_settings, redis_url=redis.url)
    async with open_checkout(shared) as one, open_checkout(shared) as two:
        links = [(checkout, await checkout.link()) for checkout in (one, two)]
        statuses = [(await ask(checkout, path)).status for checkout, path in links * 2]
        assert statuses == [200] * OTP_CODES_PER_PHONE.requests + [429]
        assert len(one.operator.codes) + len(two.operator.codes) == OTP_CODES_PER_PHONE.requests
        # Without Redis each counts for itself: still no end of codes, and still no error.
        redis.stop()
        statuses = [(await ask(one, links[0][1])).status for _ in range(OTP_CODES_PER_PHONE.requests + 1)]
        assert statuses == [200] * OTP_CODES_PER_PHONE.requests + [429]
