"""Values that no column can hold: one error of ours on both databases, which concerns the statement alone."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import bindparam, func, select, text

from guichet.db.engine import Database
from guichet.db.errors import StorageError, ValueRefused
from guichet.db.tables import merchants
from guichet.settings import Settings
from tests.db.merchant_rows import ADD, add, names

INSERT = ADD.values(name=bindparam("name"), created_at=bindparam("created_at"))
NAMED = select(merchants.c.id).where(merchants.c.name == bindparam("name"), merchants.c.id == bindparam("id"))
BACKEND = select(func.pg_backend_pid())
BAD: dict[str, dict[str, Any]] = {
    "half of a surrogate pair": {"name": "Awa\ud800", "created_at": 1},
    "an integer of 65 bits": {"name": "Awa", "created_at": 2**64},
    "a NUL": {"name": "Awa\0b", "created_at": 1},
}


def stores(db: Database, params: dict[str, Any]) -> bool:
    """SQLite stores a NUL like any other character."""
    return "\0" in params["name"] and type(db).__name__ == "SqliteDatabase"


@pytest.mark.parametrize("params", BAD.values(), ids=BAD)
async def test_a_value_that_no_column_can_hold_is_refused_as_one(db: Database, params: dict[str, Any]) -> None:
    if stores(db, params):
        return
    with pytest.raises(ValueRefused) as refused:
        await db.write(INSERT, **params)
    assert params["name"] not in str(refused.value), "the value may be a secret, and the text is logged"
    with pytest.raises(ValueRefused):
        async with db.transaction() as tx:
            await tx.write(INSERT, **params)
    with pytest.raises(ValueRefused):
        await db.write_many(INSERT, [{"name": "good", "created_at": 1}, params])
    assert await names(db) == []


async def test_writes_at_the_same_time_are_not_affected(db: Database) -> None:
    bad = [params for params in BAD.values() if not stores(db, params)]
    outcomes = await asyncio.gather(
        *(db.write(INSERT, **params) for params in bad),
        *(add(db, str(number)) for number in range(20)),
        return_exceptions=True,
    )
    assert [type(each) for each in outcomes] == [ValueRefused] * len(bad) + [type(None)] * 20
    assert len(await names(db)) == 20


async def test_a_refused_value_costs_no_connection(settings: Settings, db: Database) -> None:
    """It is refused before anything is sent: the connections are as good as before."""
    if settings.embedded:
        pytest.skip("SQLite has no connections to lose")
    (before,) = await db.one(BACKEND) or (0,)
    with pytest.raises(ValueRefused):
        await db.all(NAMED, name="a\ud800", id=1)
    assert await db.one(BACKEND) == (before,)


async def test_other_errors_of_the_driver_are_storage_errors_too(db: Database) -> None:
    with pytest.raises(StorageError):
        await db.all(text("SELECT nothing FROM nowhere"))
    with pytest.raises(StorageError):
        await db.all(NAMED, name=object(), id=1)
