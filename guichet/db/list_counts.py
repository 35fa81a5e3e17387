"""Exact totals and far pages of the long lists at a flat cost.

`list_counts` knows how many rows a list holds in all and in each bucket of time (`time_buckets.py`); what is not
folded yet is added from `list_count_changes`, in the same statement. Near the top, or the upper bound, a page is two
statements: the total, then its rows, reached by skipping up to NEAR index entries. Further down it is three: the
buckets that cover the range one by one, the way down from the bucket where the page begins to one of the finest
level, then its rows.

Cost: the buckets that cover the range (one row a day of activity, 24 at each end); far down those inside one bucket of
each level; at most the index entries of three buckets of the finest level (cut by either bound, skipped). Neither the
payments nor the offset count.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    Integer,
    Select,
    Table,
    bindparam,
    cast,
    delete,
    func,
    literal_column,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from guichet.clock import Instant
from guichet.db.engine import Database, Row
from guichet.db.tables import list_count_changes, list_counts
from guichet.db.time_buckets import FINEST, LEVELS, Cover, Level, cover

#: Rows that are skipped one by one rather than located.
NEAR: Final = 500
#: The name of the one bucket that holds a whole list.
_ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class Scope:
    """One list of one merchant in one environment; `status` None means all."""

    name: str
    merchant_id: int
    env: str
    status: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        mine = {"merchant": self.merchant_id, "environment": self.env, "name": self.name}
        return mine if self.status is None else {**mine, "status": self.status}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: the exact total, and the rows to skip among those created before `before`."""

    total: int
    before: Instant | None
    skip: int


@dataclass(frozen=True, slots=True)
class _Segment:
    """A stretch of time and the rows created in it. `level` None: a cut bucket, which has no finer ones."""

    level: Level | None
    since: Instant
    before: Instant
    rows: int


async def page(
    db: Database,
    table: Table,
    scope: Scope,
    limit: int,
    offset: int,
    since: Instant | None = None,
    until: Instant | None = None,
) -> tuple[list[Row], int]:
    """One page of a list, newest first, and its exact total; `since` and `until` are inclusive."""
    place = await _locate(db, table, scope, offset, since, None if until is None else until + 1)
    if offset >= place.total:
        return [], place.total
    given: dict[str, Any] = scope.given
    del given["name"]
    if since is not None:
        given["since"] = since
    if place.before is not None:
        given["before"] = place.before
    statement = _rows(table, frozenset(given) - {"merchant", "environment"})
    # A few rows through an index: the usual case is not worth a thread.
    read = db.all if place.skip <= NEAR else db.scan
    return await read(statement, **given, most=limit, skipped=place.skip), place.total


async def _locate(
    db: Database, table: Table, scope: Scope, offset: int, since: Instant | None, before: Instant | None
) -> Place:
    """Where the page that starts after `offset` rows, newest first, lies among `since <= t < before`."""
    by_status = scope.status is not None
    if since is None and before is None and offset <= NEAR:
        return Place(int((await db.all(_whole(by_status), **scope.given))[0][0]), None, offset)
    wanted = cover(since, before)
    given = {**scope.given, **_bounds(wanted)}
    if offset <= NEAR:
        return Place(int((await db.scan(_sum(table, by_status), **given))[0][0]), before, offset)
    segments = _segments(wanted, await db.scan(_buckets(table, by_status), **given))
    total = sum(segment.rows for segment in segments)
    if offset >= total:
        return Place(total, before, 0)
    found, skip = _reach(segments, offset)
    if skip > NEAR and found.level not in (None, FINEST):
        at = found.since // found.level.width
        ((bucket, left),) = await db.scan(_descent(found.level, by_status), **scope.given, bucket=at, skipped=skip)
        if bucket is not None:  # None: its rows were removed meanwhile.
            return Place(total, (bucket + 1) * FINEST.width, left)
    return Place(total, found.before, skip)


def _bounds(wanted: Cover) -> dict[str, int]:
    """Parameters of `_parts`."""
    bounds = {
        "since": wanted.since,
        "start": wanted.start,
        "end": wanted.end,
        "before": wanted.before,
        "entries_first": wanted.start // FINEST.width,
        "entries_last": wanted.end // FINEST.width - 1,
    }
    for number, run in enumerate(wanted.runs):
        bounds |= {f"first_{number}": run.first, f"last_{number}": run.last}
    return bounds


