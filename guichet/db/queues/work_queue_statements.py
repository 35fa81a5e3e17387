"""The SQL of a work queue (`work_queue.py`)."""

from collections.abc import Callable, Sequence
from typing import Any, Final

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

from guichet.db.sql_functions import in_materialized, json_texts

#: Due rows that the first look reads.
WINDOW: Final = 256
#: Rows that the second look takes from the head of each partition.
ROWS_PER_PARTITION: Final = 8
#: A literal and not a parameter: a plan made without the values must still know that a partial index holds these rows.
PENDING: Final[ColumnElement[str]] = literal_column("'pending'")

#: Further conditions for a row to be claimed, given the table or an alias of it.
Ready = Callable[[FromClause], Sequence[ColumnElement[bool]]]


def is_still_pending(rows: FromClause) -> ColumnElement[bool]:
    """For rows that are found by their ids: in a form that no index answers, or the planner might read every pending
    row instead."""
    return func.coalesce(rows.c.status, "") == PENDING


def saturated_parameter(name: str) -> str:
    """The parameter that holds the saturated values of a column of the partition key, as a JSON array."""
    return f"saturated_{name}"


class WorkQueueStatements:
    """`due` and `partition_key` are names of columns; `reads` those that `ready` uses."""

    def __init__(
        self, table: Table, due: str, partition_key: tuple[str, ...], ready: Ready, reads: tuple[str, ...]
    ) -> None:
        self._table = table
        self._due = due
        self._key = partition_key
        self._ready = ready
        self._reads = reads

    def claim(self, due: CTE, values: dict[str, Any], returning: Sequence[ColumnElement[Any]]) -> Update:
        """Claims the rows whose ids are in `due`, until the parameter `until`."""
        return (
            update(self._table)
            .where(in_materialized(self._table.c.id, select(due.c.id)))
            .values({**values, self._due: bindparam("until")})
            .returning(*returning)
        )

    def look_ahead(self) -> Select[Any]:
        """When the next row will be due, and how many of the first WINDOW rows are due and not claimed."""
        rows = self._table
        due = rows.c[self._due]
        later = select(func.min(due)).where(rows.c.status == PENDING, due > bindparam("now"))
        window = select(func.count()).select_from(self._window(rows.c.id).subquery())
        return select(later.scalar_subquery(), window.scalar_subquery())

    def in_window(self) -> CTE:
        """The first look: ids among the first WINDOW due rows."""
        rows = self._table
        window = self._window(rows.c.id, *(rows.c[name] for name in (*self._key, *self._reads))).subquery("ahead")
        found = select(window.c.id).where(*self._not_saturated(window), *self._ready(window))
        # Twice as many as will be claimed: those that another worker is claiming now are skipped.
        return self._locked(found.limit(2 * bindparam("most", type_=Integer)))

    def in_partitions(self) -> CTE:
        """The second look: ids from the head of every partition that is not saturated."""
        partitions = self._partitions()
        chosen = (
            select(*(partitions.c[name] for name in self._key))
            .where(
                partitions.c[self._key[0]].is_not(None),
                *self._not_saturated(partitions),
                self._head(partitions, 0).is_not(None),
            )
            .order_by(func.random())  # No partition is always last.
            .limit(bindparam("most"))
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
        return rows.c.status == PENDING, rows.c[self._due] <= bindparam("now")

    def _not_saturated(self, rows: FromClause) -> list[ColumnElement[bool]]:
        return [
            func.coalesce(cast(rows.c[name], Text), "").bool_op("NOT IN")(
                json_texts(bindparam(saturated_parameter(name)))
            )
            for name in self._key
        ]

    def _locked(self, found: SelectBase) -> CTE:
        """Locks up to `most` of the rows `found`, skipping those that another worker has locked.

        It is a CTE, which is run once; PostgreSQL may run a subquery again for every row. That a row is still due is
        asked in a form that no index answers, so that it can be found by its id only: while the statistics do not know
        of a backlog yet, any other plan looks cheap and reads all of it once for each row found.
        """
        rows = self._table
        due = rows.c[self._due]
        return (
            select(rows.c.id)
            .where(in_materialized(rows.c.id, found), is_still_pending(rows), due + 0 <= bindparam("now"))
            .order_by(due, rows.c.id)
            .limit(bindparam("most"))
            .with_for_update(skip_locked=True, of=rows)
            .cte("due")
        )

    def _without_partition(self) -> list[Select[Any]]:
        """Rows whose partition key is null yet: they are a partition of their own, which jumping does not find."""
        rows = self._table
        nullable = [name for name in self._key if rows.c[name].nullable]
        found = (
            select(rows.c.id)
            .where(rows.c[name].is_(None), *self._is_due(rows), *self._ready(rows), *self._not_saturated(rows))
            .order_by(rows.c[self._due], rows.c.id)
            .limit(ROWS_PER_PARTITION)
            .subquery()
            for name in nullable
        )
        return [select(each.c.id) for each in found]

    def _partitions(self) -> CTE:
        """Every partition with a pending row, in order, then a row of nulls."""
        first = self._following(None, self._key).subquery("first_partition")
        partitions = select(*(first.c[name] for name in self._key)).cte("partitions", recursive=True)
        following = [self._following(partitions, (name,)).scalar_subquery().label(name) for name in self._key]
        return partitions.union_all(select(*following).where(partitions.c[self._key[0]].is_not(None)))

    def _following(self, partitions: FromClause | None, selected: Sequence[str]) -> Select[Any]:
        """The partition after each of `partitions` (None: the first one of all)."""
        rows = self._alias()
        key = [rows.c[name] for name in self._key]
        not_null = (rows.c[name].is_not(None) for name in self._key if self._table.c[name].nullable)
        found = select(*(rows.c[name] for name in selected)).where(rows.c.status == PENDING, *not_null)
        if partitions is not None:
            found = found.where(tuple_(*key) > tuple_(*(partitions.c[name] for name in self._key)))
        return found.order_by(*key).limit(1)

    def _head(self, partitions: FromClause, place: int) -> ColumnElement[int]:
        """The id of the due row number `place` of each partition; null when it has fewer."""
        rows = self._alias()
        same = (rows.c[name] == partitions.c[name] for name in self._key)
        return (
            select(rows.c.id)
            .where(*same, *self._is_due(rows), *self._ready(rows))
            .order_by(rows.c[self._due], rows.c.id)
            .limit(1)
            .offset(place)
            .correlate(partitions)
            .scalar_subquery()
        )

    def _alias(self) -> FromClause:
        """The table under another name, without its keys and constraints, which each alias would copy."""
        return table(self._table.name, *(column(each.name, each.type) for each in self._table.c)).alias()
