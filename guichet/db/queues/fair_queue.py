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
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import (
    CTE,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    SelectBase,
    Subquery,
    Table,
    Text,
    Update,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    select,
)

from guichet.clock import SECOND, Instant, later
from guichet.db.engine import Database, Row, require
from guichet.db.queues.fair_share import FIRST_WINDOW, Shares
from guichet.db.queues.work_queue import PENDING, SOON, Claim, claim_statement, lock_due
from guichet.db.sql_functions import in_materialized, is_listed, json_pairs

#: Retries are looked at this often, whatever first attempts wait.
RETRIES_EVERY: Final = SECOND
#: Owners that a claim visits after the one that was served last, and as many again from the first one of all.
MOST_OWNERS: Final = 500

_MOST: Final = bindparam("most", type_=Integer)
_LAST_SERVED: Final = bindparam("last_served", type_=Integer)
_ZERO: Final[ColumnElement[int]] = literal_column("0", Integer)
_ONE: Final[ColumnElement[int]] = literal_column("1", Integer)

T = TypeVar("T")


class FairClaims:
    """The statements of a fair queue, each made at its first use. The table needs three indexes over its pending rows:
    `(due)`, and `(owner, due, id)` twice, over first attempts and over retries."""

    def __init__(
        self,
        table: Table,
        due: str,
        owner: str,
        destination: str,
        *,
        first: ColumnElement[bool],
        retry: ColumnElement[bool],
        values: Mapping[str, Any],
        ready: Callable[[FromClause], Sequence[ColumnElement[bool]]],
    ) -> None:
        """`due`, `owner` and `destination` are names of columns. `due` says when a row may be claimed; a claim sets it
        to the end of the lease. `first` and `retry`: which rows are first attempts and which retries, as their indexes
        say it. `values`: what else a claim changes. `ready`: further conditions for a row to be claimed, given the
        table.
        """
        self._table = table
        self._due = due
        self._owner = owner
        self._destination = destination
        self._ready = ready
        self._values = {**values, due: bindparam("until")}
        self._first = first
        self._retry = retry
        self.owner_position = list(table.c.keys()).index(owner)

    @cached_property
    def first_attempts(self) -> Update:
        return self._claim(self._first)

    @cached_property
    def retries(self) -> Update:
        return self._claim(self._retry)

    @cached_property
    def earliest(self) -> Select[Any]:
        return select(func.min(self._table.c[self._due])).where(self._table.c.status == PENDING)

    def _claim(self, waiting: ColumnElement[bool]) -> Update:
        """Claims rows among those that are pending and `waiting`, until the parameter `until`."""
        chosen = self._chosen(self._heads(self._turns(waiting), waiting))
        due = lock_due(self._table, self._due, chosen).cte("due")
        return claim_statement(self._table, due, self._values, tuple(self._table.c))

    def _turns(self, waiting: ColumnElement[bool]) -> CTE:
        """Every owner with a waiting row and a free share, and `turn`: 0 after the one that was served last, else 1."""
        after_last_served = self._owners("after_last_served", _LAST_SERVED, waiting)
        from_first = self._owners("from_first", _ZERO, waiting)
        owners = (
            select(after_last_served.c.owner, _ZERO.label("turn"))
            .where(after_last_served.c.owner.is_not(None))
            .union_all(select(from_first.c.owner, _ONE.label("turn")).where(from_first.c.owner <= _LAST_SERVED))
            .subquery("owners")
        )
        owner = cast(owners.c.owner, Text)
        shares = json_pairs(bindparam("free", type_=Text)).table_valued("key", "value", name="shares")
        free = func.coalesce(cast(shares.c.value, Integer), bindparam("unlisted_share", type_=Integer))
        in_timeout = case((is_listed(owner, "in_timeout"), 1), else_=0)
        return (
            select(owners.c.owner, owners.c.turn, free.label("free"), in_timeout.label("in_timeout"))
            .select_from(owners.outerjoin(shares, shares.c.key == owner))
            .where(free > 0)
            .cte("turns")
            .prefix_with("MATERIALIZED")  # Else SQLite reads the heads of all owners before it looks at their shares.
        )

    def _owners(self, name: str, after: ColumnElement[int], waiting: ColumnElement[bool]) -> CTE:
        """Up to MOST_OWNERS owners with a waiting row, whose ids are greater than `after`, in order; then a null."""
        first = self._next_owner(after, waiting)
        owners = select(first.label("owner"), _ONE.label("place")).cte(name, recursive=True)
        following = self._next_owner(owners.c.owner, waiting)
        return owners.union_all(
            select(following, owners.c.place + 1).where(owners.c.owner.is_not(None), owners.c.place < MOST_OWNERS)
        )

    def _next_owner(self, after: ColumnElement[int], waiting: ColumnElement[bool]) -> ColumnElement[int]:
        rows = self._table
        owner = rows.c[self._owner]
        following = select(owner).where(rows.c.status == PENDING, waiting, owner > after).order_by(owner).limit(1)
        return following.correlate_except(rows).scalar_subquery()

    def _heads(self, turns: CTE, waiting: ColumnElement[bool]) -> Subquery:
        """The first due rows of each owner: `place` is 1 for the first one. SQLite takes no limit from a row, so small
        shares are read apart from large ones."""
        small = self._first_rows(turns, turns.c.free <= FIRST_WINDOW, waiting, literal_column(str(FIRST_WINDOW)))
        large = self._first_rows(turns, turns.c.free > FIRST_WINDOW, waiting, _MOST)
        return small.union_all(large).subquery("heads")

    def _first_rows(
        self, turns: CTE, which: ColumnElement[bool], waiting: ColumnElement[bool], most: ColumnElement[int]
    ) -> Select[Any]:
        rows = self._table
        due = rows.c[self._due]
        is_due = (rows.c.status == PENDING, waiting, due <= bindparam("now"), *self._ready(rows))
        first = select(rows.c.id).where(rows.c[self._owner] == turns.c.owner, *is_due)
        first = first.order_by(due, rows.c.id).limit(most).correlate(turns)
        head = rows.alias()
        place = func.row_number().over(partition_by=turns.c.owner, order_by=(head.c[self._due], head.c.id))
        return (
            select(head.c.id, place.label("place"), *turns.c)
            .select_from(turns.join(head, in_materialized(head.c.id, first)))
            .where(which, ~is_listed(head.c[self._destination], "saturated"))
        )

    def _chosen(self, heads: Subquery) -> SelectBase:
        """One row of each owner before the second of any, as far as the shares go."""
        # Owners in timeout are taken at random: turns follow `last_served`, which the other owners move on.
        of_its_kind = func.row_number().over(partition_by=heads.c.in_timeout, order_by=(heads.c.place, func.random()))
        shared = (
            select(*heads.c, of_its_kind.label("of_its_kind")).where(heads.c.place <= heads.c.free).subquery("shared")
        )
        return (
            select(shared.c.id)
            .where((shared.c.in_timeout == 0) | (shared.c.of_its_kind <= bindparam("in_timeout_free", type_=Integer)))
            .order_by(shared.c.place, shared.c.turn, shared.c.owner)
            .limit(_MOST)
        )


