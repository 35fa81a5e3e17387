"""The SQL of the pages of lists (`pages.py`). Each function builds its statement once."""

from functools import cache
from itertools import product
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    FromClause,
    Integer,
    Select,
    String,
    Table,
    UnaryExpression,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    select,
    tuple_,
    union_all,
)

from guichet.clock import HOUR
from guichet.db.lists.time_buckets import DAYS, HOURS, Cover
from guichet.db.tables import list_count_changes, list_counts, webhook_deliveries
from guichet.domain.events import DELIVERY_STATUSES, EVENT_NAMES, DeliveryStatus, EventName
from guichet.domain.payments import PaymentStatus, RefundStatus
from guichet.domain.records import Record

#: The level of the one bucket that counts a whole list.
WHOLE_LIST: Final = "all"
#: The status in which every row begins; it has no counts of its own (`db/tables/operations_tables.py`).
FIRST_STATUS: Final = "pending"
#: Parts of a range besides the runs of a `Cover`, which are numbered from 0.
CHANGES: Final = -1
OLDER_PARTIAL_HOUR: Final = -2
NEWER_PARTIAL_HOUR: Final = -3
#: The parameters that name the row before the first one of a page, by the columns that order a list.
_AFTER: Final = ("after_at", "after_id")


class ListKind(Record, frozen=True):
    """Which rows of a table a list has, besides whose they are: all, those of a status, of an event (webhook
    deliveries), or of both.

    Deliveries are counted by event. Each combination of event and status has a range of an index of its own: a filter
    by one of the two merges ranges.
    """

    table: Table
    status: PaymentStatus | RefundStatus | DeliveryStatus | None = None
    event: EventName | None = None

    @property
    def by_combination(self) -> bool:
        return self.table is webhook_deliveries and (self.status is not None or self.event is not None)

    @property
    def events(self) -> tuple[EventName, ...]:
        return EVENT_NAMES if self.event is None else (self.event,)

    @property
    def names(self) -> list[str]:
        """What stands in `list_name` of its counts."""
        of_deliveries = self.table is webhook_deliveries
        return [f"deliveries/{event}" for event in self.events] if of_deliveries else [self.table.name]


@cache
def list_total(kind: ListKind) -> Executable:
    return _whole_list(kind)


@cache
def range_total(kind: ListKind) -> Executable:
    return select(_sum(union_all(*_parts(kind)).subquery().c.row_count))


@cache
def older_total(kind: ListKind) -> Executable:
    """The number of rows of a list that are older than a range, which ends with the list."""
    newer = union_all(*_parts(kind)).subquery()
    return select(_whole_list(kind).scalar_subquery() - select(_sum(newer.c.row_count)).scalar_subquery())


@cache
def range_counts(kind: ListKind) -> Executable:
    """Rows (part, bucket, row_count) of a range: of its runs and changes, then of its two partial hours."""
    *counted, older, newer = (part.subquery() for part in _parts(kind))
    sums = [
        select(part.c.part, part.c.bucket, _sum(part.c.row_count)).group_by(part.c.part, part.c.bucket)
        for part in counted
    ]
    partial = (select(part.c.part, part.c.bucket, part.c.row_count) for part in (older, newer))
    return union_all(*sums, *partial)


@cache
def totals_by_status(table: Table) -> Executable:
    """Rows (status, row_count) of a whole list; of the empty status: how many there are in all."""
    counted = _by_status(list_counts, table, list_counts.c.row_count, list_counts.c.level == WHOLE_LIST)
    return _added_up(counted, _by_status(list_count_changes, table, list_count_changes.c.delta))


