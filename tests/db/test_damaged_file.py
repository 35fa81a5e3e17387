"""A damaged file of the embedded database: a clear error at once, and nobody waits for a commit that never comes."""

import asyncio
import os
from pathlib import Path

import apsw
import pytest

from guichet.bootstrap import database, ensure_schema
from guichet.db.engine import Database
from guichet.db.errors import DatabaseDamaged, StorageError
from guichet.settings import Settings
from tests.db.merchant_rows import ADD, add, names
from tests.patience import PATIENCE

#: Rows enough that the table has pages of its own in the middle of the file.
ROWS = 300


@pytest.fixture
async def filled(sqlite_settings: Settings) -> Settings:
    opened = database(sqlite_settings)
    await opened.open()
    async with opened.transaction() as tx:
        for number in range(ROWS):
            await tx.write(ADD.values(name=f"{number} " + "x" * 500))
    await opened.close()
    return sqlite_settings


def damage(path: Path, *, header: bool) -> None:
    """Overwrites every page but the first, or the first too."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        first = 0 if header else 4096
        file.seek(first)
        file.write(b"\xa5" * (size - first))


async def outcomes_of(db: Database) -> list[BaseException | None]:
    """What statements and blocks raise that come at the same time, and then again."""

    async def block() -> None:
        async with db.transaction() as tx:
            await tx.write(ADD.values(name="block"))

    async with asyncio.timeout(PATIENCE):
        first = await asyncio.gather(add(db, "a"), block(), add(db, "b"), names(db), return_exceptions=True)
        again = await asyncio.gather(block(), add(db, "c"), return_exceptions=True)
    return [each if isinstance(each, BaseException) else None for each in (*first, *again)]


@pytest.mark.parametrize("header", [True, False])
async def test_a_file_damaged_while_it_is_open_fails_reads_and_writes_at_once(filled: Settings, header: bool) -> None:
    db = database(filled)
    await db.open()
    damage(filled.sqlite_path, header=header)
    found = await outcomes_of(db)
    assert {type(each) for each in found} == {DatabaseDamaged}
    assert all(str(filled.sqlite_path) in str(each) and "restore a backup" in str(each) for each in found)
    async with asyncio.timeout(PATIENCE):
        await db.close()


async def test_a_file_damaged_before_the_start_is_named(filled: Settings) -> None:
    damage(filled.sqlite_path, header=True)
    with pytest.raises(DatabaseDamaged, match="is damaged"):
        await ensure_schema(filled)
    with pytest.raises(DatabaseDamaged):
        await database(filled).open()


async def test_a_begin_that_fails_fails_everybody_who_waits_and_the_next_one_works(sqlite_settings: Settings) -> None:
    """Whatever the driver raises: here the connection refuses every statement for a while."""
    db = database(sqlite_settings)
    await db.open()
    writer: apsw.Connection = db._writer._connection  # type: ignore[attr-defined]
    writer.authorizer = lambda *_: apsw.SQLITE_DENY
    assert all(isinstance(each, StorageError) for each in (await outcomes_of(db))[:3])
    writer.authorizer = None
    async with asyncio.timeout(PATIENCE):
        await add(db, "after")
    assert "after" in await names(db)
    await db.close()
