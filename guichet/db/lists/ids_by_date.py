"""Finds an id by its date of creation without an index on dates: ids rise with time, so halving finds it."""

from sqlalchemy import Table, bindparam, func, select

from guichet.clock import Instant
from guichet.db.engine import Database


class IdsByDate:
    """For a table with `id` and `created_at`. Rows created at the same time may have ids in another order: callers must
    allow some slack."""

    def __init__(self, table: Table) -> None:
        self._last = select(func.coalesce(func.max(table.c.id), 0))
        self._from = (
            select(table.c.id, table.c.created_at).where(table.c.id >= bindparam("at")).order_by(table.c.id).limit(1)
        )

    async def first_at(self, db: Database, at: Instant) -> int:
        """The first id created at `at` or later; the last id plus one if there is none. Cost: one index probe for each
        halving."""
        low, high = 1, int((await db.scan(self._last))[0][0]) + 1
        while low < high:
            middle = (low + high) // 2
            row = await db.one(self._from, at=middle)
            if row is None or row[1] >= at:
                high = middle
            else:
                low = int(row[0]) + 1
        return low
