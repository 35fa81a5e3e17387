"""`/readyz`: ready means that a write would work; the answer comes in time, and strangers cannot make it expensive."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import asyncpg
import pytest
from sqlalchemy import text

from guichet import bootstrap
from guichet.application import application
from guichet.bootstrap import database
from guichet.db.write_probe import TOO_SLOW
from guichet.settings import Settings
from tests.fakes.recording_database import RecordingDatabase
from tests.patience import PATIENCE
from tests.service_fixture import Answer, ServiceFixture, open_service, serving
from tests.sqlite_file import open_sqlite

READY = {"status": "ok", "database": "ok", "worker": "elsewhere"}


async def readiness(service: ServiceFixture) -> Answer:
    """Asked anew: an answer is repeated for a second."""
    service.clock.advance(1)
    async with asyncio.timeout(PATIENCE):
        return await service.call("GET", "/readyz")


def not_ready(reason: str) -> dict[str, str]:
    return {**READY, "status": "unavailable", "database": "unavailable", "reason": reason}


@asynccontextmanager
async def nobody_can_write(settings: Settings) -> AsyncIterator[None]:
    """Another process has locked what is written; reads work."""
    if settings.embedded:
        other = open_sqlite(settings.sqlite_path)
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
        other.close()
        return
    connection = await asyncpg.connect(settings.database_url)
    async with connection.transaction():
        await connection.execute("LOCK TABLE write_probe IN EXCLUSIVE MODE")
        yield
    await connection.close()


async def test_a_service_that_can_write_is_ready(service: ServiceFixture) -> None:
    for _ in range(3):
        answer = await readiness(service)
        assert (answer.status, answer.body) == (200, READY)


async def test_while_no_write_ends_it_is_not_ready_and_says_so_in_time(
    settings: Settings, service: ServiceFixture
) -> None:
    """As when a commit waits for a standby that is gone. Afterwards it is ready by itself."""
    async with nobody_can_write(settings):
        for _ in range(3):
            answer = await readiness(service)
            assert (answer.status, answer.body) == (503, not_ready(TOO_SLOW))
        assert (await service.call("GET", "/healthz")).status == 200
    async with asyncio.timeout(PATIENCE):
        while (await readiness(service)).status != 200:
            await asyncio.sleep(0)


async def test_many_questions_are_one_write(settings: Settings) -> None:
    recorded = RecordingDatabase(database(settings))
    async with open_service(settings, db=recorded) as service:
        recorded.seen.clear()
        answers = await asyncio.gather(*(service.call("GET", "/readyz") for _ in range(100)))
        assert {each.status for each in answers} == {200}
        assert len(recorded.seen) == 2, "a read and a write"
        await readiness(service)
        assert len(recorded.seen) == 4
        rows = await recorded.scan(text("SELECT count(*) FROM write_probe"))
        assert [tuple(row) for row in rows] == [(1,)]


async def test_while_a_write_hangs_nobody_starts_another(settings: Settings) -> None:
    recorded = RecordingDatabase(database(settings))
    async with open_service(settings, db=recorded) as service:
        recorded.seen.clear()
        async with nobody_can_write(settings):
            for _ in range(3):
                service.clock.advance(1)
                answers = await asyncio.gather(*(service.call("GET", "/readyz") for _ in range(20)))
                assert {each.status for each in answers} == {503}
            assert len(recorded.seen) == 2


async def test_a_damaged_file_is_not_ready(sqlite_service: ServiceFixture) -> None:
    assert (await readiness(sqlite_service)).status == 200
    path = sqlite_service.ctx.settings.sqlite_path
    for each in (path, path.with_name(path.name + "-wal")):
        with each.open("r+b") as file:
            file.write(b"\xa5" * each.stat().st_size)
    answer = await readiness(sqlite_service)
    assert (answer.status, answer.body) == (503, not_ready("the database file is damaged"))
    merchant_call = await sqlite_service.call(
        "GET", "/v1/balance", headers={"Authorization": "Bearer sk_test_" + "x" * 32}
    )
    assert (merchant_call.status, merchant_call.error["code"]) == (500, "server_error")


async def test_a_standby_or_a_read_only_server_is_not_ready(settings: Settings, service: ServiceFixture) -> None:
    if settings.embedded:
        pytest.skip("a file has no standby")
    assert (await readiness(service)).status == 200
    name = settings.database_url.partition("?")[0].rpartition("/")[2]
    administrator = await asyncpg.connect(settings.database_url)
    for value in ("on", "off"):
        await administrator.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {value}")
        await administrator.execute("SET default_transaction_read_only = off")
        await administrator.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid != pg_backend_pid()",
            name,
        )
        await readiness(service)  # What was connected is lost, which may be found out now.
        answer = await readiness(service)
        if value == "on":
            assert (answer.status, answer.body) == (503, not_ready("the database is read-only"))
        else:
            assert answer.status == 200
    await administrator.close()


async def test_a_worker_whose_loop_died_is_not_ready(sqlite_settings: Settings) -> None:
    async with bootstrap.service(sqlite_settings) as opened:
        worker = opened.worker()
        async with (
            serving(application(opened, worker)) as address,
            aiohttp.ClientSession() as client,
            client.get(address + "/readyz") as answer,
        ):
            assert answer.status == 503
            assert (await answer.json())["worker"] == "stopped"
