"""A queue in a table: claims the pending rows that are due, without one slow provider delaying the others.

Each row has a partition key: what may be slow or dead by itself, such as a provider account. (Webhooks are claimed by
merchant, see `fair_queue.py`.) While as many of a partition's rows are being worked on as the caller allows, the
partition is saturated, and its rows are not claimed. Such rows cost the others nothing, however many they are, because
a claim looks twice:

1. at the first WINDOW due rows of all partitions, which usually are all there are;
2. if a whole window was due and none of it could be claimed: at the first rows of every other partition, which are
   found by jumping from partition to partition in an index.

Cost of a claim: one window; the second look adds two index probes for each partition with a pending row.
"""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import ColumnElement, Table

from guichet.clock import SECOND, Instant, later
from guichet.db.engine import Database, Row, require
from guichet.db.queues.work_queue_statements import WINDOW, Ready, WorkQueueStatements, saturated_parameter

#: When to look again after rows were due and none could be claimed, in microseconds.
SOON: Final = SECOND // 10

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Claim(Generic[T_co]):
    """The claimed jobs, and when to look again: now if there may be more, else when the next row is due. None: no other
    row waits, apart from claimed ones and those of saturated partitions."""

    jobs: Sequence[T_co]
    next_due: Instant | None


class WorkQueue(Generic[T_co]):
    """The queue of one table, which needs two indexes over its pending rows: `(due, id, *partition_key)` and
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
        """`due`: the column that says when a row may be claimed; a claim sets it to the end of the lease.
        `values`: what else a claim changes. `job` makes a job of a row of `returning`.
        `ready`: further conditions; `reads` are the columns they use.
        """
        self._job = job
        self._partition_key = tuple(partition_key)
        statements = WorkQueueStatements(table, due, self._partition_key, ready, tuple(reads))
        self._claim_from_window = statements.claim(statements.in_window(), values, returning)
        self._claim_by_partition = statements.claim(statements.in_partitions(), values, returning)
        self._look_ahead = statements.look_ahead()

    async def claim(
        self, db: Database, now: Instant, until: Instant, most: int, saturated: Sequence[Collection[str]] = ()
    ) -> Claim[T_co]:
        """Claims up to `most` rows until the instant `until`. `saturated`: for each column of the partition key, the
        values whose rows are left alone."""
        params: dict[str, Any] = {"now": now, "until": until}
        for position, name in enumerate(self._partition_key):
            values = saturated[position] if position < len(saturated) else ()
            params[saturated_parameter(name)] = json.dumps(sorted(values))
        rows = await db.execute_returning(self._claim_from_window, most=most, **params)
        if rows:  # The caller works on them first: when the next row is due does not matter yet.
            return self._claimed(rows, now)
        next_due, due = require(await db.one(self._look_ahead, now=now))
        if due == WINDOW:
            rows = await db.execute_returning(self._claim_by_partition, most=most, **params)
        if due and not rows:  # They are in saturated partitions, or another worker is claiming them.
            next_due = later(now, SOON)
        return self._claimed(rows, now if rows else next_due)

    def _claimed(self, rows: Sequence[Row], next_due: Instant | None) -> Claim[T_co]:
        return Claim([self._job(row) for row in rows], next_due)
