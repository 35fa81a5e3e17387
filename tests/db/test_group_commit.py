"""What is particular to the embedded database: its writers share commits."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import func, insert, select, text

from guichet.bootstrap import database
from guichet.db.engine import Database
from guichet.db.errors import ConstraintViolated, DiskFull, StorageError, StorageUnavailable
from guichet.db.tables import merchants, payment_links
from guichet.settings import Settings
from tests.db.merchant_rows import ADD, NAMES, add, names
from tests.patience import PATIENCE
from tests.sqlite_file import open_sqlite


@pytest.fixture
async def embedded(sqlite_settings: Settings) -> AsyncIterator[Database]:
    opened = database(sqlite_settings)
    await opened.open()
    yield opened
    await opened.close()


ORPHAN = insert(payment_links).values(
    merchant_id=999,
    token="t",
    type="permanent",
    amount=1,
    currency="XOF",
    description="d",
    reserved_uses=0,
    completed_uses=0,
    created_at=1,
)


async def test_many_transactions_share_few_commits_and_are_all_durable(
    embedded: Database, sqlite_settings: Settings
) -> None:
    """A commit changes `data_version` as another connection sees it: counting these changes counts commits."""
    watcher = open_sqlite(sqlite_settings.sqlite_path)
    seen: set[int] = set()
    finished = False

    async def watch() -> None:
        while not finished:
            seen.add(watcher.pragma("data_version"))
            await asyncio.sleep(0)

    async def one(number: int) -> None:
        await add(embedded, str(number))
        # Answered means durable: another connection reads it now.
        found = watcher.execute("SELECT count(*) FROM merchants WHERE name = ?", [str(number)]).fetchone()
        assert found == (1,)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    await asyncio.gather(*(one(number) for number in range(200)))
    finished = True
    await watching
    watcher.close()
    assert 1 <= len(seen) - 1 <= 8, f"{len(seen) - 1} commits for 200 bodies"
    await embedded.close()
    again = database(sqlite_settings)
    await again.open()
    try:
        assert len(await names(again)) == 200
    finally:
        await again.close()
        await embedded.open()


async def test_a_failing_statement_among_many_fails_alone(embedded: Database) -> None:
    async def one(number: int) -> None:
        await embedded.write(ADD.values(name=str(number), status="closed" if number % 7 == 3 else "active"))

    outcomes = await asyncio.gather(*(one(number) for number in range(40)), return_exceptions=True)
    assert [type(each) for each in outcomes] == [
        ConstraintViolated if number % 7 == 3 else type(None) for number in range(40)
    ]
    assert sorted(await names(embedded)) == sorted(str(number) for number in range(40) if number % 7 != 3)


async def test_a_statement_of_a_cancelled_caller_is_not_run(embedded: Database) -> None:
    leaving = asyncio.create_task(add(embedded, "left"))
    await asyncio.sleep(0)
    leaving.cancel()
    await add(embedded, "stayed")
    assert leaving.cancelled()
    assert await names(embedded) == ["stayed"]


async def test_transactions_get_their_turn_among_endless_statements(embedded: Database) -> None:
    """Statements never stop coming, so that one commit begins where another ends."""
    finished = False

    async def writer(number: int) -> None:
        for _ in range(number):  # Not all in one group, or there would be a gap after it.
            await asyncio.sleep(0)
        while not finished:
            await add(embedded, f"statement {number}")

    writers = [asyncio.create_task(writer(number)) for number in range(8)]
    async with asyncio.timeout(PATIENCE):
        for number in range(5):
            async with embedded.transaction() as tx:
                await tx.write(ADD.values(name=f"body {number}"))
    finished = True
    await asyncio.gather(*writers)
    assert {f"body {number}" for number in range(5)} <= set(await names(embedded))


async def test_a_transaction_that_awaits_something_else_is_refused_alone(embedded: Database) -> None:
    async def foreign() -> None:
        async with embedded.transaction() as tx:
            await tx.write(ADD.values(name="foreign"))
            await asyncio.sleep(0.05)
            await tx.write(ADD.values(name="foreign again"))

    async def honest(number: int) -> None:
        await asyncio.sleep(0.005 * number)
        await add(embedded, f"honest {number}")

    outcomes = await asyncio.gather(foreign(), *(honest(number) for number in range(6)), return_exceptions=True)
    assert [type(each) for each in outcomes] == [StorageError, *[type(None)] * 6]
    assert sorted(await names(embedded)) == [f"honest {number}" for number in range(6)]
    await add(embedded, "after")
    assert "after" in await names(embedded)


async def test_a_transaction_inside_a_transaction_is_refused_at_once(embedded: Database) -> None:
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(StorageError):  # noqa: PT012
            async with embedded.transaction() as tx:
                await tx.write(ADD.values(name="outer"))
                await add(embedded, "inner")
    assert await names(embedded) == []
    await add(embedded, "after")
    assert await names(embedded) == ["after"]


async def test_a_failed_commit_fails_every_write_in_it(embedded: Database) -> None:
    """A foreign key that is only checked at the commit makes one fail."""

    async def poisonous() -> None:
        async with embedded.transaction() as tx:
            await tx.one(text("PRAGMA defer_foreign_keys = ON"))
            await tx.write(ORPHAN)

    outcomes = await asyncio.gather(add(embedded, "a"), poisonous(), add(embedded, "b"), return_exceptions=True)
    assert [type(each) for each in outcomes] == [StorageUnavailable] * 3
    assert await names(embedded) == []
    await add(embedded, "after")
    assert await names(embedded) == ["after"]


async def test_a_failed_commit_does_not_affect_later_writes(embedded: Database) -> None:
    """Writes that arrive while it runs are in the next commit."""

    async def poisonous() -> None:
        async with embedded.transaction() as tx:
            await tx.one(text("PRAGMA defer_foreign_keys = ON"))
            await tx.write(ORPHAN)

    async def soon(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await add(embedded, f"later {turns}")

    outcomes = await asyncio.gather(poisonous(), *(soon(turns) for turns in (2, 3, 4, 5)), return_exceptions=True)
    assert [type(each) for each in outcomes] == [StorageUnavailable, *[type(None)] * 4]
    assert sorted(await names(embedded)) == [f"later {turns}" for turns in (2, 3, 4, 5)]


async def test_the_database_recovers_after_a_full_disk(embedded: Database) -> None:
    (pages,) = await embedded.one(text("PRAGMA page_count")) or (0,)
    async with embedded.transaction() as tx:
        await tx.one(text(f"PRAGMA max_page_count = {pages + 2}"))
    outcomes = await asyncio.gather(*(add(embedded, "x" * 3000) for _ in range(12)), return_exceptions=True)
    failed = [each for each in outcomes if each is not None]
    assert failed
    assert {type(each) for each in failed} == {DiskFull}
    stored = len(await names(embedded))
    assert stored == 12 - len(failed), "acknowledged rows exist, refused ones do not"
    async with embedded.transaction() as tx:
        await tx.one(text("PRAGMA max_page_count = 1000000"))
    await add(embedded, "after")
    assert len(await names(embedded)) == stored + 1


async def test_a_transaction_that_sqlite_rolled_back_fails_every_write_in_it(embedded: Database) -> None:
    """SQLite may roll back by itself, on a failing disk for instance; here a transaction does it instead."""

    async def before() -> None:
        async with embedded.transaction() as tx:
            await tx.write(ADD.values(name="before"))

    async def struck() -> None:
        async with embedded.transaction() as tx:
            await tx.write(ADD.values(name="struck"))
            await tx.one(text("ROLLBACK"))
            await tx.write(ADD.values(name="outside of any transaction"))

    outcomes = await asyncio.gather(before(), struck(), add(embedded, "next"), return_exceptions=True)
    assert [type(each) for each in outcomes] == [StorageUnavailable, StorageUnavailable, type(None)]
    assert "before" not in await names(embedded)
    assert "next" in await names(embedded)
    assert "struck" not in await names(embedded)


HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO merchants (name, status, currency, created_at) VALUES ('other', 'active', 'XOF', 1)")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""


async def test_waiting_for_another_writing_process_does_not_block_the_loop(
    embedded: Database, sqlite_settings: Settings
) -> None:
    other = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        HOLDER,
        str(sqlite_settings.sqlite_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdin is not None
    assert other.stdout is not None
    assert await other.stdout.readline() == b"locked\n"
    writing = asyncio.gather(*(add(embedded, str(number)) for number in range(20)))
    for _ in range(20):  # A loop that stood still would not get here before the lock's end.
        await asyncio.sleep(0.01)
    assert not writing.done(), "the other process has the lock"
    other.stdin.write(b"\n")
    await writing
    await other.wait()
    assert sorted(await names(embedded)) == sorted(["other", *(str(number) for number in range(20))])


async def test_a_file_locked_by_another_process_is_waited_for(sqlite_settings: Settings) -> None:
    other = open_sqlite(sqlite_settings.sqlite_path)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("PRAGMA user_version = 1")  # Exclusive: no other connection can read.
    leaving = threading.Timer(0.3, other.close)
    leaving.start()
    opened = database(sqlite_settings)
    await opened.open()
    await add(opened, "after it")
    assert await names(opened) == ["after it"]
    await opened.close()
    leaving.join()


async def test_reads_do_not_wait_for_another_writer(embedded: Database, sqlite_settings: Settings) -> None:
    await add(embedded, "before")
    other = open_sqlite(sqlite_settings.sqlite_path)
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE merchants SET name = 'changed'")
    async with asyncio.timeout(PATIENCE):  # The other writer never ends before.
        assert await names(embedded) == ["before"]
        assert [row[0] for row in await embedded.all(NAMES)] == ["before"]
    other.execute("COMMIT")
    other.close()
    assert await names(embedded) == ["changed"]


async def test_a_slow_query_does_not_block_the_loop(embedded: Database) -> None:
    slow: Any = text(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) SELECT count(*) FROM n"
    )
    scanning = asyncio.create_task(embedded.scan(slow))
    turns = 0
    while not scanning.done():
        await asyncio.sleep(0.002)
        turns += 1
    assert await scanning == [(2_000_000,)]
    assert turns > 10
    assert (await embedded.scan(select(func.count()).select_from(merchants)))[0][0] == 0
