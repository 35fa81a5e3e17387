"""The SQL of the pages of lists (`list_pages.py`). Each function builds its statement once."""

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
    func,
    literal_column,
    select,
    union_all,
)

from guichet.db.tables import list_count_changes, list_counts
from guichet.db.time_buckets import FINEST, LEVELS, Cover, Level

#: The level of the one bucket that counts a whole list.
WHOLE_LIST: Final = "all"
#: Parts of a range besides the runs of a `Cover`, which are numbered from 0.
CHANGES: Final = -1
OLDER_PARTIAL_BUCKET: Final = -2
NEWER_PARTIAL_BUCKET: Final = -3


@cache
def list_total(by_status: bool) -> Executable:
    """The number of rows of a list."""
    counted = select(list_counts.c.row_count).where(*_of_list(list_counts, by_status))
    changes = select(list_count_changes.c.delta.label("row_count")).where(*_of_list(list_count_changes, by_status))
    both = union_all(counted.where(list_counts.c.level == WHOLE_LIST), changes).subquery()
    return select(_sum(both.c.row_count))


@cache
def range_total(table: Table, by_status: bool) -> Executable:
    """The number of rows of a range."""
    return select(_sum(union_all(*_parts(table, by_status)).subquery().c.row_count))


@cache
def range_counts(table: Table, by_status: bool) -> Executable:
    """Rows (part, bucket, row_count) of a range: of its runs and changes, then of its two partial buckets."""
    *counted, older, newer = (part.subquery() for part in _parts(table, by_status))
    sums = [
        select(part.c.part, part.c.bucket, _sum(part.c.row_count)).group_by(part.c.part, part.c.bucket)
        for part in counted
    ]
    partial = (select(each.c.part, each.c.bucket, each.c.row_count) for each in (older, newer))
    return union_all(*sums, *partial)


def cover_params(covered: Cover) -> dict[str, int]:
    """The parameters of `range_total` and `range_counts` that say which range."""
    params = {
        "since": covered.since,
        "start": covered.start,
        "end": covered.end,
        "before": covered.before,
        "changes_first": covered.start // FINEST.width,
        "changes_last": covered.end // FINEST.width - 1,
    }
    for number, run in enumerate(covered.runs):
        params |= {f"first_{number}": run.first, f"last_{number}": run.last}
    return params


@cache
def finest_bucket_at(level: Level, by_status: bool) -> Executable:
    """For the row after the newest `skipped` ones of a bucket of `level`: its finest bucket, and how many rows remain
    to skip in that."""
    outer: ColumnElement[int] = bindparam("bucket", type_=Integer)
    skip: ColumnElement[int] = bindparam("skipped", type_=BigInteger)
    for finer, coarser in reversed(list(pairwise(LEVELS[: LEVELS.index(level) + 1]))):
        found = _bucket_inside(finer, coarser, outer, skip, by_status).cte()
        outer, skip = select(found.c.bucket).scalar_subquery(), select(found.c.skip).scalar_subquery()
    return select(outer, skip)


