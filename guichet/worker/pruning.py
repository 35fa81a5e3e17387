"""Deletes old rows of logs: webhook deliveries that ended, closed incidents and those of the test environment,
callbacks of providers, finished comparisons with providers, requests of merchants' keys.

Payments, refunds, postings, the hash chain, audits and wallets are never pruned. Ids rise with the time of creation, so
a round walks from the oldest id, a batch at a time, and ends at the first batch without an old row. Its cost is the
rows it deletes and the old rows it keeps, however many young rows there are. Old rows that must stay are passed over,
and so are single rows among them that a wrong clock dated later.
"""

from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Executable, bindparam, delete, func, select, true, tuple_

from guichet.clock import DAY, HOUR, Instant, earlier, later, to_datetime
from guichet.db.engine import Database
from guichet.db.tables import (
    api_requests,
    daily_totals,
    events,
    export_chunks,
    exports,
    idempotency_keys,
    incidents,
    mail_links,
    mails,
    passkey_challenges,
    provider_callbacks,
    reconciliation_runs,
    staff_jobs,
    unmatched_callbacks,
    user_sessions,
    webhook_deliveries,
)
from guichet.domain.records import Record
from guichet.logs import log
from guichet.settings import Settings
from guichet.webhooks.events import LISTED_DAYS

#: Rows that one step of one log reads, and deletes at most: a few milliseconds on SQLite's event loop.
BATCH: Final = 200
#: How long a log rests once nothing old is left in it.
PAUSE: Final = HOUR
_ALWAYS: Final = true()


class Log:
    """A table with `id`, the column that dates its rows, and the condition under which an old row may be deleted.
    `days`: how many its rows are kept, whatever the settings say (docs/operations/retention.md). `batches`: of one
    step."""

    def __init__(
        self,
        made: Column[Any],
        ended: ColumnElement[bool] = _ALWAYS,
        *,
        days: int = 0,
        batch: int = BATCH,
        batches: int = 1,
    ) -> None:
        self.days: Final = days
        self.batch: Final = batch
        self.batches: Final = batches
        table = made.table
        number = table.c.id
        deletable = (
            select(number)
            .where(number.between(bindparam("first"), bindparam("last")), made < bindparam("before"), ended)
            .with_for_update(skip_locked=True)
            .cte("deletable")
        )
        self.name: Final = table.name
        self.look: Final[Executable] = (
            select(number, made).where(number > bindparam("after")).order_by(number).limit(bindparam("most"))
        )
        self.prune: Final[Executable] = delete(table).where(number.in_(select(deletable.c.id))).returning(number)


#: Cancelled before its first attempt, a delivery has ended without an answer.
_ended_at: Final = func.coalesce(webhook_deliveries.c.last_attempt_at, webhook_deliveries.c.created_at)
DELIVERIES: Final = Log(
    webhook_deliveries.c.created_at,
    (webhook_deliveries.c.status != "pending") & (_ended_at < bindparam("before")),
)
#: With the last delivery, but no sooner than a merchant may catch up.
EVENTS: Final = Log(
    events.c.created_at, ~select(webhook_deliveries.c.id).where(webhook_deliveries.c.id == events.c.id).exists()
)
#: Those that are kept as long as closed incidents.
_OF_INCIDENTS: Final = (
    # An incident of the test environment concerns nobody who would close it.
    Log(incidents.c.opened_at, (incidents.c.closed_at < bindparam("before")) | (incidents.c.env == "test")),
    Log(provider_callbacks.c.received_at, provider_callbacks.c.status != "pending"),
    Log(unmatched_callbacks.c.received_at),
    Log(reconciliation_runs.c.day, reconciliation_runs.c.due_at.is_(None)),
)
_OTHERS: Final = (
    # A session has ended after twelve hours, a link after a week: both are kept longer than anybody could use them.
    Log(user_sessions.c.created_at, days=1),
    Log(passkey_challenges.c.created_at, days=1),
    Log(mail_links.c.created_at, days=30),
    Log(mails.c.created_at, mails.c.status != "pending", days=30),
    # Each is a hundred kilobytes.
    Log(export_chunks.c.created_at, days=1, batch=8),
    Log(
        exports.c.created_at,
        (exports.c.status != "pending")
        & ~select(export_chunks.c.id).where(export_chunks.c.export_id == exports.c.id).exists(),
        days=30,
    ),
    Log(staff_jobs.c.created_at, staff_jobs.c.status != "pending", days=30),
    # There may be several requests for a payment.
    Log(api_requests.c.at, days=7, batches=5),
    Log(idempotency_keys.c.created_at, days=2, batches=5),
)


