"""Transactions on both databases, and what is particular to the embedded one: group commit."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import Integer, Text, bindparam, func, insert, select, text, update

from guichet.bootstrap import database
from guichet.db.engine import Database
from guichet.db.errors import ConstraintViolated, StorageError, StorageUnavailable
from guichet.db.tables import merchants, payment_links
from guichet.settings import Settings

ADD = insert(merchants).values(status="active", currency="XOF", created_at=1).returning(merchants.c.id)
NAMES = select(merchants.c.name).order_by(merchants.c.id)
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


class Oops(Exception):
    pass


@pytest.fixture
async def db(settings: Settings) -> AsyncIterator[Database]:
    opened = database(settings)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def embedded(sqlite_settings: Settings) -> AsyncIterator[Database]:
    opened = database(sqlite_settings)
    await opened.open()
    yield opened
    await opened.close()


async def add(db: Database, name: str) -> None:
    await db.write(ADD.values(name=name))


async def names(db: Database) -> list[str]:
    return [row[0] for row in await db.scan(NAMES)]


async def test_what_is_committed_is_there_and_what_failed_is_not(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.write(ADD.values(name="kept"))
        assert [row[0] for row in await tx.all(NAMES)] == ["kept"], "a transaction sees its own writes"
        assert await db.all(NAMES) == [], "nobody else does"
    with pytest.raises(Oops):  # noqa: PT012 - the body raises after writing
        async with db.transaction() as tx:
            await tx.write(ADD.values(name="lost"))
            raise Oops
    assert await names(db) == ["kept"]


async def test_a_cancelled_body_leaves_nothing(db: Database) -> None:
    with pytest.raises(asyncio.CancelledError):  # noqa: PT012
        async with db.transaction() as tx:
            await tx.write(ADD.values(name="lost"))
            raise asyncio.CancelledError
    await add(db, "after")
    assert await names(db) == ["after"]


async def test_a_constraint_rolls_back_what_was_written_before_it(db: Database) -> None:
    with pytest.raises(ConstraintViolated):  # noqa: PT012
        async with db.transaction() as tx:
            await tx.write(ADD.values(name="lost"))
            await tx.write(ADD.values(name="worse", status="closed"))
    assert await names(db) == []


async def test_one_failing_body_among_many_is_alone(db: Database) -> None:
    async def one(number: int) -> None:
        async with db.transaction() as tx:
            await tx.write(ADD.values(name=str(number)))
            if number % 7 == 3:
                raise Oops

    outcomes = await asyncio.gather(*(one(number) for number in range(40)), return_exceptions=True)
    assert [isinstance(each, Oops) for each in outcomes] == [number % 7 == 3 for number in range(40)]
    assert sorted(await names(db)) == sorted(str(number) for number in range(40) if number % 7 != 3)


LINK = {"merchant_id": 1, "type": "permanent", "amount": 1, "currency": "XOF", "completed_uses": 0, "created_at": 1}
LINKS = insert(payment_links).values(
    {name: bindparam(name) for name in (*LINK, "token", "description", "max_uses", "reserved_uses")}
)
USED = (
    update(payment_links)
    .where(payment_links.c.token == bindparam("whose"), payment_links.c.reserved_uses < 5)
    .values(
        reserved_uses=payment_links.c.reserved_uses + bindparam("uses", type_=Integer),
        description=func.coalesce(bindparam("text", type_=Text), payment_links.c.description),
        max_uses=7,
    )
    .returning(payment_links.c.token, payment_links.c.reserved_uses, payment_links.c.description)
)


async def test_many_rows_are_written_as_if_one_by_one(db: Database) -> None:
    await add(db, "one")
    tokens = [f"t{(7 * number) % 20}" for number in range(20)]
    new = [
        {
            **LINK,
            "token": token,
            "description": f"« {token} »\n'\"{{}},\\",
            "max_uses": place or None,
            "reserved_uses": place,
        }
        for place, token in enumerate(tokens)
    ]
    await db.execute_many(LINKS, new)
    kept = select(payment_links.c.token, payment_links.c.description, payment_links.c.max_uses)
    stored = [tuple(row) for row in await db.all(kept.order_by(payment_links.c.id))]
    assert stored == [(row["token"], row["description"], row["max_uses"]) for row in new], "in their order"
    async with db.transaction() as tx:
        await tx.execute_many(LINKS, [])
        assert await tx.execute_many_returning(USED, []) == []
        wanted = [("t14", 3, None), ("t15", 1, None), ("nobody", 1, None), ("t0", 2, "changed")]
        changed = await tx.execute_many_returning(
            USED, [{"whose": who, "uses": uses, "text": text} for who, uses, text in wanted]
        )
    # The second has no use left, the third is not there.
    assert sorted(map(tuple, changed)) == [("t0", 2, "changed"), ("t14", 5, new[2]["description"])]
    with pytest.raises(ConstraintViolated, match="uq_payment_links_token"):
        await db.execute_many(LINKS, [{**new[0], "token": "new"}, new[1]])
    assert len(await db.all(kept)) == 20, "all or none"


async def test_a_number_is_never_given_twice(db: Database) -> None:
    """Not even the number of a row that was rolled back at the top (D28)."""
    given = []
    with pytest.raises(Oops):  # noqa: PT012
        async with db.transaction() as tx:
            given.append((await tx.write(ADD.values(name="lost")) or [0])[0])
            raise Oops
    for name in ("a", "b"):
        given.append((await db.write(ADD.values(name=name)) or [0])[0])
    assert given[1] < given[2]
    assert all(number > 0 for number in given)


# --- group commit -----------------------------------------------------------------------------------------------------


async def test_many_bodies_share_few_commits_and_all_are_durable(embedded: Database, sqlite_settings: Settings) -> None:
    """A commit changes `data_version` as another connection sees it: counting these changes counts commits."""
    watcher = sqlite3.connect(sqlite_settings.sqlite_path, isolation_level=None)
    seen: set[int] = set()
    finished = False

    async def watch() -> None:
        while not finished:
            seen.add(watcher.execute("PRAGMA data_version").fetchone()[0])
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


async def test_one_failing_statement_among_many_is_alone(embedded: Database) -> None:
    async def one(number: int) -> None:
        await embedded.write(ADD.values(name=str(number), status="closed" if number % 7 == 3 else "active"))

    outcomes = await asyncio.gather(*(one(number) for number in range(40)), return_exceptions=True)
    assert [type(each) for each in outcomes] == [
        ConstraintViolated if number % 7 == 3 else type(None) for number in range(40)
    ]
    assert sorted(await names(embedded)) == sorted(str(number) for number in range(40) if number % 7 != 3)


async def test_a_statement_whose_caller_left_before_its_turn_is_not_run(embedded: Database) -> None:
    leaving = asyncio.create_task(add(embedded, "left"))
    await asyncio.sleep(0)
    leaving.cancel()
    await add(embedded, "stayed")
    assert leaving.cancelled()
    assert await names(embedded) == ["stayed"]


async def test_bodies_have_their_turn_among_endless_statements(embedded: Database) -> None:
    """Statements never stop coming, so that one commit begins where another ends."""
    finished = False

    async def writer(number: int) -> None:
        for _ in range(number):  # Not all in one group, or there would be a gap after it.
            await asyncio.sleep(0)
        while not finished:
            await add(embedded, f"statement {number}")

    writers = [asyncio.create_task(writer(number)) for number in range(8)]
    async with asyncio.timeout(5):
        for number in range(5):
            async with embedded.transaction() as tx:
                await tx.write(ADD.values(name=f"body {number}"))
    finished = True
    await asyncio.gather(*writers)
    assert {f"body {number}" for number in range(5)} <= set(await names(embedded))


async def test_a_body_that_waits_for_something_foreign_is_refused_and_harms_nobody(embedded: Database) -> None:
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
    async with asyncio.timeout(1):
        with pytest.raises(StorageError):  # noqa: PT012
            async with embedded.transaction() as tx:
                await tx.write(ADD.values(name="outer"))
                await add(embedded, "inner")
    assert await names(embedded) == []
    await add(embedded, "after")
    assert await names(embedded) == ["after"]


async def test_a_commit_that_fails_is_told_to_everybody_in_it(embedded: Database) -> None:
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


async def test_a_commit_that_fails_is_nobody_elses_business(embedded: Database) -> None:
    """Whoever arrives while it runs writes in the next one."""

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


async def test_a_full_disk_is_an_error_and_not_the_end(embedded: Database) -> None:
    (pages,) = await embedded.one(text("PRAGMA page_count")) or (0,)
    async with embedded.transaction() as tx:
        await tx.one(text(f"PRAGMA max_page_count = {pages + 2}"))
    outcomes = await asyncio.gather(*(add(embedded, "x" * 3000) for _ in range(12)), return_exceptions=True)
    failed = [each for each in outcomes if each is not None]
    assert failed
    assert {type(each) for each in failed} == {StorageUnavailable}
    stored = len(await names(embedded))
    assert stored == 12 - len(failed), "who was told yes is there, who was told no is not"
    async with embedded.transaction() as tx:
        await tx.one(text("PRAGMA max_page_count = 1000000"))
    await add(embedded, "after")
    assert len(await names(embedded)) == stored + 1


async def test_a_transaction_that_the_database_gave_up_is_told_to_everybody_in_it(embedded: Database) -> None:
    """SQLite may roll back by itself, on a failing disk for instance; here a body does what the disk would."""

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
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO merchants (name, status, currency, created_at) VALUES ('other', 'active', 'XOF', 1)")
print("locked", flush=True)
time.sleep(0.5)
connection.execute("COMMIT")
"""