def _bucket_inside(
    finer: Level, coarser: Level, outer: ColumnElement[int], skip: ColumnElement[int], by_status: bool
) -> Select[*tuple[Any, ...]]:
    """The bucket of `finer`, inside `outer` of `coarser`, that holds the row after the newest `skip` ones."""
    per_coarser = coarser.width // finer.width
    inside = (outer * per_coarser, outer * per_coarser + per_coarser - 1)
    bucket_of_change = list_count_changes.c.hour.op("/", return_type=Integer())(_number(finer.width // FINEST.width))
    both = union_all(
        select(list_counts.c.bucket, list_counts.c.row_count).where(
            *_of_list(list_counts, by_status),
            list_counts.c.level == finer.name,
            list_counts.c.bucket.between(*inside),
        ),
        select(bucket_of_change.label("bucket"), list_count_changes.c.delta.label("row_count")).where(
            *_of_list(list_count_changes, by_status), bucket_of_change.between(*inside)
        ),
    ).subquery()
    sums = select(both.c.bucket, _sum(both.c.row_count).label("row_count")).group_by(both.c.bucket).subquery()
    newer = (_sum(sums.c.row_count, running_by=sums.c.bucket.desc()) - sums.c.row_count).label("newer")
    ranked = select(sums.c.bucket, newer).where(sums.c.row_count != 0).subquery()
    reached = select(ranked.c.bucket, (skip - ranked.c.newer).label("skip")).where(ranked.c.newer <= skip)
    return reached.order_by(ranked.c.bucket).limit(1)


def _sum(column: ColumnElement[int], running_by: ColumnElement[int] | None = None) -> ColumnElement[int]:
    """The sum as a whole number (PostgreSQL returns NUMERIC); `running_by`: the order of a running sum."""
    added = func.sum(column) if running_by is None else func.sum(column).over(order_by=running_by)
    return cast(func.coalesce(added, 0), BigInteger)


def _parts(table: Table, by_status: bool) -> list[Select[*tuple[Any, ...]]]:
    """Rows (part, bucket, row_count) of each run of a `Cover`, of the changes, and of the two partial buckets."""
    runs: list[Select[*tuple[Any, ...]]] = [
        select(_number(run).label("part"), list_counts.c.bucket, list_counts.c.row_count).where(
            *_of_list(list_counts, by_status),
            list_counts.c.level == level.name,
            list_counts.c.bucket.between(bindparam(f"first_{run}"), bindparam(f"last_{run}")),
        )
        for run, level in enumerate([level for level in LEVELS for _ in range(2)][:-1])
    ]
    hour, delta = list_count_changes.c.hour, list_count_changes.c.delta
    changes = select(_number(CHANGES).label("part"), hour.label("bucket"), delta.label("row_count")).where(
        *_of_list(list_count_changes, by_status), hour.between(bindparam("changes_first"), bindparam("changes_last"))
    )
    return [
        *runs,
        changes,
        _partial_bucket(table, by_status, OLDER_PARTIAL_BUCKET, "since", "start"),
        _partial_bucket(table, by_status, NEWER_PARTIAL_BUCKET, "end", "before"),
    ]


def _partial_bucket(table: Table, by_status: bool, part: int, since: str, before: str) -> Select[*tuple[Any, ...]]:
    """Counts the rows themselves; `since` and `before` are names of parameters."""
    columns = (_number(part).label("part"), _number(0).label("bucket"), func.count().label("row_count"))
    created_at = table.c.created_at
    between = (created_at >= bindparam(since), created_at < bindparam(before))
    return select(*columns).select_from(table).where(*_of_merchant(table, by_status), *between)


def _number(value: int) -> ColumnElement[int]:
    return literal_column(str(value), Integer)


def _of_merchant(table: Table, by_status: bool) -> list[ColumnElement[bool]]:
    chosen = [table.c.merchant_id == bindparam("merchant"), table.c.env == bindparam("environment")]
    return [*chosen, table.c.status == bindparam("status")] if by_status else chosen


def _of_list(table: Table, by_status: bool) -> list[ColumnElement[bool]]:
    return [*_of_merchant(table, by_status), table.c.list_name == bindparam("list_name")]


@cache
def page_rows(table: Table, params: frozenset[str]) -> Executable:
    """Rows of a list, newest first. `params` names the conditions among `status`, `since` and `before`. Skipping rows
    reads only the index that orders them."""
    conditions = {"since": table.c.created_at >= bindparam("since"), "before": table.c.created_at < bindparam("before")}
    chosen = _of_merchant(table, "status" in params) + [conditions[name] for name in conditions if name in params]
    order = (table.c.created_at.desc(), table.c.id.desc())
    ids = select(table.c.id).where(*chosen).order_by(*order).limit(bindparam("most")).offset(bindparam("skipped"))
    wanted = ids.subquery()
    return select(table).join(wanted, wanted.c.id == table.c.id).order_by(*order)
