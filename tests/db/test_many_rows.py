"""Writing many rows at once (`write_many`): every value arrives as it was given, in order, all or none."""

from typing import Any

import pytest
from sqlalchemy import bindparam, delete, select, update

from guichet.clock import Instant
from guichet.db.engine import Database
from guichet.db.errors import ConstraintViolated, StorageError, ValueRefused
from guichet.db.lists.rollup import _ADD
from guichet.db.references import new_reference
from guichet.db.tables import list_counts, wallet_entries, webhook_deliveries
from guichet.ledger import postings
from guichet.webhooks import deliveries
from tests.db.merchant_rows import add
from tests.db.rows import DELIVERY, ENTRY

TEXTS = (
    "",
    " spaces ",
    "NULL",
    "null",
    "{}",
    '{"a": "b\\n"}',
    "\\\"'`",
    "\\u0000 \\x00 %00",
    "{},()[];--/*$1 :name ?",
    "".join(map(chr, range(1, 32))) + "\x7f\x80\x9f",
    "Ünïcödé\u2028\u2029\ufeff\ufffd\ufffe",
    "\U0001f600\U0010ffff",
    "é" * 1_000_000,
)
NUMBERS = (0, 1, -1, 2**31 - 1, 2**53 + 1, 2**63 - 1, -(2**63))
#: As many rows as SQLite puts into one statement, fewer and more.
COUNTS = (0, 1, 7, 8, 9, 63, 64, 65, 200)
_d = webhook_deliveries.c
_NAMES = webhook_deliveries.c.keys()
_REWRITE = (
    update(webhook_deliveries)
    .where(_d.id == bindparam("row"), _d.url == bindparam("was", type_=_d.url.type))
    .values(history=bindparam("text"), response_code=bindparam("code"))
)
_REMOVE = delete(webhook_deliveries).where(_d.id == bindparam("row"))


def delivery(number: int, **values: Any) -> dict[str, Any]:
    own = {"reference": new_reference(Instant(number)), "url": f"/{number}"}
    return {**dict.fromkeys(_NAMES), **DELIVERY, "id": number + 1, **own, **values}


async def stored(db: Database) -> list[dict[str, Any]]:
    rows = await db.scan(select(*(_d[name] for name in _NAMES)).order_by(_d.id))
    found = [dict(zip(_NAMES, row, strict=True)) for row in rows]
    return [{**each, "reference": str(each["reference"])} for each in found]


@pytest.mark.parametrize("count", COUNTS)
async def test_rows_are_inserted_in_their_order(db: Database, count: int) -> None:
    await add(db, "Kora")
    rows = [delivery(number, created_at=count - number) for number in range(count)]
    await db.write_many(deliveries._INSERT.statement, rows)
    assert await stored(db) == rows


async def test_rows_may_be_given_by_the_positions_of_their_values(db: Database) -> None:
    await add(db, "Kora")
    rows = [delivery(number, history=TEXTS[number % len(TEXTS)]) for number in range(70)]
    async with db.transaction() as tx:
        await tx.write_rows(deliveries._INSERT, [tuple(row.values()) for row in rows])
    assert await stored(db) == rows


async def test_every_value_arrives_as_it_was_given(db: Database) -> None:
    await add(db, "Kora")
    rows = [delivery(n, history=text, payment_id=None if n % 2 else n) for n, text in enumerate(TEXTS * 6)]
    rows += [delivery(1000 + n, payment_id=number) for n, number in enumerate(NUMBERS)]
    await db.write_many(deliveries._INSERT.statement, rows)
    assert await stored(db) == rows
    entries = [{**ENTRY, "subject_id": number, "suspended": number % 3 == 0} for number in range(70)]
    async with db.transaction() as tx:
        await tx.write_many(postings._INSERT_ENTRY.statement, entries)
    told = select(wallet_entries.c.suspended).order_by(wallet_entries.c.id)
    assert [bool(row[0]) for row in await db.scan(told)] == [entry["suspended"] for entry in entries]


async def test_rows_are_changed_and_deleted_each_by_its_own_values(db: Database) -> None:
    await add(db, "Kora")
    await db.write_many(deliveries._INSERT.statement, [delivery(number) for number in range(100)])
    changes = [
        {"row": n + 1, "was": f"/{n}", "text": TEXTS[n % len(TEXTS)], "code": None if n % 2 else n} for n in range(90)
    ]
    await db.write_many(_REWRITE, [*changes, {"row": 95, "was": "another", "text": "lost", "code": 1}])
    found = await db.scan(select(_d.history, _d.response_code).order_by(_d.id))
    assert [tuple(row) for row in found[:90]] == [(each["text"], each["code"]) for each in changes]
    assert {tuple(row) for row in found[90:]} == {(None, None)}
    await db.write_many(_REMOVE, [{"row": number} for number in range(1, 100)])
    assert [row[0] for row in await db.scan(select(_d.id))] == [100]


async def test_rows_that_exist_are_added_to(db: Database) -> None:
    await add(db, "Kora")
    key = {"merchant_id": 1, "env": "test", "list_name": "payments", "level": "hour", "status": "failed"}
    rows = [{**key, "bucket": number, "row_count": number + 1} for number in range(150)]
    await db.write_many(_ADD, rows)
    await db.write_many(_ADD, rows[:100])
    found = await db.scan(select(list_counts.c.row_count).order_by(list_counts.c.bucket))
    assert [row[0] for row in found] == [(n + 1) * (2 if n < 100 else 1) for n in range(150)]


async def test_all_rows_are_written_or_none(db: Database) -> None:
    await add(db, "Kora")
    good = [delivery(number) for number in range(100)]
    with pytest.raises(ConstraintViolated) as violated:
        await db.write_many(deliveries._INSERT.statement, [*good[:70], {**good[70], "env": "prod"}, *good[71:]])
    assert violated.value.name == "ck_webhook_deliveries_env"
    await db.write_many(deliveries._INSERT.statement, good[:10])
    with pytest.raises(ConstraintViolated):
        await db.write_many(deliveries._INSERT.statement, [*good[10:90], good[3]])
    for refused in ({"history": "Awa\ud800"}, {"payment_id": 2**63}, {"payment_id": -(2**64)}):
        with pytest.raises(ValueRefused) as error:
            await db.write_many(deliveries._INSERT.statement, [*good[10:90], {**good[90], **refused}])
        assert "Awa" not in str(error.value), "the value may be a secret, and the text is logged"
    with pytest.raises(StorageError):
        await db.write_many(deliveries._INSERT.statement, [*good[10:90], {**good[90], "error": object()}])
    assert await stored(db) == good[:10]
