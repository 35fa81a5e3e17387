"""Exact totals and far pages of the long lists at a flat cost.

`counts` knows how many rows a list, each day and each hour hold; what was not folded yet is added from `count_entries`,
in the same statement. The first pages need one row a status. Within bounds a total is the sum of days, and a page far
down starts at the end of the hour where it lies, so that fewer rows than an hour holds are skipped. Cost then: one row
a day of activity, 24 for each day that a bound or the page cuts, one hour's index entries. It grows with the merchant's
age in days and with its busiest hour, not with its payments.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Executable,
    Integer,
    Table,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from guichet.clock import DAY, HOUR, Instant
from guichet.storage.engine import Database, Row
from guichet.storage.tables import count_entries, counts

#: Rows that are skipped one by one rather than located: the first pages need no look at the days.
NEAR: Final = 1000
_LEVELS: Final = {"hour": HOUR, "day": DAY}
_HOURS_A_DAY: Final = DAY // HOUR
_BEGINNING: Final = -(2**31)
_END: Final = 2**31 - 1

#: Counts exactly the rows with `since <= created_at < before`; used within one hour only.
CountBetween = Callable[[Instant, Instant], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Scope:
    """One list of one merchant in one environment; `status` None means all."""

    name: str
    merchant_id: int
    env: str
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page lies: the exact total, and the rows to skip among those created before `before`."""

    total: int
    before: Instant | None
    skip: int


@dataclass(frozen=True, slots=True)
class _Segment:
    """A stretch of time and the rows created in it."""

    since: Instant
    before: Instant
    rows: int


