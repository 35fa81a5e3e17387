"""A commit that no standby confirmed is never taken for done, even where PostgreSQL itself calls it committed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from sqlalchemy import insert, select

from guichet.bootstrap import database
from guichet.db.engine import Database
from guichet.db.errors import ConnectionLost, StorageUnavailable
from guichet.db.postgres.database import PostgresDatabase
from guichet.db.tables import merchants
from guichet.settings import Settings
from tests.patience import PATIENCE
from tests.processes.bouncer import pgbouncer
from tests.processes.fleet import execute

ADD = insert(merchants).values(name="M", status="active", currency="XOF", created_at=1)
IDS = select(merchants.c.id)
#: What an administrator does about a statement that "hangs", or a driver after its time limit. PostgreSQL then ends the
#: wait with a warning, and answers that the transaction is committed.
CANCEL = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture
async def standby_away(own: Settings) -> AsyncIterator[None]:
    """The primary waits for a standby that is not there."""
    await execute(own, "ALTER SYSTEM SET synchronous_standby_names = 'away'")
    await execute(own, "SELECT pg_reload_conf()")
    yield
    await execute(own, "ALTER SYSTEM RESET synchronous_standby_names")
    await execute(own, "SELECT pg_reload_conf()")


@pytest.fixture(params=["direct", "pgbouncer"])
async def db(request: pytest.FixtureRequest, own: Settings) -> AsyncIterator[Database]:
    with ExitStack() as stack:
        settings = own
        if request.param == "pgbouncer":
            settings = replace(own, database_url=stack.enter_context(pgbouncer(own.database_url)), pgbouncer=True)
        opened = database(settings)
        await opened.open()
        yield opened
        await opened.close()


async def _cancelled(own: Settings, work: Awaitable[Any]) -> None:
    """Cancels the wait for the standby until `work` ends, and raises what it raises."""
    working = asyncio.ensure_future(work)

    async def ended() -> bool:
        await execute(own, CANCEL)
        return working.done()

    async with asyncio.timeout(PATIENCE):
        while not await ended():
            await asyncio.sleep(0.02)
    await working


@pytest.mark.usefixtures("standby_away")
async def test_a_cancelled_wait_for_the_standby_acknowledges_no_single_write(own: Settings, db: Database) -> None:
    with pytest.raises(ConnectionLost):
        await _cancelled(own, db.write(ADD))


@pytest.mark.usefixtures("standby_away")
async def test_a_cancelled_wait_for_the_standby_acknowledges_no_transaction(own: Settings, db: Database) -> None:
    async def block() -> None:
        async with db.transaction() as tx:
            await tx.write(ADD)

    with pytest.raises(ConnectionLost):
        await _cancelled(own, block())


@pytest.mark.usefixtures("standby_away")
async def test_a_cancelled_wait_confirms_no_replication_to_a_repeated_request(own: Settings, db: Database) -> None:
    with pytest.raises(ConnectionLost):
        await _cancelled(own, db.wait_for_replication())


@pytest.mark.usefixtures("standby_away")
async def test_a_write_that_outlasts_its_time_is_not_acknowledged_and_reads_go_on(own: Settings) -> None:
    opened = PostgresDatabase(own.database_url, statement_timeout=0.2)
    await opened.open()
    try:
        with pytest.raises(StorageUnavailable):
            await opened.write(ADD)
        assert await opened.all(IDS)
    finally:
        await opened.close()


@pytest.mark.usefixtures("standby_away")
async def test_behind_pgbouncer_a_write_that_outlasts_its_time_is_given_up_without_a_cancel_request(
    own: Settings,
) -> None:
    """It goes on waiting for the standby: nobody sees it before it is safe."""
    with pgbouncer(own.database_url) as url:
        opened = PostgresDatabase(url, bouncer=True, statement_timeout=0.5)
        await opened.open()
        before = len(await opened.all(IDS))
        for _ in range(3):
            with pytest.raises(StorageUnavailable):
                await opened.write(ADD)
            assert len(await opened.all(IDS)) == before
        assert await _waiting(own) == 3
        await opened.close()


async def _waiting(own: Settings) -> int:
    """How many commits wait for the standby."""
    connection = await asyncpg.connect(own.database_url)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
    finally:
        await connection.close()
