"""Claiming what is due: the pending rows of a table, in lanes.

A lane is what may be slow or dead by itself: an operator's connection, one merchant's destination. A lane is closed
while it has as much in flight as it may. What waits in closed lanes costs the others nothing, however much it is,
because a claim looks twice: at the first WINDOW due rows whatever their lane, which usually are all there are; and,
where a whole window is due that could not be claimed, at the head of every open lane, which it finds by jumping from
lane to lane in an index.

Cost: one window; the second look two index probes for each lane that has anything pending.
"""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
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
    tuple_,
    union_all,
    update,
)

from guichet.clock import SECOND, Instant
from guichet.db.engine import Database, Row, json_texts, one_of, require

#: Due rows that the first look reads.
WINDOW: Final = 256
#: Rows that the second look takes from the head of each lane.
SHARE: Final = 8
#: When to look again at what is due and could not be claimed, in microseconds.
SOON: Final = SECOND // 10
#: Spelled out, so that a plan made without the values still knows that a partial index holds these rows.
PENDING: Final[ColumnElement[str]] = literal_column("'pending'")

#: More that a row must fulfil to be claimed, asked of the table or of an alias of it.
Ready = Callable[[FromClause], Sequence[ColumnElement[bool]]]


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Claim(Generic[T_co]):
    """What was claimed, and when to look again: now when there may be more, else when the next row comes due (None:
    nothing else waits, but for what is claimed already or stands in closed lanes)."""

    jobs: Sequence[T_co]
    next_due: Instant | None


