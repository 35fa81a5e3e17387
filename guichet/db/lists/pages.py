"""One page of a long list and the list's exact total, at a cost that grows with neither the list nor the page number.

`list_counts` holds the number of rows of each list, in all and by hour and day (`time_buckets.py`). Changes that the
worker has not added up yet (`rollup.py`) are read from `list_count_changes` in the same statement.

A page near the beginning of its range takes two statements: the total, then the rows, after skipping up to MAX_SKIPPED
index entries. A page further down takes up to three: the row count of each bucket of the range; those of the hours of
the day in which the page begins; its rows. A page after a known row begins at that row in the index, wherever it is.

Cost: one row for each bucket that covers the range (a row a day with activity, and up to 24 at each end); further down,
also the hours of one day; and at most the index entries of three hours.
Deliveries cost that for each event; filtered by event or by status alone, their rows are merged from each combination
of the two.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from sqlalchemy import Table

from guichet.clock import Instant, earlier, later
from guichet.db.engine import Database, Row
from guichet.db.lists import page_statements as statements
from guichet.db.lists.page_statements import ListKind
from guichet.db.lists.time_buckets import DAYS, HOURS, Cover, Level, cover, cover_by_hours
from guichet.domain.events import DeliveryStatus, EventName
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.payments import PaymentStatus, RefundStatus
from guichet.domain.records import Record

#: Rows that are skipped one by one; to skip more, the bucket in which the page begins is looked up.
MAX_SKIPPED: Final = 500


class RowKey(NamedTuple):
    """Where a row stands in its list: rows are ordered by time of creation, those of one instant by id."""

    created_at: Instant
    id: int


class Listed(Protocol):
    """A row of a list, as an object."""

    @property
    def id(self) -> int: ...

    @property
    def created_at(self) -> Instant: ...


ListedRow = TypeVar("ListedRow", bound=Listed)


def key_of(row: Listed) -> RowKey:
    return RowKey(row.created_at, row.id)


class PageBounds(Record, frozen=True):
    """Which rows a page shows: `size` of them at most, newest first unless `oldest_first`, after the first `offset` of
    the list or after the row with the key `after`, which need not be in the list any more."""

    size: int
    offset: int = 0
    after: RowKey | None = None
    oldest_first: bool = False

    def of(self, rows: Iterable[ListedRow]) -> list[ListedRow]:
        """The page of a list that was read as a whole, in the order of the page."""
        rest = [row for row in rows if self.after is None or self._follows(key_of(row), self.after)]
        return rest[self.offset : self.offset + self.size]

    def _follows(self, key: RowKey, after: RowKey) -> bool:
        return key > after if self.oldest_first else key < after


class ListScope(Record, frozen=True):
    """One merchant's part of a list in one environment. `status` None: rows of every status; `event` is for webhook
    deliveries."""

    merchant_id: MerchantId
    env: Environment
    status: PaymentStatus | RefundStatus | DeliveryStatus | None = None
    event: EventName | None = None

    @property
    def params(self) -> dict[str, Any]:
        return {"merchant": self.merchant_id, "environment": self.env}


class _Position(NamedTuple):
    """Where a page begins: after `skip` rows among those created in `since <= t < before` (None: no bound)."""

    total: int
    since: Instant | None
    before: Instant | None
    skip: int


class _Segment(NamedTuple):
    """The number of rows created in `since <= t < before`. `level` None: a partial hour."""

    level: Level | None
    since: Instant
    before: Instant
    rows: int


async def read_page(
    db: Database,
    table: Table,
    scope: ListScope,
    bounds: PageBounds,
    since: Instant | None = None,
    until: Instant | None = None,
    *,
    max_skipped: int = MAX_SKIPPED,
    columns: tuple[str, ...] | None = None,
) -> tuple[list[Row], int]:
    """One page of a list, and the total; `since` and `until` are inclusive instants of creation.

    `max_skipped`: how many rows may be skipped one by one. `columns`: those that are read, None for all.
    """
    before = None if until is None else later(until, 1)
    kind, oldest_first = ListKind(table, scope.status, scope.event), bounds.oldest_first
    position = await _locate(
        db, kind, scope, bounds.offset, since, before, oldest_first=oldest_first, max_skipped=max_skipped
    )
    if bounds.offset >= position.total:
        return [], position.total
    last = None if position.before is None else earlier(position.before, 1)
    order: dict[str, Any] = {"after": bounds.after, "oldest_first": oldest_first, "columns": columns}
    rows = await read_rows(db, table, scope, bounds.size, position.since, last, skip=position.skip, **order)
    return rows, position.total


async def read_rows(
    db: Database,
    table: Table,
    scope: ListScope,
    limit: int,
    since: Instant | None = None,
    until: Instant | None = None,
    *,
    skip: int = 0,
    after: RowKey | None = None,
    oldest_first: bool = False,
    columns: tuple[str, ...] | None = None,
) -> list[Row]:
    """As `read_page`, without the total: one statement. `skip`: rows that come before."""
    bounds: dict[str, int | None] = {"since": since, "before": None if until is None else later(until, 1)}
    if after is not None:
        bounds |= {"after_at": after.created_at, "after_id": after.id}
    params = {name: bound for name, bound in bounds.items() if bound is not None}
    kind = ListKind(table, scope.status, scope.event)
    statement = statements.page_rows(kind, frozenset(params), oldest_first, skips=skip > 0, columns=columns)
    needed = {"needed": limit + skip} if kind.by_combination else {}
    # Few rows are read through an index: on SQLite that is not worth a thread.
    read = db.all if skip <= MAX_SKIPPED else db.scan
    return await read(statement, **scope.params, **params, **needed, most=limit, skipped=skip)


async def status_counts(
    db: Database, table: Table, scope: ListScope, since: Instant | None, until: Instant | None
) -> dict[str, int]:
    """How many rows of each status a list has, created within these inclusive instants; at the key "": in all. One
    statement, at the cost of the totals of a page."""
    if since is None and until is None:
        rows = await db.all(statements.totals_by_status(table), **scope.params)
    else:
        covered = cover(since, None if until is None else later(until, 1))
        params = statements.cover_params(covered)
        rows = await db.scan(statements.range_totals_by_status(table), **scope.params, **params)
    counts = {status: int(count) for status, count in rows}
    final = sum(count for status, count in counts.items() if status)
    return {**counts, statements.FIRST_STATUS: counts.get("", 0) - final}


async def count_since(db: Database, table: Table, scope: ListScope, since: Instant) -> int:
    """The exact number of rows of a list that were created at this instant or later. Only the size of the list is read
    where it is empty."""
    kind, covered = ListKind(table, scope.status, scope.event), cover(since, None)
    [(whole,)] = await db.all(statements.list_total(kind), **scope.params)
    if not whole:
        return 0
    [(total,)] = await db.scan(statements.range_total(kind), **scope.params, **statements.cover_params(covered))
    return int(total)


async def count_before(db: Database, table: Table, scope: ListScope, before: Instant) -> int:
    """The exact number of rows of a list that were created before this instant, which is not long ago: the buckets
    since then are subtracted from the count of the whole list."""
    kind, covered = ListKind(table, scope.status, scope.event), cover(before, None)
    [(total,)] = await db.all(statements.older_total(kind), **scope.params, **statements.cover_params(covered))
    return int(total)


async def _locate(
    db: Database,
    kind: ListKind,
    scope: ListScope,
    offset: int,
    since: Instant | None,
    before: Instant | None,
    *,
    oldest_first: bool,
    max_skipped: int,
) -> _Position:
    """Where the page after the first `offset` rows of `since <= t < before` begins."""
    if since is None and before is None and offset <= max_skipped:
        [(total,)] = await db.all(statements.list_total(kind), **scope.params)
        return _Position(total, None, None, offset)
    covered = cover(since, before)
    if offset <= max_skipped:
        [(total,)] = await db.scan(statements.range_total(kind), **scope.params, **statements.cover_params(covered))
        return _Position(total, since, before, offset)
    segments = await _segments(db, kind, scope, covered, oldest_first)
    total = sum(segment.rows for segment in segments)
    if offset >= total:
        return _Position(total, since, before, 0)
    segment, skip = _segment_at(segments, offset)
    if skip > max_skipped and segment.level is DAYS:
        hours = await _segments(db, kind, scope, cover_by_hours(segment.since), oldest_first)
        if hours:  # Otherwise its rows were deleted meanwhile.
            segment, skip = _segment_at(hours, skip)
    if oldest_first:
        return _Position(total, segment.since, before, skip)
    return _Position(total, since, segment.before, skip)


async def _segments(
    db: Database, kind: ListKind, scope: ListScope, covered: Cover, oldest_first: bool
) -> list[_Segment]:
    """Those that have rows, in the order of the list. A change that is not added up yet counts in the bucket that it
    will be added to."""
    segments = []
    sums: Counter[tuple[int, int]] = Counter()
    for part, bucket, row_count in await db.scan(
        statements.range_counts(kind), **scope.params, **statements.cover_params(covered)
    ):
        if part == statements.CHANGES:
            at = HOURS.start(bucket)
            run = next(number for number, run in enumerate(covered.runs) if run.holds(at))
            sums[run, at // covered.runs[run].level.width] += row_count
        elif part == statements.OLDER_PARTIAL_HOUR:
            segments.append(_Segment(None, covered.since, covered.start, row_count))
        elif part == statements.NEWER_PARTIAL_HOUR:
            segments.append(_Segment(None, covered.end, covered.before, row_count))
        else:
            sums[part, bucket] += row_count
    for (run, bucket), row_count in sums.items():
        level = covered.runs[run].level
        segments.append(_Segment(level, level.start(bucket), level.start(bucket + 1), row_count))
    filled = (segment for segment in segments if segment.rows)
    return sorted(filled, key=lambda segment: segment.since, reverse=not oldest_first)


def _segment_at(segments: Sequence[_Segment], offset: int) -> tuple[_Segment, int]:
    """The segment that holds row number `offset`, and the rows to skip in it."""
    for segment in segments:
        if offset < segment.rows:
            return segment, offset
        offset -= segment.rows
    # Rows were deleted between two reads: begin after the last one known.
    return segments[-1], offset + segments[-1].rows
