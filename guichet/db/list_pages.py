"""One page of a long list and the list's exact total, at a cost that grows with neither the list nor the page number.

`list_counts` holds the number of rows of each list, in all and by bucket of time (`time_buckets.py`). Changes that the
worker has not added up yet (`list_rollup.py`) are read from `list_count_changes` in the same statement.

A page near the beginning of its range takes two statements: the total, then the rows, after skipping up to MAX_SKIPPED
index entries. A page further down takes up to three: the row count of each bucket of the range; the finest bucket in
which the page begins; its rows.

Cost: one row for each bucket that covers the range (a row a day with activity, and up to 24 at each end); further down,
also the buckets inside one bucket of each level; and at most the index entries of three buckets of the finest level.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Table

from guichet.clock import Instant, later
from guichet.db import list_page_statements as statements
from guichet.db.engine import Database, Row
from guichet.db.time_buckets import FINEST, Cover, Level, cover
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.payments import PaymentStatus

#: Rows that are skipped one by one; to skip more, the bucket in which the page begins is looked up.
MAX_SKIPPED: Final = 500


@dataclass(frozen=True, slots=True)
class ListScope:
    """One merchant's part of a list in one environment. `status` None: rows of every status."""

    merchant_id: MerchantId
    env: Environment
    status: PaymentStatus | None = None

    @property
    def params(self) -> dict[str, Any]:
        params = {"merchant": self.merchant_id, "environment": self.env}
        return params if self.status is None else {**params, "status": self.status}


@dataclass(frozen=True, slots=True)
class _Position:
    """Where a page begins: after `skip` rows among those created before `before` (None: among all)."""

    total: int
    before: Instant | None
    skip: int


@dataclass(frozen=True, slots=True)
class _Segment:
    """The number of rows created in `since <= t < before`. `level` None: a partial bucket, which has no finer ones."""

    level: Level | None
    since: Instant
    before: Instant
    rows: int


async def read_page(
    db: Database,
    table: Table,
    scope: ListScope,
    limit: int,
    offset: int,
    since: Instant | None = None,
    until: Instant | None = None,
    *,
    max_skipped: int = MAX_SKIPPED,
) -> tuple[list[Row], int]:
    """One page of a list, newest first, and the total; `since` and `until` are inclusive instants of creation.

    `max_skipped`: how many rows may be skipped one by one.
    """
    before = None if until is None else later(until, 1)
    position = await _locate(db, table, scope, offset, since, before, max_skipped=max_skipped)
    if offset >= position.total:
        return [], position.total
    bounds = {"since": since, "before": position.before}
    params = {**scope.params, **{name: bound for name, bound in bounds.items() if bound is not None}}
    statement = statements.page_rows(table, frozenset(params))
    # Few rows are read through an index: on SQLite that is not worth a thread.
    read = db.all if position.skip <= max_skipped else db.scan
    return await read(statement, **params, most=limit, skipped=position.skip), position.total


async def _locate(
    db: Database,
    table: Table,
    scope: ListScope,
    offset: int,
    since: Instant | None,
    before: Instant | None,
    *,
    max_skipped: int,
) -> _Position:
    """Where the page after the newest `offset` rows of `since <= t < before` begins."""
    by_status = scope.status is not None
    params = {**scope.params, "list_name": table.name}
    if since is None and before is None and offset <= max_skipped:
        return _Position(int((await db.all(statements.list_total(by_status), **params))[0][0]), None, offset)
    covered = cover(since, before)
    bounds = statements.cover_params(covered)
    if offset <= max_skipped:
        total = int((await db.scan(statements.range_total(table, by_status), **params, **bounds))[0][0])
        return _Position(total, before, offset)
    counts = await db.scan(statements.range_counts(table, by_status), **params, **bounds)
    segments = _segments(covered, counts)
    total = sum(segment.rows for segment in segments)
    if offset >= total:
        return _Position(total, before, 0)
    segment, skip = _segment_at(segments, offset)
    if skip > max_skipped and segment.level not in (None, FINEST):
        statement = statements.finest_bucket_at(segment.level, by_status)
        bucket_of_segment = segment.since // segment.level.width
        ((bucket, rest),) = await db.scan(statement, **params, bucket=bucket_of_segment, skipped=skip)
        if bucket is not None:  # None: its rows were deleted meanwhile.
            return _Position(total, FINEST.start(bucket + 1), rest)
    return _Position(total, segment.before, skip)


def _segments(covered: Cover, counts: Iterable[Row]) -> list[_Segment]:
    """Newest first, from the rows of `range_counts`. A change that is not added up yet counts in the bucket that it
    will be added to."""
    segments = []
    sums: Counter[tuple[int, int]] = Counter()
    for part, bucket, row_count in counts:
        if part == statements.CHANGES:
            at = FINEST.start(bucket)
            run = next(number for number, run in enumerate(covered.runs) if run.holds(at))
            sums[run, at // covered.runs[run].level.width] += row_count
        elif part == statements.OLDER_PARTIAL_BUCKET:
            segments.append(_Segment(None, covered.since, covered.start, row_count))
        elif part == statements.NEWER_PARTIAL_BUCKET:
            segments.append(_Segment(None, covered.end, covered.before, row_count))
        else:
            sums[part, bucket] += row_count
    for (run, bucket), row_count in sums.items():
        level = covered.runs[run].level
        segments.append(_Segment(level, level.start(bucket), level.start(bucket + 1), row_count))
    return sorted((each for each in segments if each.rows), key=lambda each: each.since, reverse=True)


def _segment_at(segments: Sequence[_Segment], offset: int) -> tuple[_Segment, int]:
    """The segment that holds row number `offset`, and the rows to skip in it."""
    for segment in segments:
        if offset < segment.rows:
            return segment, offset
        offset -= segment.rows
    # Rows were deleted between two reads: begin after the last one known.
    return segments[-1], offset + segments[-1].rows