class WorkQueue(Generic[T_co]):
    """The queue of one table. Its indexes, over pending rows, are `(due, id, *partition_key)` and
    `(*partition_key, due, id)`."""

    def __init__(
        self,
        table: Table,
        due: str,
        partition_key: Sequence[str],
        values: dict[str, Any],
        returning: Sequence[ColumnElement[Any]],
        job: Callable[[Row], T_co],
        ready: Ready = lambda _: (),
        reads: Sequence[str] = (),
    ) -> None:
        """`due` names the column that says when a row may be claimed; a claim sets it to the end of its lease.
        `values` change with a claim, besides the lease; `job` makes what a worker wants of a row of `returning`;
        `reads` are the columns that `ready` asks about."""
        self._table = table
        self._due_column = due
        self._job = job
        self._lane = tuple(partition_key)
        self._ready = ready
        self._reads = tuple(reads)
        self._first = self._claim(self._from_window(), values, returning)
        self._second = self._claim(self._from_lanes(), values, returning)
        self._outlook = self._looking_ahead()

    async def claim(
        self, db: Database, now: Instant, until: Instant, most: int, saturated: Sequence[Collection[str]] = ()
    ) -> Claim[T_co]:
        """Up to `most` rows, theirs until `until`. `saturated`: for each column of the lane the values to pass over."""
        params: dict[str, Any] = {"now": now, "until": until}
        for position, name in enumerate(self._lane):
            values = saturated[position] if position < len(saturated) else ()
            params[_saturated(name)] = json.dumps(sorted(values))
        rows = await db.execute_returning(self._first, most=most, **params)
        if rows:  # Whoever works on them need not wait for what comes next.
            return self._claimed(rows, now)
        next_due, due = require(await db.one(self._outlook, now=now))
        if due == WINDOW:
            rows = await db.execute_returning(self._second, most=most, **params)
        if due and not rows:  # In closed lanes, or another worker is just claiming it.
            next_due = now + SOON
        return self._claimed(rows, now if rows else next_due)

    def _claimed(self, rows: Sequence[Row], next_due: Instant | None) -> Claim[T_co]:
        return Claim([self._job(row) for row in rows], next_due)

    def _claim(self, due: CTE, values: dict[str, Any], returning: Sequence[ColumnElement[Any]]) -> Update:
        return (
            update(self._table)
            .where(one_of(self._table.c.id, select(due.c.id)))
            .values({**values, self._due_column: bindparam("until")})
            .returning(*returning)
        )

    def _due(self, rows: FromClause) -> tuple[ColumnElement[bool], ...]:
        return rows.c.status == PENDING, rows.c[self._due_column] <= bindparam("now")

    def _open(self, rows: FromClause) -> list[ColumnElement[bool]]:
        return [_is_open(name, rows.c[name]) for name in self._lane]

    def _locked(self, found: SelectBase) -> CTE:
        """A CTE is locked and counted once; as a subquery PostgreSQL may run it again for every row.

        Whether a row is still due is asked in a form that no index answers: only its id leads to it. Where statistics
        do not know of a backlog yet, any other way looks cheap and reads all of it, once for each row that was found.
        """
        rows = self._table
        still_due = is_still_pending(rows), rows.c[self._due_column] + 0 <= bindparam("now")
        return (
            select(rows.c.id)
            .where(one_of(rows.c.id, found), *still_due)
            .order_by(rows.c[self._due_column], rows.c.id)
            .limit(bindparam("most"))
            .with_for_update(skip_locked=True, of=rows)
            .cte("due")
        )

    def _from_window(self) -> CTE:
        rows = self._table
        window = self._window(rows.c.id, *(rows.c[name] for name in (*self._lane, *self._reads))).subquery("ahead")
        found = select(window.c.id).where(*self._open(window), *self._ready(window))
        # Twice as many as are claimed: what another worker is just claiming is passed over.
        return self._locked(found.limit(2 * bindparam("most", type_=Integer)))

    def _window(self, *columns: ColumnElement[Any]) -> Select[Any]:
        rows = self._table
        return select(*columns).where(*self._due(rows)).order_by(rows.c[self._due_column], rows.c.id).limit(WINDOW)

    def _from_lanes(self) -> CTE:
        partition_keys = self._lanes()
        some = (
            select(*(partition_keys.c[name] for name in self._lane))
            .where(
                partition_keys.c[self._lane[0]].is_not(None),
                *self._open(partition_keys),
                self._head(partition_keys, 0).is_not(None),
            )
            .order_by(func.random())  # Nobody is always last.
            .limit(bindparam("most"))
            .cte("open_lanes")
        )
        heads = [select(self._head(some, place).label("id")).select_from(some) for place in range(SHARE)]
        return self._locked(union_all(*heads, *self._without_lane()))

    def _without_lane(self) -> list[Select[Any]]:
        """What has no lane yet stands in one of its own, which jumping does not find."""
        rows = self._table
        nullable = [name for name in self._lane if rows.c[name].nullable]
        some = (
            select(rows.c.id)
            .where(rows.c[name].is_(None), *self._due(rows), *self._ready(rows), *self._open(rows))
            .order_by(rows.c[self._due_column], rows.c.id)
            .limit(SHARE)
            .subquery()
            for name in nullable
        )
        return [select(found.c.id) for found in some]

    def _lanes(self) -> CTE:
        """Every lane with a pending row, then a row of nulls."""
        first = self._after(None).subquery("first_lane")
        partition_keys = select(*(first.c[name] for name in self._lane)).cte("lanes", recursive=True)
        following = [self._after(partition_keys, name).scalar_subquery().label(name) for name in self._lane]
        return partition_keys.union_all(select(*following).where(partition_keys.c[self._lane[0]].is_not(None)))

    def _after(self, partition_keys: FromClause | None, only: str | None = None) -> Select[Any]:
        rows = self._alias()
        partition_key = [rows.c[name] for name in self._lane]
        known = (rows.c[name].is_not(None) for name in self._lane if self._table.c[name].nullable)
        found = select(*([rows.c[only]] if only else partition_key)).where(rows.c.status == PENDING, *known)
        if partition_keys is not None:
            found = found.where(tuple_(*partition_key) > tuple_(*(partition_keys.c[name] for name in self._lane)))
        return found.order_by(*partition_key).limit(1)

    def _head(self, partition_keys: FromClause, place: int) -> ColumnElement[int]:
        rows = self._alias()
        same = (rows.c[name] == partition_keys.c[name] for name in self._lane)
        return (
            select(rows.c.id)
            .where(*same, *self._due(rows), *self._ready(rows))
            .order_by(rows.c[self._due_column], rows.c.id)
            .limit(1)
            .offset(place)
            .correlate(partition_keys)
            .scalar_subquery()
        )

    def _alias(self) -> FromClause:
        """Without keys and constraints, which each alias of a table would carry along."""
        return table(self._table.name, *(column(each.name, each.type) for each in self._table.c)).alias()

    def _looking_ahead(self) -> Select[Any]:
        """When the next row comes due, and how many of the first window are due and unclaimed."""
        rows = self._table
        later = select(func.min(rows.c[self._due_column])).where(
            rows.c.status == PENDING, rows.c[self._due_column] > bindparam("now")
        )
        due = select(func.count()).select_from(self._window(rows.c.id).subquery())
        return select(later.scalar_subquery(), due.scalar_subquery())


def is_still_pending(rows: FromClause) -> ColumnElement[bool]:
    """Of rows that are reached by their ids: in a form that leads no planner to read all that is pending instead."""
    return func.coalesce(rows.c.status, "") == PENDING


def _is_open(name: str, column: ColumnElement[Any]) -> ColumnElement[bool]:
    value = func.coalesce(cast(column, Text), "")
    return value.bool_op("NOT IN")(json_texts(bindparam(_saturated(name))))


def _saturated(name: str) -> str:
    return f"closed_{name}"