async def locate(
    db: Database, scope: Scope, offset: int, since: Instant | None, until: Instant | None, count_between: CountBetween
) -> Place:
    """Where the page that starts after `offset` rows, newest first, lies within the inclusive bounds."""
    before = None if until is None else until + 1
    if since is None and before is None and offset < NEAR:
        return Place(await _grand_total(db, scope), None, offset)
    segments = await _within(db, scope, since, before, count_between)
    total = sum(segment.rows for segment in segments)
    if offset >= total:
        return Place(total, before, 0)
    found, skipped = _reach(segments, offset)
    if found.before - found.since == DAY:
        hours = await _segments(db, scope, "hour", found.since // HOUR, found.before // HOUR - 1)
        within, more = _reach(hours, offset - skipped)
        found, skipped = within, skipped + more
    return Place(total, found.before, offset - skipped)


async def _grand_total(db: Database, scope: Scope) -> int:
    """Rows of the whole list. Cost: one row a status, and what is not folded yet."""
    given: dict[str, Any] = {"merchant": scope.merchant_id, "environment": scope.env, "name": scope.name}
    if scope.status is not None:
        given["status"] = scope.status
    rows = await db.scan(_all_rows(by_status=scope.status is not None), **given)
    return int(rows[0][0])


async def _within(
    db: Database, scope: Scope, since: Instant | None, before: Instant | None, count_between: CountBetween
) -> list[_Segment]:
    """Segments newest first that cover exactly `since <= t < before`: days, cut days as hours, cut hours counted."""
    if since is not None and before is not None and since >= before:
        return []
    first = _BEGINNING if since is None else since // DAY
    last = _END if before is None else (before - 1) // DAY
    segments: list[_Segment] = []
    for day in await _segments(db, scope, "day", first, last):
        if _inside(day, since, before):
            segments.append(day)
            continue
        for hour in await _segments(db, scope, "hour", day.since // HOUR, day.before // HOUR - 1):
            if _inside(hour, since, before):
                segments.append(hour)
                continue
            start = hour.since if since is None else max(hour.since, since)
            end = hour.before if before is None else min(hour.before, before)
            if start < end:
                segments.append(_Segment(start, end, await count_between(start, end)))
    return segments


def _inside(segment: _Segment, since: Instant | None, before: Instant | None) -> bool:
    return (since is None or since <= segment.since) and (before is None or segment.before <= before)


def _reach(segments: Iterable[_Segment], offset: int) -> tuple[_Segment, int]:
    """The segment that holds row number `offset`, and the rows of those before it."""
    skipped = 0
    last = None
    for segment in segments:
        if offset < skipped + segment.rows:
            return segment, skipped
        skipped += segment.rows
        last = segment
    # Rows were added or removed between two reads: start after what is known.
    assert last is not None
    return last, skipped - last.rows


async def _segments(db: Database, scope: Scope, level: str, first: int, last: int) -> list[_Segment]:
    given: dict[str, Any] = {"merchant": scope.merchant_id, "environment": scope.env, "name": scope.name}
    if scope.status is not None:
        given["status"] = scope.status
    statement = _totals(level, by_status=scope.status is not None)
    rows = await db.scan(statement, **given, first=first, last=last)
    width = _LEVELS[level]
    return [_Segment(bucket * width, (bucket + 1) * width, int(n)) for bucket, n in rows if n]


@cache
def _totals(level: str, *, by_status: bool) -> Executable:
    """Rows of each bucket, newest first, folded and unfolded together."""
    hour = count_entries.c.hour
    bucket = hour if level == "hour" else hour.op("/", return_type=Integer())(literal_column(str(_HOURS_A_DAY)))
    folded = select(counts.c.bucket.label("bucket"), counts.c.n.label("n")).where(
        counts.c.merchant_id == bindparam("merchant"),
        counts.c.env == bindparam("environment"),
        counts.c.list == bindparam("name"),
        counts.c.level == level,
        counts.c.bucket.between(bindparam("first"), bindparam("last")),
        *((counts.c.status == bindparam("status"),) if by_status else ()),
    )
    unfolded = select(bucket.label("bucket"), count_entries.c.delta.label("n")).where(
        count_entries.c.merchant_id == bindparam("merchant"),
        count_entries.c.env == bindparam("environment"),
        count_entries.c.list == bindparam("name"),
        bucket.between(bindparam("first"), bindparam("last")),
        *((count_entries.c.status == bindparam("status"),) if by_status else ()),
    )
    both = union_all(folded, unfolded).subquery()
    return select(both.c.bucket, func.sum(both.c.n)).group_by(both.c.bucket).order_by(both.c.bucket.desc())


@cache
def _all_rows(*, by_status: bool) -> Executable:
    """Every row of a list, folded and unfolded together."""
    folded = select(counts.c.n.label("n")).where(
        counts.c.merchant_id == bindparam("merchant"),
        counts.c.env == bindparam("environment"),
        counts.c.list == bindparam("name"),
        counts.c.level == "all",
        *((counts.c.status == bindparam("status"),) if by_status else ()),
    )
    unfolded = select(count_entries.c.delta.label("n")).where(
        count_entries.c.merchant_id == bindparam("merchant"),
        count_entries.c.env == bindparam("environment"),
        count_entries.c.list == bindparam("name"),
        *((count_entries.c.status == bindparam("status"),) if by_status else ()),
    )
    both = union_all(folded, unfolded).subquery()
    return select(func.coalesce(func.sum(both.c.n), 0))


@cache
def _rows(table: Table, names: frozenset[str], *, counting: bool) -> Executable:
    """Rows of a list between two instants, newest first; skipping touches only the index that orders them."""
    conditions: dict[str, ColumnElement[bool]] = {
        "status": table.c.status == bindparam("status"),
        "since": table.c.created_at >= bindparam("since"),
        "before": table.c.created_at < bindparam("before"),
    }
    mine = (table.c.merchant_id == bindparam("merchant"), table.c.env == bindparam("environment"))
    chosen = (*mine, *(conditions[name] for name in sorted(names)))
    if counting:
        return select(func.count()).select_from(table).where(*chosen)
    order = (table.c.created_at.desc(), table.c.id.desc())
    ids = select(table.c.id).where(*chosen).order_by(*order).limit(bindparam("most")).offset(bindparam("skipped"))
    wanted = ids.subquery()
    return select(table).join(wanted, wanted.c.id == table.c.id).order_by(*order)


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
    mine: dict[str, Any] = {"merchant": scope.merchant_id, "environment": scope.env}
    if scope.status is not None:
        mine["status"] = scope.status

    async def count_between(start: Instant, end: Instant) -> int:
        given = {**mine, "since": start, "before": end}
        statement = _rows(table, frozenset(given) - {"merchant", "environment"}, counting=True)
        (counted,) = await db.scan(statement, **given)
        return int(counted[0])

    place = await locate(db, scope, offset, since, until, count_between)
    if offset >= place.total:
        return [], place.total
    given = dict(mine)
    if since is not None:
        given["since"] = since
    if place.before is not None:
        given["before"] = place.before
    statement = _rows(table, frozenset(given) - {"merchant", "environment"}, counting=False)
    return await db.scan(statement, **given, most=limit, skipped=place.skip), place.total


_TAKEN: Final = (
    select(count_entries.c.id)
    .order_by(count_entries.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("oldest")
)
_TAKE: Final = (
    delete(count_entries)
    .where(count_entries.c.id.in_(select(_TAKEN.c.id)))
    .returning(
        count_entries.c.merchant_id,
        count_entries.c.env,
        count_entries.c.list,
        count_entries.c.hour,
        count_entries.c.status,
        count_entries.c.delta,
    )
)
_NEW: Final = upsert(counts).values({column.name: bindparam(column.name) for column in counts.c})
_ADD: Final = _NEW.on_conflict_do_update(
    index_elements=[column.name for column in counts.primary_key],
    set_={"n": counts.c.n + _NEW.excluded.n},
)


async def fold(db: Database, most: int) -> int:
    """Moves up to `most` entries into the counts; how many it moved. Run by the worker."""
    async with db.transaction() as tx:
        taken = await tx.all(_TAKE, most=most)
        sums: dict[tuple[Any, ...], int] = defaultdict(int)
        for merchant_id, env, name, hour, status, delta in taken:
            sums[merchant_id, env, name, "hour", hour, status] += delta
            sums[merchant_id, env, name, "day", hour // _HOURS_A_DAY, status] += delta
            sums[merchant_id, env, name, "all", 0, status] += delta
        # Always in the same order, so that two workers never wait for each other in a circle.
        for key, delta in sorted(sums.items()):
            if delta:
                merchant_id, env, name, level, bucket, status = key
                await tx.write(
                    _ADD,
                    merchant_id=merchant_id,
                    env=env,
                    list=name,
                    level=level,
                    bucket=bucket,
                    status=status,
                    n=delta,
                )
    return len(taken)