class Step(Record, frozen=True):
    """What one batch did. `reached`: the id to continue after; None when no old row is left."""

    pruned: int
    reached: int | None


async def prune(db: Database, log_table: Log, before: Instant, after: int = 0, most: int = BATCH) -> Step:
    """Among the `most` rows after the id `after`, deletes those that were created and ended before `before`.

    Several workers may prune at once: each leaves alone what another has locked.
    """
    rows = await db.scan(log_table.look, after=after, most=most)
    if not any(created_at < before for _, created_at in rows):
        return Step(0, None)
    first, last = rows[0][0], rows[-1][0]
    async with db.transaction() as tx:
        deleted = await tx.write_all(log_table.prune, first=first, last=last, before=before)
    return Step(len(deleted), last if len(rows) == most else None)


class Pruning:
    """Prunes every log: one batch a step while there are old rows, then a pause."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        keep = settings.keep_deliveries_days
        logs = {DELIVERIES: keep, EVENTS: keep and max(keep, LISTED_DAYS)}
        logs |= dict.fromkeys(_OF_INCIDENTS, settings.keep_incidents_days)
        logs |= {log_table: log_table.days for log_table in _OTHERS}
        self._rounds = [_Round(log_table, days * DAY) for log_table, days in logs.items() if days]

    async def step(self, now: Instant) -> int:
        """How many rows were deleted. Cost: at most BATCH rows of each log, five times that of requests; nothing while
        all of them pause."""
        return sum([await turn.step(self._db, now) for turn in self._rounds for _ in range(turn.log.batches)])


class _Round:
    """The rounds through one log, each from its oldest row."""

    def __init__(self, log_table: Log, age: int) -> None:
        self.log: Final = log_table
        self._age = age
        self._after = 0
        self._pruned = 0
        self._pauses_until = Instant(0)

    async def step(self, db: Database, now: Instant) -> int:
        if now < self._pauses_until:
            return 0
        batch = await prune(db, self.log, earlier(now, self._age), self._after, self.log.batch)
        self._pruned += batch.pruned
        if batch.reached is None:
            if self._pruned:
                log.info("log.pruned", table=self.log.name, rows=self._pruned)
            self._after, self._pruned, self._pauses_until = 0, 0, later(now, PAUSE)
        else:
            self._after = batch.reached
        return batch.pruned


#: Days of a merchant's daily totals that are kept, whatever the settings say (docs/operations/retention.md).
KEPT_DAYS: Final = 40
#: Rows of them that one step reads: those of 24 merchants or more.
_TOTALS_AT_ONCE: Final = 1000
#: How long their table rests after a round: a merchant has one more row each day.
_TOTALS_PAUSE: Final = DAY

_merchant, _day = daily_totals.c.merchant_id, daily_totals.c.day
_LOOK_AT_TOTALS: Final = (
    select(_merchant, _day)
    .where(tuple_(_merchant, _day) > tuple_(bindparam("after_merchant"), bindparam("after_day")))
    .order_by(_merchant, _day)
    .limit(_TOTALS_AT_ONCE)
)
_PRUNE_TOTALS: Final = delete(daily_totals).where(_merchant == bindparam("of_merchant"), _day < bindparam("before"))


class DailyTotalsPruning:
    """Deletes what live payments of a day came to for merchants with a daily limit, once nobody asks for it: one batch
    a step until the end of the table, then a pause.

    Only the row of today is compared with a limit. Older ones are taken from when a payment of that day fails late, but
    nothing reads them. The table has no index by day: a round walks its primary key, so many rows at a time, once a
    day.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._after = (0, 0)
        self._pauses_until = Instant(0)

    async def step(self, now: Instant) -> int:
        """Of how many merchants old rows were deleted."""
        if now < self._pauses_until:
            return 0
        merchant, day = self._after
        rows = await self._db.scan(_LOOK_AT_TOTALS, after_merchant=merchant, after_day=day)
        before = to_datetime(now).date().toordinal() - KEPT_DAYS
        # In the order of the keys, as settlement takes them (`merchants/limits.py`).
        old = sorted({of_merchant for of_merchant, of_day in rows if of_day < before})
        if old:
            async with self._db.transaction() as tx:
                await tx.write_many(_PRUNE_TOTALS, [{"of_merchant": owner, "before": before} for owner in old])
            log.info("log.pruned", table=daily_totals.name, merchants=len(old))
        if len(rows) == _TOTALS_AT_ONCE:
            self._after = (rows[-1][0], rows[-1][1])
        else:
            self._after, self._pauses_until = (0, 0), later(now, _TOTALS_PAUSE)
        return len(old)
