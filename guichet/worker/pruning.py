"""Deletes old rows of what is a log: webhook deliveries that ended, incidents somebody closed, stray notifications.

Payments, refunds, postings, seals, audits and wallets are never pruned. Ids are given in the order in which rows are
made, so a round walks from the oldest id, a batch at a time, and ends at the first batch without an old row: what it
costs is the rows it deletes and the old ones it keeps, however many young ones there are. Old rows that must stay are
passed over, and so are single ones among them that a wrong clock dated later.
"""

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Executable, Table, bindparam, delete, func, select, true

from guichet.clock import DAY, HOUR, Instant
from guichet.db.engine import Database
from guichet.db.tables import deliveries, incidents, stray_callbacks
from guichet.logs import log
from guichet.settings import Settings

#: Rows looked at, and deleted, by one step of one log: a few milliseconds on SQLite's event loop.
BATCH: Final = 200
#: How long a log rests once nothing old is left in it.
REST: Final = HOUR


class Log:
    """A table with `id`, when its rows are `made`, and which of them may go once they are old."""

    def __init__(self, table: Table, made: Column[Any], ended: ColumnElement[bool]) -> None:
        number = table.c.id
        doomed = (
            select(number)
            .where(number.between(bindparam("first"), bindparam("last")), made < bindparam("before"), ended)
            .with_for_update(skip_locked=True)
            .cte("doomed")
        )
        self.name: Final = table.name
        self.look: Final[Executable] = (
            select(number, made).where(number > bindparam("after")).order_by(number).limit(bindparam("most"))
        )
        self.prune: Final[Executable] = delete(table).where(number.in_(select(doomed.c.id))).returning(number)


#: Cancelled before its first attempt, a delivery has ended without an answer.
_ended_at: Final = func.coalesce(deliveries.c.answered_at, deliveries.c.created_at)
DELIVERIES: Final = Log(
    deliveries, deliveries.c.created_at, (deliveries.c.status != "pending") & (_ended_at < bindparam("before"))
)
INCIDENTS: Final = Log(incidents, incidents.c.opened_at, incidents.c.closed_at < bindparam("before"))
STRAYS: Final = Log(stray_callbacks, stray_callbacks.c.received_at, true())


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch did. `reached`: the id to go on after; None when no older row is left."""

    pruned: int
    reached: int | None


async def prune(db: Database, kept: Log, before: Instant, after: int = 0, most: int = BATCH) -> Step:
    """Deletes what may go among the next `most` rows: made before `before`, and ended before it.

    Several workers may do it at once: what one has locked the others leave alone.
    """
    rows = await db.scan(kept.look, after=after, most=most)
    if not any(made < before for _, made in rows):
        return Step(0, None)
    first, last = rows[0][0], rows[-1][0]
    async with db.transaction() as tx:
        gone = await tx.all(kept.prune, first=first, last=last, before=before)
    return Step(len(gone), last if len(rows) == most else None)


class Pruning:
    """All logs with an age of their own: one batch a step while there is something old, then a rest."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        logs = {DELIVERIES: settings.keep_deliveries_days}
        logs |= dict.fromkeys((INCIDENTS, STRAYS), settings.keep_incidents_days)
        self._rounds = [_Round(each, days * DAY) for each, days in logs.items() if days]

    async def step(self, now: Instant) -> int:
        """How many rows went. Cost: at most BATCH rows of each log, nothing while all of them rest."""
        return sum([await each.step(self._db, now) for each in self._rounds])


class _Round:
    """One log, walked from its oldest row again and again."""

    def __init__(self, kept: Log, age: int) -> None:
        self._log = kept
        self._age = age
        self._after = 0
        self._pruned = 0
        self._rests_until: Instant = 0

    async def step(self, db: Database, now: Instant) -> int:
        if now < self._rests_until:
            return 0
        done = await prune(db, self._log, now - self._age, self._after)
        self._pruned += done.pruned
        if done.reached is None:
            if self._pruned:
                log.info("log.pruned", table=self._log.name, rows=self._pruned)
            self._after, self._pruned, self._rests_until = 0, 0, now + REST
        else:
            self._after = done.reached
        return done.pruned
