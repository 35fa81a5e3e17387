"""A queue in a table: claims the pending rows that are due, without one slow provider delaying the others.

Each row belongs to a partition: what may be slow or dead by itself, such as a provider account. (Webhooks are claimed
by merchant, see `fair_queue.py`.) While as many of a partition's rows are being worked on as the caller allows, the
partition is saturated, and its rows are not claimed. Such rows cost the others nothing, however many they are, because
a claim looks twice:

1. at the first WINDOW due rows of all partitions, which usually are all there are;
2. if a whole window was due and none of it could be claimed: at the first rows of every other partition, which are
   found by jumping from partition to partition in an index.

Cost of a claim: one window; the second look adds two index probes for each partition with a pending row.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import (
    CTE,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    SelectBase,
    Table,
    Text,
    Update,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    select,
    table,
    union_all,
    update,
)

from guichet.clock import SECOND, Instant, later
from guichet.db.engine import Database, Row, require
from guichet.db.sql_functions import in_materialized, is_listed
from guichet.domain.records import Record

#: Due rows that the first look reads.
WINDOW: Final = 256
#: Rows that the second look takes from the head of each partition.
ROWS_PER_PARTITION: Final = 8
#: When to look again after rows were due and none could be claimed, in microseconds.
SOON: Final = SECOND // 10
#: A literal and not a parameter: a plan made without the values must still know that a partial index holds these rows.
PENDING: Final[ColumnElement[str]] = literal_column("'pending'")

#: How long a process may work on a row alone, in microseconds; longer than a provider may take to answer.
LEASE_DURATION: Final = 30 * SECOND

_NOW: Final[ColumnElement[Any]] = bindparam("now")
_MOST: Final = bindparam("most", type_=Integer)

T_co = TypeVar("T_co", covariant=True)


class Claim(Record, Generic[T_co], frozen=True):
    """The claimed jobs, and when to look again: now if there may be more, else when the next row is due. None: no other
    row waits, apart from claimed ones and those of saturated partitions."""

    jobs: Sequence[T_co]
    next_due: Instant | None


class WorkQueue(Generic[T_co]):
    """The queue of one table, which needs two indexes over its pending rows (`tables.columns.queue_indexes`):
    `(due, id, partition)` and `(partition, due, id)`."""

    def __init__(
        self,
        table: Table,
        due: str,
        partition: str,
        job: Callable[[Row], T_co],
        *,
        values: Mapping[str, Any] | None = None,
        returning: Sequence[ColumnElement[Any]] = (),
    ) -> None:
        """`due`: the column that says when a row may be claimed; a claim sets it to the end of the lease.
        `job` makes a job of a row of `returning`; without it, of all columns. `values`: what else a claim changes.
        """
        self._table = table
        self._due = due
        self._partition = partition
        self._job = job
        self._changed = {**(values or {}), due: bindparam("until")}
        self._returned = tuple(returning) or tuple(table.c)

    async def claim(
        self, db: Database, now: Instant, until: Instant, most: int, saturated: Collection[str] = ()
    ) -> Claim[T_co]:
        """Claims up to `most` rows until the instant `until`. `saturated`: partitions whose rows are left alone; "" is
        that of the rows without one."""
        params: dict[str, Any] = {"now": now, "until": until, "most": most, "saturated": json.dumps(sorted(saturated))}
        rows = await db.write_all(self._claim_from_window, **params)
        if len(rows) == most:  # The caller works on them first: when the next row is due does not matter yet.
            return self._claimed(rows, now)
        next_due, due = require(await db.one(self._look_ahead, now=now))
        if rows:
            return self._claimed(rows, now if due else next_due)
        if due == WINDOW:
            rows = await db.write_all(self._claim_by_partition, **params)
        if due and not rows:  # They are in saturated partitions, or another worker is claiming them.
            next_due = later(now, SOON)
        return self._claimed(rows, now if rows else next_due)

    def _claimed(self, rows: Sequence[Row], next_due: Instant | None) -> Claim[T_co]:
        return Claim([self._job(row) for row in rows], next_due)

    # Statements are made at their first use: a server that starts needs none of them yet, and most never need the
    # second look, which is large.

    @cached_property
    def _claim_from_window(self) -> Update:
        return claim_statement(self._table, self._in_window(), self._changed, self._returned)

    @cached_property
    def _claim_by_partition(self) -> Update:
        return claim_statement(self._table, self._in_partitions(), self._changed, self._returned)

    @cached_property
    def _look_ahead(self) -> Select[Any]:
        """When the next row will be due, and how many of the first WINDOW rows are due and not claimed."""
        due = self._table.c[self._due]
        next_due = select(func.min(due)).where(self._table.c.status == PENDING, due > _NOW)
        window = select(func.count()).select_from(self._window(self._table.c.id).subquery())
        return select(next_due.scalar_subquery(), window.scalar_subquery())

    def _in_window(self) -> CTE:
        """The first look: ids among the first WINDOW due rows."""
        window = self._window(self._table.c.id, self._table.c[self._partition]).subquery("ahead")
        ids = select(window.c.id).where(self._not_saturated(window))
        # Twice as many as will be claimed: those that another worker is claiming now are skipped.
        return self._locked(ids.limit(2 * _MOST))

    def _in_partitions(self) -> CTE:
        """The second look: ids from the head of every partition that is not saturated."""
        partitions = self._partitions()
        partition = partitions.c[self._partition]
        chosen = (
            select(partition)
            .where(partition.is_not(None), self._not_saturated(partitions), self._head(partitions, 0).is_not(None))
            .order_by(func.random())  # No partition is always last.
            .limit(_MOST)
            .cte("chosen_partitions")
        )
        heads = [
            select(self._head(chosen, place).label("id")).select_from(chosen) for place in range(ROWS_PER_PARTITION)
        ]
        return self._locked(union_all(*heads, *self._without_partition()))

    def _window(self, *columns: ColumnElement[Any]) -> Select[Any]:
        rows = self._table
        return select(*columns).where(*self._is_due(rows)).order_by(rows.c[self._due], rows.c.id).limit(WINDOW)

    def _is_due(self, rows: FromClause) -> tuple[ColumnElement[bool], ...]:
        return rows.c.status == PENDING, rows.c[self._due] <= _NOW

    def _not_saturated(self, rows: FromClause) -> ColumnElement[bool]:
        partition = func.coalesce(cast(rows.c[self._partition], Text), "")
        return ~is_listed(partition, "saturated")

    def _locked(self, ids: SelectBase) -> CTE:
        """Locks up to `most` of these rows, skipping those that another worker has locked."""
        rows = self._table
        return lock_due(rows, self._due, ids).order_by(rows.c[self._due], rows.c.id).limit(_MOST).cte("due")

    def _without_partition(self) -> list[Select[Any]]:
        """Rows whose partition is null yet: they are a partition of their own, which jumping does not find."""
        rows = self._table
        partition = rows.c[self._partition]
        if not partition.nullable:
            return []
        ids = (
            select(rows.c.id)
            .where(partition.is_(None), *self._is_due(rows), self._not_saturated(rows))
            .order_by(rows.c[self._due], rows.c.id)
            .limit(ROWS_PER_PARTITION)
            .subquery()
        )
        return [select(ids.c.id)]

    def _partitions(self) -> CTE:
        """Every partition with a pending row, in order, then a null."""
        partitions = self._next_partition(None).cte("partitions", recursive=True)
        following = self._next_partition(partitions).scalar_subquery().label(self._partition)
        return partitions.union_all(select(following).where(partitions.c[self._partition].is_not(None)))

    def _next_partition(self, partitions: FromClause | None) -> Select[Any]:
        """The partition after each of `partitions` (None: the first one of all)."""
        rows = self._alias()
        partition = rows.c[self._partition]
        first = select(partition).where(rows.c.status == PENDING).order_by(partition).limit(1)
        if partitions is None:
            return select(first.where(partition.is_not(None)).subquery("first_partition").c[self._partition])
        return first.where(partition > partitions.c[self._partition])

    def _head(self, partitions: FromClause, place: int) -> ColumnElement[int]:
        """The id of the due row number `place` of each partition; null when it has fewer."""
        rows = self._alias()
        return (
            select(rows.c.id)
            .where(rows.c[self._partition] == partitions.c[self._partition], *self._is_due(rows))
            .order_by(rows.c[self._due], rows.c.id)
            .limit(1)
            .offset(place)
            .correlate(partitions)
            .scalar_subquery()
        )

    def _alias(self) -> FromClause:
        """The table under another name, without its keys and constraints, which each alias would copy."""
        return table(self._table.name, *(column(c.name, c.type) for c in self._table.c)).alias()


def is_still_pending(rows: FromClause) -> ColumnElement[bool]:
    """For rows that are found by their ids: in a form that no index answers, or the planner might read every pending
    row instead."""
    return func.coalesce(rows.c.status, "") == PENDING


def lock_due(rows: Table, due: str, ids: SelectBase) -> Select[Any]:
    """Locks those of the rows `ids` that are still due, skipping those that another worker has locked.

    It is to be a CTE, which is run once; PostgreSQL may run a subquery again for every row. That a row is still due is
    asked in a form that no index answers, so that it can be found by its id only: while the statistics do not know of a
    backlog yet, any other plan looks cheap and reads all of it once for each row.
    """
    return (
        select(rows.c.id)
        .where(in_materialized(rows.c.id, ids), is_still_pending(rows), rows.c[due] + 0 <= _NOW)
        .with_for_update(skip_locked=True, of=rows)
    )


def claim_statement(
    rows: Table, due: CTE, values: Mapping[str, Any], returning: Sequence[ColumnElement[Any]]
) -> Update:
    """Changes the rows whose ids are in `due`, and returns them."""
    claimed = update(rows).where(in_materialized(rows.c.id, select(due.c.id)))
    return claimed.values(dict(values)).returning(*returning)
