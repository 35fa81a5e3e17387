"""Adds the changes of the long lists, which triggers note, to the counts that `pages.py` reads.

Deleting the changes of payments adds them to `payment_figures` by a trigger, in the same transaction.
"""

from collections import Counter
from typing import Final

from sqlalchemy import bindparam, delete, select

from guichet.clock import HOUR
from guichet.db.engine import Database
from guichet.db.lists.page_statements import WHOLE_LIST
from guichet.db.lists.time_buckets import LEVELS
from guichet.db.sql_functions import columns, params, upsert
from guichet.db.tables import list_count_changes, list_counts

_oldest: Final = (
    select(list_count_changes.c.id)
    .order_by(list_count_changes.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("oldest")
)
_TAKE: Final = (
    delete(list_count_changes)
    .where(list_count_changes.c.id.in_(select(_oldest.c.id)))
    .returning(
        *columns(list_count_changes, "merchant_id", "env", "list_name", "hour", "status", "delta"),
    )
)
_KEY: Final = ("merchant_id", "env", "list_name", "level", "bucket", "status")
_INSERT: Final = upsert(list_counts).values(params(*list_counts.c.keys()))
_ADD: Final = _INSERT.on_conflict_do_update(
    index_elements=_KEY,
    set_={"row_count": list_counts.c.row_count + _INSERT.excluded.row_count},
)
#: Counts of zero are deleted: otherwise every later page would read them.
_DELETE_EMPTY: Final = delete(list_counts).where(
    *(list_counts.c[name] == bindparam(name) for name in _KEY), list_counts.c.row_count == 0
)


async def roll_up_list_counts(db: Database, most: int) -> int:
    """Adds up to `most` changes to the counts; returns how many. Run by the worker."""
    async with db.transaction() as tx:
        rows = await tx.write_all(_TAKE, most=most)
        sums: Counter[tuple[int, str, str, str, int, str]] = Counter()
        for merchant_id, env, name, hour, status, delta in rows:
            since = hour * HOUR
            for level in LEVELS:
                sums[merchant_id, env, name, level.name, since // level.width, status] += delta
            sums[merchant_id, env, name, WHOLE_LIST, 0, status] += delta
        # Always in the same order, so that two workers cannot wait for each other.
        deltas = [(dict(zip(_KEY, key, strict=True)), delta) for key, delta in sorted(sums.items()) if delta]
        await tx.write_many(_ADD, [{**key, "row_count": delta} for key, delta in deltas])
        await tx.write_many(_DELETE_EMPTY, [key for key, delta in deltas if delta < 0])
    return len(rows)