@cache
def range_totals_by_status(table: Table) -> Executable:
    """The same of a range."""
    hour, bucket = list_count_changes.c.hour, list_counts.c.bucket
    in_hours = hour.between(bindparam("changes_first"), bindparam("changes_last"))
    parts: list[Select[Any]] = [_by_status(list_count_changes, table, list_count_changes.c.delta, in_hours)]
    for run, level in enumerate((HOURS, HOURS, DAYS)):
        in_run = (
            list_counts.c.level == level.name,
            bucket.between(bindparam(f"first_{run}"), bindparam(f"last_{run}")),
        )
        parts.append(_by_status(list_counts, table, list_counts.c.row_count, *in_run))
    for since, before in (("since", "start"), ("end", "before")):
        within = (table.c.created_at >= bindparam(since), table.c.created_at < bindparam(before))
        scope = (*_of_merchant(table), *within)
        every: Any = select(_word("").label("status"), func.count().label("row_count")).where(*scope)
        final: Select[Any] = select(table.c.status, func.count().label("row_count")).where(*scope)
        parts += [every, final.where(table.c.status != FIRST_STATUS).group_by(table.c.status)]
    return _added_up(*parts)


def _by_status(counts: Table, table: Table, rows: ColumnElement[int], *conditions: ColumnElement[bool]) -> Select[Any]:
    scope = (*_of_merchant(counts), counts.c.list_name == _word(table.name))
    return select(counts.c.status, rows.label("row_count")).where(*scope, *conditions)


def _added_up(*parts: Select[Any]) -> Executable:
    counted = union_all(*parts).subquery()
    return select(counted.c.status, _sum(counted.c.row_count)).group_by(counted.c.status)


def cover_params(covered: Cover) -> dict[str, int]:
    """The parameters of `range_total` and `range_counts` that say which range."""
    params = {
        "since": covered.since,
        "start": covered.start,
        "end": covered.end,
        "before": covered.before,
        "changes_first": covered.start // HOUR,
        "changes_last": covered.end // HOUR - 1,
    }
    for number, run in enumerate(covered.runs):
        params |= {f"first_{number}": run.first, f"last_{number}": run.last}
    return params


@cache
def page_rows(
    kind: ListKind, params: frozenset[str], oldest_first: bool, *, skips: bool, columns: tuple[str, ...] | None = None
) -> Executable:
    """Rows of a list: all their columns, or those named. `params` names the conditions among `since`, `before` and
    `after_at` (with `after_id`: the row that comes just before the first one). Skipping rows reads only the index that
    orders them; where none is skipped, rows come in its order, and nothing sorts them."""
    table = kind.table
    read = select(table) if columns is None else select(*(table.c[name] for name in columns))
    key, bounds = (table.c.created_at, table.c.id), [bindparam(name, type_=BigInteger) for name in _AFTER]
    conditions = {
        "since": table.c.created_at >= bindparam("since"),
        "before": table.c.created_at < bindparam("before"),
        "after_at": tuple_(*key) > tuple_(*bounds) if oldest_first else tuple_(*key) < tuple_(*bounds),
    }
    chosen = [conditions[name] for name in conditions if name in params]
    if not (skips or kind.by_combination):
        scope = [*_rows_of(kind), *chosen]
        return read.where(*scope).order_by(*_order(table, oldest_first)).limit(bindparam("most"))
    rows: Any = _merged(kind, chosen, oldest_first) if kind.by_combination else table
    scope = [] if kind.by_combination else [*_rows_of(kind), *chosen]
    ids = select(rows.c.id).where(*scope).order_by(*_order(rows, oldest_first))
    page = ids.limit(bindparam("most")).offset(bindparam("skipped")).subquery()
    return read.join(page, page.c.id == table.c.id).order_by(*_order(table, oldest_first))


def _whole_list(kind: ListKind) -> Select[tuple[int]]:
    counted = select(_rows_in(list_counts.c.row_count, kind)).where(*_of_list(list_counts, kind))
    changes = select(_rows_in(list_count_changes.c.delta, kind)).where(*_of_list(list_count_changes, kind))
    both = union_all(counted.where(list_counts.c.level == WHOLE_LIST), changes).subquery()
    return select(_sum(both.c.row_count))


def _sum(column: ColumnElement[int]) -> ColumnElement[int]:
    """The sum as a whole number: PostgreSQL returns NUMERIC."""
    return cast(func.coalesce(func.sum(column), 0), BigInteger)


