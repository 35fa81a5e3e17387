"""Deletes what live payments of a day came to for merchants with a daily limit, once nobody asks for it.

Only the row of today is compared with a limit. Older ones are taken from when a payment of that day fails late, but
nothing reads them. The table has no index by day: a round walks its primary key, so many rows at a time, once a day.
"""

from typing import Final

from sqlalchemy import bindparam, delete, select, tuple_

from guichet.clock import DAY, Instant, later, to_datetime
from guichet.db.engine import Database
from guichet.db.tables import daily_totals
from guichet.logs import log

#: Days that are kept, whatever the settings say (docs/operations/retention.md).
KEPT_DAYS: Final = 40
#: Rows that one step reads: those of 24 merchants or more.
READ_AT_ONCE: Final = 1000
#: How long the table rests after a round: a merchant has one more row each day.
PAUSE: Final = DAY

_merchant, _day = daily_totals.c.merchant_id, daily_totals.c.day
_LOOK: Final = (
    select(_merchant, _day)
    .where(tuple_(_merchant, _day) > tuple_(bindparam("after_merchant"), bindparam("after_day")))
    .order_by(_merchant, _day)
    .limit(READ_AT_ONCE)
)
_PRUNE: Final = delete(daily_totals).where(_merchant == bindparam("of_merchant"), _day < bindparam("before"))


class DailyTotalsPruning:
    """One batch a step until the end of the table, then a pause."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._after = (0, 0)
        self._pauses_until = Instant(0)

    async def step(self, now: Instant) -> int:
        """Of how many merchants old rows were deleted."""
        if now < self._pauses_until:
            return 0
        merchant, day = self._after
        rows = await self._db.scan(_LOOK, after_merchant=merchant, after_day=day)
        before = to_datetime(now).date().toordinal() - KEPT_DAYS
        # In the order of the keys, as settlement takes them (`merchants/limits.py`).
        old = sorted({of_merchant for of_merchant, of_day in rows if of_day < before})
        if old:
            async with self._db.transaction() as tx:
                await tx.execute_many(_PRUNE, [{"of_merchant": each, "before": before} for each in old])
            log.info("log.pruned", table=daily_totals.name, merchants=len(old))
        if len(rows) == READ_AT_ONCE:
            self._after = (rows[-1][0], rows[-1][1])
        else:
            self._after, self._pauses_until = (0, 0), later(now, PAUSE)
        return len(old)
