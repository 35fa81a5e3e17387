"""A queue in a table whose rows belong to owners (merchants): claims what is due in turns, each owner as much as its
share allows, first attempts before retries.

A claim jumps from owner to owner in an index, takes the head of each owner's rows, and gives every owner one row before
any owner gets its second; the owner that was served last comes last. So the backlog of one owner, however long, delays
nobody, and rows that may not be claimed now are never read past.

First attempts and retries have an index each. Retries are looked at when no first attempt can be claimed, and once a
second in any case, so that an endless stream of first attempts does not put them off for ever.

Cost of a claim: one index probe for each owner with a waiting row (at most 2 * MOST_OWNERS), and the rows at the heads
of those that have a free share.
"""

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import ColumnElement, Table, func, select

from guichet.clock import SECOND, Instant, later
from guichet.db.engine import Database, Row, require
from guichet.db.queues.fair_queue_statements import FairQueueStatements
from guichet.db.queues.fair_share import Shares
from guichet.db.queues.work_queue import SOON, Claim
from guichet.db.queues.work_queue_statements import PENDING, Ready

#: Retries are looked at this often, whatever first attempts wait.
RETRIES_EVERY: Final = SECOND

T = TypeVar("T")


class FairQueue(Generic[T]):
    """The queue of one table, which needs three indexes over its pending rows: `(due)`, and `(owner, due, id)` twice,
    over first attempts and over retries. One object belongs to one process: it remembers whose turn is next."""

    def __init__(self, statements: "FairClaims", job: Callable[[Row], T]) -> None:
        self._statements = statements
        self._job = job
        self._last_served = 0
        self._retries_at = Instant(0)

    async def claim(
        self, db: Database, now: Instant, until: Instant, most: int, shares: Shares, full: Collection[str] = ()
    ) -> Claim[T]:
        """Claims up to `most` rows until the instant `until`, of each owner what `shares` allows.

        `full`: destinations whose rows are left alone.
        """
        params: dict[str, Any] = {
            "now": now,
            "until": until,
            "most": most,
            "last_served": self._last_served,
            "free": json.dumps(shares.free),
            "others": shares.others,
            "in_timeout": json.dumps(shares.in_timeout),
            "in_timeout_free": shares.in_timeout_free,
            "full": json.dumps(sorted(full)),
        }
        if now >= self._retries_at:
            self._retries_at = later(now, RETRIES_EVERY)
            retries = await db.execute_returning(self._statements.retries, **params)
            if retries:
                return self._claimed(retries, now)
        rows = await db.execute_returning(self._statements.first_attempts, **params)
        if rows:
            return self._claimed(rows, now)
        (earliest,) = require(await db.one(self._statements.earliest))
        if earliest is None or earliest > now:
            return Claim([], earliest)
        rows = await db.execute_returning(self._statements.retries, **params)
        # What is due and was not claimed waits for its owner's share, or another worker is claiming it.
        return self._claimed(rows, now if rows else later(now, SOON))

    def _claimed(self, rows: Sequence[Row], next_due: Instant) -> Claim[T]:
        if rows:
            position, before = self._statements.owner_position, self._last_served
            self._last_served = max((row[position] for row in rows), key=lambda owner: (owner <= before, owner))
        return Claim([self._job(row) for row in rows], next_due)


class FairClaims:
    """The statements of a fair queue, made once."""

    def __init__(
        self,
        table: Table,
        due: str,
        owner: str,
        destination: str,
        *,
        first: ColumnElement[bool],
        retry: ColumnElement[bool],
        values: dict[str, Any],
        ready: Ready,
    ) -> None:
        """`due`: the column that says when a row may be claimed; a claim sets it to the end of the lease.
        `first` and `retry`: which rows are first attempts and which retries, as their indexes say it.
        `values`: what else a claim changes. `ready`: further conditions.
        """
        statements = FairQueueStatements(table, due, owner, destination, ready)
        self.first_attempts = statements.claim(first, values)
        self.retries = statements.claim(retry, values)
        self.earliest = select(func.min(table.c[due])).where(table.c.status == PENDING)
        self.owner_position = list(table.c.keys()).index(owner)
