"""Writes of one row each that come at the same time: whatever they share, each has its own answer."""

import asyncio
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from sqlalchemy import text

from guichet.clock import SECOND, Instant, later
from guichet.db.engine import Database, require
from guichet.db.errors import ConstraintViolated, StorageError
from guichet.domain.payments import Payment
from guichet.payments import pending
from guichet.payments import repository as payments
from guichet.settings import Settings
from tests.db.rows import PAYMENT

NOW = Instant(1_000 * SECOND)
UNTIL = later(NOW, 30 * SECOND)


def payment(external_id: str | None = None, **values: Any) -> Payment:
    unset = dict.fromkeys(field.name for field in msgspec.structs.fields(Payment))
    counts = {"not_found_count": 0, "not_found_duration": 0, "answered_pending": False, "refused_at_initiation": False}
    own = {"id": 0, "reference": str(uuid4()), "external_id": external_id}
    return Payment(**{**unset, **PAYMENT, **counts, **own, **values})


async def create(db: Database, *new: Payment) -> list[Any]:
    """What became of each, all at the same time."""
    return await asyncio.gather(*(payments.create(db, each, NOW) for each in new), return_exceptions=True)


@pytest.mark.parametrize("env", ["test", "live"])
async def test_each_payment_gets_its_own_answer(merchant_db: Database, env: str) -> None:
    new = [payment(f"e{number}", env=env) for number in range(150)]
    stored = await create(merchant_db, *new)
    assert [(each.reference, each.external_id) for each in stored] == [(e.reference, e.external_id) for e in new]
    for each in stored:
        assert await payments.by_id(merchant_db, each.id) == each


async def test_a_key_that_is_used_twice_is_stored_once(merchant_db: Database) -> None:
    await create(merchant_db, payment("before"))
    names = ["a", "before", "b", "a", "c", "a"]
    answers = await create(merchant_db, *map(payment, names))
    assert sorted(each.external_id for each in answers if each is not None) == ["a", "b", "c"]


async def test_a_row_that_is_refused_concerns_nobody_else(merchant_db: Database) -> None:
    new = [payment(f"e{number}") for number in range(40)]
    new[7], new[23] = payment("nobody's", merchant_id=999), payment("worthless", amount=0)
    new[31] = payment("a\ud800")
    answers = await create(merchant_db, *new)
    refused = {place: type(each) for place, each in enumerate(answers) if isinstance(each, StorageError)}
    assert set(refused) == {7, 23, 31}
    assert refused[23] is ConstraintViolated
    assert [each.external_id for place, each in enumerate(answers) if place not in refused] == [
        each.external_id for place, each in enumerate(new) if place not in refused
    ]


async def test_one_of_many_gets_the_lease(merchant_db: Database) -> None:
    one, other = await create(merchant_db, payment(), payment())
    leases = [pending.lease(merchant_db, each.id, NOW, UNTIL, NOW) for each in (one, other) for _ in range(20)]
    held = [each for each in await asyncio.gather(*leases) if each is not None]
    assert sorted(each.id for each in held) == sorted([one.id, other.id])
    assert {(each.lease_expires_at, each.asked_at) for each in held} == {(UNTIL, NOW)}


async def test_a_row_that_is_changed_twice_at_the_same_time_is_changed_twice(merchant_db: Database) -> None:
    """One statement for many rows would change it once."""
    stored = await create(merchant_db, *(payment() for _ in range(4)))
    await asyncio.gather(*(pending.schedule_next_poll(merchant_db, each, UNTIL) for each in stored for _ in range(5)))
    found = [require(await payments.by_id(merchant_db, each.id)) for each in stored]
    assert [(each.poll_count, each.next_poll_at) for each in found] == [(5, UNTIL)] * 4


async def test_payments_that_come_together_share_a_commit(settings: Settings, merchant_db: Database) -> None:
    if settings.embedded:
        pytest.skip("SQLite commits everything together (test_group_commit.py)")
    await create(merchant_db, *(payment() for _ in range(60)))
    [(transactions,)] = await merchant_db.all(text("SELECT count(DISTINCT xmin::text) FROM payments"))
    assert transactions < 10


async def test_those_who_wait_for_each_other_are_written_alone(settings: Settings, worker_dbs: list[Database]) -> None:
    """Another process stores the same two payments in the other order: PostgreSQL ends one of the two transactions."""
    if settings.embedded:
        pytest.skip("SQLite has one writer at a time")
    ours, theirs = worker_dbs[:2]
    first, second = sorted((payment("a"), payment("b")), key=lambda each: each.reference)
    async with theirs.transaction() as tx:
        await tx.write(text("SET LOCAL deadlock_timeout = '1min'"))
        copy = msgspec.structs.replace(second, reference=str(uuid4()))
        assert await payments.insert_new(tx, copy, NOW)
        waiting = asyncio.create_task(create(ours, first, second))
        while not (await ours.all(text("SELECT 1 FROM pg_locks WHERE NOT granted"))):
            await asyncio.sleep(0.01)
        theirs_first = await payments.insert_new(tx, msgspec.structs.replace(first, reference=str(uuid4())), NOW)
    ours_first, ours_second = await waiting
    assert (ours_first is None) != (theirs_first is None), "whoever comes first after the deadlock"
    assert ours_second is None


async def test_a_claim_of_a_live_payment_is_its_lease(merchant_db: Database) -> None:
    live, polled, test = await create(merchant_db, payment(env="live"), payment(env="live"), payment())
    theirs = later(NOW, SECOND)
    require(await pending.lease(merchant_db, polled.id, NOW, theirs, NOW))
    claimed = {each.id: each for each in (await pending.QUEUE.claim(merchant_db, NOW, UNTIL, 10)).jobs}
    assert {each.id for each in claimed.values() if pending.is_leased_by_claim(each, NOW)} == {live.id}
    assert not pending.is_leased_by_claim(claimed[live.id], UNTIL), (
        "its holder stood still: it asks for the lease again"
    )
    assert (claimed[polled.id].lease_expires_at, claimed[test.id].lease_expires_at) == (theirs, None)
    assert await pending.lease(merchant_db, live.id, NOW, UNTIL, NOW) is None, "somebody polls it"
