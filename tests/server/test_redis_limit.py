"""The rate limit across processes: exact with Redis, each for itself while Redis is away."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from guichet.server.rate_limit import OTP_CODES_PER_PHONE
from guichet.settings import Settings
from tests.checkout.shop import open_shop
from tests.checkout.test_codes import ask
from tests.house import open_house
from tests.ports import free_port

_HEADERS = {"Authorization": "Bearer nobody"}


class Redis:
    """A real server on a free port, that a test may stop and start again."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--save", "", "--dir", str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("redis-server did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    if shutil.which("redis-server") is None:
        pytest.skip("LOUD: redis-server is not installed, the shared rate limit is not tested")
    server = Redis(tmp_path)
    server.start()
    yield server
    server.stop()


async def test_two_processes_share_one_limit(sqlite_settings: Settings, redis: Redis) -> None:
    limited = replace(sqlite_settings, rate_limit=10, redis_url=redis.url)
    async with open_house(limited) as one, open_house(limited) as two:
        answers = [await house.call("GET", "/v1/balance", headers=_HEADERS) for house in (one, two) * 6]
    assert [answer.status for answer in answers] == [401] * 10 + [429] * 2
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers[:10]] == [str(9 - n) for n in range(10)]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60


async def test_redis_going_away_refuses_nobody(
    sqlite_settings: Settings, redis: Redis, capfd: pytest.CaptureFixture[str]
) -> None:
    limited = replace(sqlite_settings, rate_limit=5, redis_url=redis.url)
    async with open_house(limited) as house:
        for _ in range(5):
            assert (await house.call("GET", "/v1/balance", headers=_HEADERS)).status == 401
        redis.stop()
        alone = [(await house.call("GET", "/v1/balance", headers=_HEADERS)).status for _ in range(6)]
    assert alone == [401] * 5 + [429]


async def test_codes_by_text_message_are_counted_together(sqlite_settings: Settings, redis: Redis) -> None:
    shared = replace(sqlite_settings, redis_url=redis.url)
    async with open_shop(shared) as one, open_shop(shared) as two:
        links = [(shop, await shop.link()) for shop in (one, two)]
        statuses = [(await ask(shop, path)).status for shop, path in links * 2]
        assert statuses == [200] * OTP_CODES_PER_PHONE.requests + [429]
        assert len(one.operator.codes) + len(two.operator.codes) == OTP_CODES_PER_PHONE.requests
        # Without Redis each counts for itself: still no end of codes, and still no error.
        redis.stop()
        statuses = [(await ask(one, links[0][1])).status for _ in range(OTP_CODES_PER_PHONE.requests + 1)]
        assert statuses == [200] * OTP_CODES_PER_PHONE.requests + [429]
