"""Reads of one row each that come at the same time: whatever they share, each has its own answer."""

import asyncio
from uuid import uuid4

from sqlalchemy import select

from guichet.db.engine import Database
from guichet.db.postgres.grouped import GroupedReads
from guichet.db.sql_functions import is_listed
from guichet.db.tables import payments
from guichet.payments import repository
from tests.db.test_grouped_writes import NOW, payment
from tests.fakes.recording_database import RecordingDatabase

_BY_REFERENCE = select(payments.c.reference, payments.c.external_id).where(is_listed(payments.c.reference, "keys"))


async def test_each_key_gets_its_own_row_and_many_share_a_statement(merchant_db: Database) -> None:
    new = [payment(f"e{number}") for number in range(100)]
    for each in new:
        await repository.create(merchant_db, each, NOW)
    recording_db = RecordingDatabase(merchant_db)
    reads = GroupedReads(recording_db)
    keys = [*(each.reference for each in new), str(uuid4()), new[0].reference]
    rows = await asyncio.gather(*(reads[_BY_REFERENCE].add(key) for key in keys))
    assert [row and tuple(row) for row in rows] == [
        *((each.reference, each.external_id) for each in new), None, (new[0].reference, "e0"),
    ]  # fmt: skip
    assert len(recording_db.seen) == 2
    assert await reads[_BY_REFERENCE].add(keys[1]), "one alone"
