"""A migration under servers that go on: none of their transactions dies of it."""

import asyncio
from pathlib import Path

import asyncpg
import pytest

from guichet.db import migrate
from guichet.db.errors import StorageUnavailable
from guichet.db.schema import REQUIRED_REVISION
from guichet.settings import Settings
from tests.db.schema import next_release
from tests.patience import PATIENCE

pytestmark = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
_WAITING = """
    SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
    WHERE NOT granted AND datname = current_database()
"""


async def _until_it_waits(watch: asyncpg.Connection) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await watch.fetchval(_WAITING):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("held", "wanted"), [("incidents", "payments"), ("payments", "payment_links")])
async def test_whoever_locks_tables_in_another_order_goes_on(
    settings: Settings, tmp_path: Path, held: str, wanted: str
) -> None:
    """The last line needs a table that the migration has, and the migration waits for one that this transaction has."""
    payment, watch = await asyncpg.connect(settings.database_url), await asyncpg.connect(settings.database_url)
    async with payment.transaction():
        await payment.execute(f"LOCK TABLE {held} IN ROW EXCLUSIVE MODE")
        migration = asyncio.create_task(migrate.run_migrations(settings, next_release(tmp_path)))
        await _until_it_waits(watch)
        await payment.execute(f"LOCK TABLE {wanted} IN ROW EXCLUSIVE MODE")
        # For longer than PostgreSQL takes to find a deadlock.
        await asyncio.sleep(1.5)
    assert await migration == REQUIRED_REVISION
    await payment.close()
    await watch.close()


async def test_a_long_transaction_ends_the_migration_with_a_sentence_and_blocks_nobody(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "_ATTEMPTS", 3)
    backup, reader = await asyncpg.connect(settings.database_url), await asyncpg.connect(settings.database_url)
    async with backup.transaction():
        await backup.execute("LOCK TABLE payments IN ACCESS SHARE MODE")
        migration = asyncio.create_task(migrate.run_migrations(settings, next_release(tmp_path)))
        await _until_it_waits(backup)
        async with asyncio.timeout(PATIENCE):
            await reader.fetchval("SELECT count(*) FROM payments")
        with pytest.raises(StorageUnavailable, match='"payments" stayed in use'):
            await migration
    assert await migrate.run_migrations(settings, next_release(tmp_path)) == REQUIRED_REVISION
    await backup.close()
    await reader.close()
