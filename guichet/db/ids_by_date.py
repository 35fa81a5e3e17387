"""From a date to an id. Ids are given in the order in which rows are made, so a date is found by halving, without an
index on dates."""

from sqlalchemy import Table, bindparam, func, select

from guichet.clock import Instant
from guichet.db.engine import Database


class IdsByDate:
    """For a table with `id` and `created_at`. Rows made at the same time may be a moment out of order: leave slack."""

    def __init__(self, table: Table) -> None:
        self._last = select(func.coalesce(func.max(table.c.id), 0))
        self._from = (
            select(table.c.id, table.c.created_at).where(table.c.id >= bindparam("at")).order_by(table.c.id).limit(1)
        )

    async def first_at(self, db: Database, at: Instant) -> int:
        """The first id made at or after `at`; beyond the last one if there is none. Cost: a probe a halving."""
        low, high = 1, int((await db.scan(self._last))[0][0]) + 1
        while low < high:
            middle = (low + high) // 2
            row = await db.one(self._from, at=middle)
            if row is None or row[1] >= at:
                high = middle
            else:
                low = int(row[0]) + 1
        return low