async def test_another_process_that_writes_is_waited_for_without_blocking(
    embedded: Database, sqlite_settings: Settings
) -> None:
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, str(sqlite_settings.sqlite_path), stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert await other.stdout.readline() == b"locked\n"
    longest = 0.0

    async def heartbeat() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.01)
            longest = max(longest, time.perf_counter() - before)

    beating = asyncio.create_task(heartbeat())
    before = time.perf_counter()
    await asyncio.gather(*(add(embedded, str(number)) for number in range(20)))
    waited = time.perf_counter() - before
    beating.cancel()
    await other.wait()
    assert waited > 0.3, "the other process had the lock"
    assert longest < 0.25, f"the loop stood still for {longest:.3f} s"
    assert sorted(await names(embedded)) == sorted(["other", *(str(number) for number in range(20))])


async def test_a_file_that_another_process_just_opens_or_closes_is_waited_for(sqlite_settings: Settings) -> None:
    other = sqlite3.connect(sqlite_settings.sqlite_path, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("PRAGMA user_version = 1")  # Nobody else may even look.
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
    other = sqlite3.connect(sqlite_settings.sqlite_path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE merchants SET name = 'changed'")
    async with asyncio.timeout(0.5):
        assert await names(embedded) == ["before"]
        assert [row[0] for row in await embedded.all(NAMES)] == ["before"]
    other.execute("COMMIT")
    other.close()
    assert await names(embedded) == ["changed"]


async def test_a_slow_question_leaves_the_loop_free(embedded: Database) -> None:
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