def _segments(wanted: Cover, rows: Iterable[Row]) -> list[_Segment]:
    """Newest first, from the rows of `_buckets`; what is not folded yet counts in the bucket that will hold it."""
    segments = []
    sums: Counter[tuple[int, int]] = Counter()
    for part, bucket, n in rows:
        if part == _ENTRIES:
            at = bucket * FINEST.width
            run = next(number for number, run in enumerate(wanted.runs) if run.holds(at))
            sums[run, at // wanted.runs[run].level.width] += n
        elif part == _OLDER_CUT:
            segments.append(_Segment(None, wanted.since, wanted.start, n))
        elif part == _NEWER_CUT:
            segments.append(_Segment(None, wanted.end, wanted.before, n))
        else:
            sums[part, bucket] += n
    for (run, bucket), n in sums.items():
        level = wanted.runs[run].level
        segments.append(_Segment(level, bucket * level.width, (bucket + 1) * level.width, n))
    return sorted((each for each in segments if each.rows), key=lambda each: each.since, reverse=True)


def _reach(segments: Sequence[_Segment], offset: int) -> tuple[_Segment, int]:
    """The segment that holds row number `offset`, and the rows to skip in it."""
    for segment in segments:
        if offset < segment.rows:
            return segment, offset
        offset -= segment.rows
    # Rows were removed between two reads: start after what is known.
    return segments[-1], offset + segments[-1].rows


# --- statements -------------------------------------------------------------------------------------------------------

_ENTRIES: Final = -1
_OLDER_CUT: Final = -2
_NEWER_CUT: Final = -3


@cache
def _whole(by_status: bool) -> Executable:
    """Every row of a list, folded and unfolded together."""
    folded = select(list_counts.c.row_count).where(*_listed(list_counts, by_status), list_counts.c.level == _ALL)
    unfolded = select(list_count_changes.c.delta.label("row_count")).where(*_listed(list_count_changes, by_status))
    return select(_total(union_all(folded, unfolded).subquery().c.row_count))


@cache
def _sum(table: Table, by_status: bool) -> Executable:
    """The rows of a range."""
    return select(_total(union_all(*_parts(table, by_status)).subquery().c.row_count))


@cache
def _buckets(table: Table, by_status: bool) -> Executable:
    """The rows of a range by part and bucket, unfolded ones apart, cut buckets last."""
    *counted, older, newer = (part.subquery() for part in _parts(table, by_status))
    sums = [
        select(part.c.part, part.c.bucket, _total(part.c.row_count)).group_by(part.c.part, part.c.bucket)
        for part in counted
    ]
    return union_all(*sums, *(select(cut.c.part, cut.c.bucket, cut.c.row_count) for cut in (older, newer)))


@cache
def _descent(level: Level, by_status: bool) -> Executable:
    """Of the row after `skipped` ones of a bucket of `level`: its finest bucket, and what is left to skip in that."""
    outer: ColumnElement[int] = bindparam("bucket", type_=Integer)
    skip: ColumnElement[int] = bindparam("skipped", type_=BigInteger)
    for finer, coarser in reversed(list(pairwise(LEVELS[: LEVELS.index(level) + 1]))):
        found = _step(finer, coarser, outer, skip, by_status).cte()
        outer, skip = select(found.c.bucket).scalar_subquery(), select(found.c.skip).scalar_subquery()
    return select(outer, skip)


def _step(
    finer: Level, coarser: Level, outer: ColumnElement[int], skip: ColumnElement[int], by_status: bool
) -> Select[*tuple[Any, ...]]:
    """The bucket of `finer` inside one of `coarser`, and what is left to skip inside it."""
    within = coarser.width // finer.width
    bucket = list_count_changes.c.hour.op("/", return_type=Integer())(_number(finer.width // FINEST.width))
    both = union_all(
        select(list_counts.c.bucket, list_counts.c.row_count).where(
            *_listed(list_counts, by_status),
            list_counts.c.level == finer.name,
            list_counts.c.bucket.between(outer * within, outer * within + within - 1),
        ),
        select(bucket.label("bucket"), list_count_changes.c.delta.label("row_count")).where(
            *_listed(list_count_changes, by_status), bucket.between(outer * within, outer * within + within - 1)
        ),
    ).subquery()
    sums = select(both.c.bucket, _total(both.c.row_count).label("row_count")).group_by(both.c.bucket).subquery()
    newer = (_total(sums.c.row_count, over=sums.c.bucket.desc()) - sums.c.row_count).label("newer")
    ranked = select(sums.c.bucket, newer).where(sums.c.row_count != 0).subquery()
    reached = select(ranked.c.bucket, (skip - ranked.c.newer).label("skip")).where(ranked.c.newer <= skip)
    return reached.order_by(ranked.c.bucket).limit(1)


def _total(column: ColumnElement[int], over: ColumnElement[int] | None = None) -> ColumnElement[int]:
    """`over`: running, in this order. PostgreSQL adds whole numbers up to a NUMERIC."""
    added = func.sum(column) if over is None else func.sum(column).over(order_by=over)
    return cast(func.coalesce(added, 0), BigInteger)


def _parts(table: Table, by_status: bool) -> list[Select[*tuple[Any, ...]]]:
    """(part, bucket, n) of each run of a `Cover`, of what is not folded yet, and of the rows of both cut buckets."""
    listed = _listed(list_counts, by_status)
    levels = [level for level in LEVELS for _ in range(2)][:-1]
    parts: list[Select[*tuple[Any, ...]]] = [
        select(_number(run).label("part"), list_counts.c.bucket, list_counts.c.row_count).where(
            *listed,
            list_counts.c.level == level.name,
            list_counts.c.bucket.between(bindparam(f"first_{run}"), bindparam(f"last_{run}")),
        )
        for run, level in enumerate(levels)
    ]
    unfolded = list_count_changes.c.hour
    parts.append(
        select(
            _number(_ENTRIES).label("part"), unfolded.label("bucket"), list_count_changes.c.delta.label("row_count")
        ).where(
            *_listed(list_count_changes, by_status),
            unfolded.between(bindparam("entries_first"), bindparam("entries_last")),
        )
    )
    for part, since, before in ((_OLDER_CUT, "since", "start"), (_NEWER_CUT, "end", "before")):
        cut = select(_number(part).label("part"), _number(0).label("bucket"), func.count().label("row_count"))
        between = (table.c.created_at >= bindparam(since), table.c.created_at < bindparam(before))
        parts.append(cut.select_from(table).where(*_mine(table, by_status), *between))
    return parts


def _number(value: int) -> ColumnElement[int]:
    return literal_column(str(value), Integer)


def _mine(table: Table, by_status: bool) -> list[ColumnElement[bool]]:
    mine = [table.c.merchant_id == bindparam("merchant"), table.c.env == bindparam("environment")]
    return [*mine, table.c.status == bindparam("status")] if by_status else mine


def _listed(table: Table, by_status: bool) -> list[ColumnElement[bool]]:
    return [*_mine(table, by_status), table.c.list_name == bindparam("name")]


@cache
def _rows(table: Table, names: frozenset[str]) -> Executable:
    """Rows of a list between two instants, newest first; skipping touches only the index that orders them."""
    conditions: dict[str, ColumnElement[bool]] = {
        "since": table.c.created_at >= bindparam("since"),
        "before": table.c.created_at < bindparam("before"),
    }
    chosen = _mine(table, "status" in names) + [conditions[name] for name in sorted(names & conditions.keys())]
    order = (table.c.created_at.desc(), table.c.id.desc())
    ids = select(table.c.id).where(*chosen).order_by(*order).limit(bindparam("most")).offset(bindparam("skipped"))
    wanted = ids.subquery()
    return select(table).join(wanted, wanted.c.id == table.c.id).order_by(*order)


# --- folding ----------------------------------------------------------------------------------------------------------

_TAKEN: Final = (
    select(list_count_changes.c.id)
    .order_by(list_count_changes.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("oldest")
)
_TAKE: Final = (
    delete(list_count_changes)
    .where(list_count_changes.c.id.in_(select(_TAKEN.c.id)))
    .returning(
        list_count_changes.c.merchant_id,
        list_count_changes.c.env,
        list_count_changes.c.list_name,
        list_count_changes.c.hour,
        list_count_changes.c.status,
        list_count_changes.c.delta,
    )
)
_KEY: Final = ("merchant_id", "env", "list_name", "level", "bucket", "status")
_NEW: Final = upsert(list_counts).values({column.name: bindparam(column.name) for column in list_counts.c})
_ADD: Final = _NEW.on_conflict_do_update(
    index_elements=_KEY,
    set_={"row_count": list_counts.c.row_count + _NEW.excluded.row_count},
)
#: What was pruned, or has left a status, leaves no rows behind that every later question would read.
_FORGET: Final = delete(list_counts).where(
    *(list_counts.c[name] == bindparam(name) for name in _KEY), list_counts.c.row_count == 0
)


async def fold(db: Database, most: int) -> int:
    """Moves up to `most` entries into the counts; how many it moved. Run by the worker."""
    async with db.transaction() as tx:
        taken = await tx.all(_TAKE, most=most)
        sums: Counter[tuple[int, str, str, str, int, str]] = Counter()
        for merchant_id, env, name, bucket, status, delta in taken:
            since = bucket * FINEST.width
            for level in LEVELS:
                sums[merchant_id, env, name, level.name, since // level.width, status] += delta
            sums[merchant_id, env, name, _ALL, 0, status] += delta
        # Always in the same order, so that two workers never wait for each other in a circle.
        moved = [(dict(zip(_KEY, key, strict=True)), delta) for key, delta in sorted(sums.items()) if delta]
        await tx.execute_many(_ADD, [{**key, "row_count": delta} for key, delta in moved])
        await tx.execute_many(_FORGET, [key for key, delta in moved if delta < 0])
    return len(taken)