def _parts(kind: ListKind) -> list[Select[Any]]:
    """Rows (part, bucket, row_count) of each run of a `Cover`, of the changes, and of the two partial hours."""
    runs: list[Select[Any]] = [
        select(_number(run).label("part"), list_counts.c.bucket, _rows_in(list_counts.c.row_count, kind)).where(
            *_of_list(list_counts, kind),
            list_counts.c.level == level.name,
            list_counts.c.bucket.between(bindparam(f"first_{run}"), bindparam(f"last_{run}")),
        )
        for run, level in enumerate((HOURS, HOURS, DAYS))
    ]
    hour, delta = list_count_changes.c.hour, list_count_changes.c.delta
    changes = select(_number(CHANGES).label("part"), hour.label("bucket"), _rows_in(delta, kind)).where(
        *_of_list(list_count_changes, kind), hour.between(bindparam("changes_first"), bindparam("changes_last"))
    )
    return [
        *runs,
        changes,
        _partial_hour(kind, OLDER_PARTIAL_HOUR, "since", "start"),
        _partial_hour(kind, NEWER_PARTIAL_HOUR, "end", "before"),
    ]


def _partial_hour(kind: ListKind, part: int, since: str, before: str) -> Select[Any]:
    """Counts the rows themselves; `since` and `before` are names of parameters."""
    columns: tuple[ColumnElement[Any], ...] = (
        _number(part).label("part"),
        _number(0).label("bucket"),
        func.count().label("row_count"),
    )
    created_at = kind.table.c.created_at
    between = (created_at >= bindparam(since), created_at < bindparam(before))
    return select(*columns).select_from(kind.table).where(*_rows_of(kind), *between)


def _number(value: int) -> ColumnElement[int]:
    return literal_column(str(value), Integer)


def _word(value: str) -> ColumnElement[str]:
    """One of our own words, spelled out."""
    return literal_column(f"'{value}'", String)


def _of_merchant(table: Table) -> list[ColumnElement[bool]]:
    return [table.c.merchant_id == bindparam("merchant"), table.c.env == bindparam("environment")]


def _of_list(table: Table, kind: ListKind) -> list[ColumnElement[bool]]:
    """The counts, or changes, that say how many rows a list has; `_rows_in` adds them up."""
    names = [_word(name) for name in kind.names]
    named = table.c.list_name == names[0] if len(names) == 1 else table.c.list_name.in_(names)
    of_status = [] if kind.status == FIRST_STATUS else [table.c.status == _word(kind.status or "")]
    return [*_of_merchant(table), named, *of_status]


def _rows_in(row_count: ColumnElement[int], kind: ListKind) -> ColumnElement[int]:
    """What one of these counts adds to the rows of a list. The pending ones are all rows less those of the others."""
    if kind.status == FIRST_STATUS:
        row_count = case((row_count.table.c.status == _word(""), row_count), else_=-row_count)
    return row_count.label("row_count")


def _rows_of(kind: ListKind) -> list[ColumnElement[bool]]:
    of_event = [] if kind.event is None else [kind.table.c.event == _word(kind.event)]
    of_status = [] if kind.status is None else [kind.table.c.status == _word(kind.status)]
    return [*_of_merchant(kind.table), *of_status, *of_event]


def _merged(kind: ListKind, chosen: list[ColumnElement[bool]], oldest_first: bool) -> FromClause:
    """The first rows of every combination of event and status, `needed` of each."""
    table = kind.table
    statuses = [_word(status) for status in (DELIVERY_STATUSES if kind.status is None else (kind.status,))]
    first = []
    for event, status in product(kind.events, statuses):
        scope = [*_of_merchant(table), table.c.event == _word(event), table.c.status == status]
        rows = select(table.c.id, table.c.created_at).where(*scope, *chosen).order_by(*_order(table, oldest_first))
        part = rows.limit(bindparam("needed")).subquery()
        first.append(select(part.c.id, part.c.created_at))
    return union_all(*first).subquery() if len(first) > 1 else first[0].subquery()


def _order(rows: FromClause, oldest_first: bool) -> list[UnaryExpression[Any]]:
    return [column.asc() if oldest_first else column.desc() for column in (rows.c.created_at, rows.c.id)]