class FairQueue(Generic[T]):
    """One object belongs to one process: it remembers whose turn is next."""

    def __init__(self, statements: FairClaims, job: Callable[[Row], T]) -> None:
        self._statements = statements
        self._job = job
        self._last_served = 0
        self._retries_at = Instant(0)

    async def claim(
        self, db: Database, now: Instant, until: Instant, most: int, shares: Shares, saturated: Collection[str] = ()
    ) -> Claim[T]:
        """Claims up to `most` rows until the instant `until`, of each owner what `shares` allows.

        `saturated`: destinations whose rows are left alone.
        """
        params: dict[str, Any] = {
            "now": now,
            "until": until,
            "most": most,
            "last_served": self._last_served,
            "free": json.dumps(shares.free),
            "unlisted_share": shares.unlisted_share,
            "in_timeout": json.dumps(shares.in_timeout),
            "in_timeout_free": shares.in_timeout_free,
            "saturated": json.dumps(sorted(saturated)),
        }
        if now >= self._retries_at:
            self._retries_at = later(now, RETRIES_EVERY)
            retries = await db.write_all(self._statements.retries, **params)
            if retries:
                return self._claimed(retries, now)
        rows = await db.write_all(self._statements.first_attempts, **params)
        if rows:
            return self._claimed(rows, now)
        (earliest,) = require(await db.one(self._statements.earliest))
        if earliest is None or earliest > now:
            return Claim([], earliest)
        rows = await db.write_all(self._statements.retries, **params)
        # What is due and was not claimed waits for its owner's share, or another worker is claiming it.
        return self._claimed(rows, now if rows else later(now, SOON))

    def _claimed(self, rows: Sequence[Row], next_due: Instant) -> Claim[T]:
        if rows:
            # In the order of turns: owners after the one that was served last, then those from the first one on.
            position, before = self._statements.owner_position, self._last_served
            self._last_served = max((row[position] for row in rows), key=lambda owner: (owner <= before, owner))
        return Claim([self._job(row) for row in rows], next_due)
