"""The SQL of a fair queue (`fair_queue.py`)."""

from typing import Any, Final

from sqlalchemy import (
    CTE,
    ColumnElement,
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
    update,
)

from guichet.db.queues.fair_share import FIRST_WINDOW
from guichet.db.queues.work_queue_statements import PENDING, Ready, is_still_pending
from guichet.db.sql_functions import in_materialized, json_pairs, json_texts

#: Owners that a claim visits after the one that was served last, and as many again from the first one of all.
MOST_OWNERS: Final = 500

_MOST: Final = bindparam("most", type_=Integer)
_LAST_SERVED: Final = bindparam("last_served", type_=Integer)
_ZERO: Final[ColumnElement[int]] = literal_column("0", Integer)
_ONE: Final[ColumnElement[int]] = literal_column("1", Integer)


class FairQueueStatements:
    """`due`, `owner` and `destination` are names of columns."""

    def __init__(self, table: Table, due: str, owner: str, destination: str, ready: Ready) -> None:
        self._table = table
        self._due = due
        self._owner = owner
        self._destination = destination
        self._ready = ready

    def claim(self, waiting: ColumnElement[bool], values: dict[str, Any]) -> Update:
        """Claims rows among those that are pending and `waiting`, until the parameter `until`."""
        due = self._locked(self._chosen(self._heads(self._turns(waiting), waiting)))
        return (
            update(self._table)
            .where(in_materialized(self._table.c.id, select(due.c.id)))
            .values({**values, self._due: bindparam("until")})
            .returning(*self._table.c)
        )

    def _turns(self, waiting: ColumnElement[bool]) -> CTE:
        """Every owner with a waiting row and a free share, and `turn`: 0 after the one that was served last, else 1."""
        late, early = self._owners("late", _LAST_SERVED, waiting), self._owners("early", _ZERO, waiting)
        owners = (
            select(late.c.owner, _ZERO.label("turn"))
            .where(late.c.owner.is_not(None))
            .union_all(select(early.c.owner, _ONE.label("turn")).where(early.c.owner <= _LAST_SERVED))
            .subquery("owners")
        )
        shares = json_pairs(bindparam("free", type_=Text)).table_valued("key", "value", name="shares")
        free = func.coalesce(cast(shares.c.value, Integer), bindparam("others", type_=Integer))
        return (
            select(
                owners.c.owner,
                owners.c.turn,
                free.label("free"),
                case((cast(owners.c.owner, Text).bool_op("IN")(json_texts(bindparam("in_timeout"))), 1), else_=0).label(
                    "slow"
                ),
            )
            .select_from(owners.outerjoin(shares, shares.c.key == cast(owners.c.owner, Text)))
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
        found = select(owner).where(rows.c.status == PENDING, waiting, owner > after).order_by(owner).limit(1)
        return found.correlate_except(rows).scalar_subquery()

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
        first = (
            select(rows.c.id)
            .where(
                rows.c[self._owner] == turns.c.owner,
                rows.c.status == PENDING,
                waiting,
                due <= bindparam("now"),
                *self._ready(rows),
            )
            .order_by(due, rows.c.id)
            .limit(most)
            .correlate(turns)
        )
        head = rows.alias()
        place = func.row_number().over(partition_by=turns.c.owner, order_by=(head.c[self._due], head.c.id))
        return (
            select(head.c.id, place.label("place"), *turns.c)
            .select_from(turns.join(head, in_materialized(head.c.id, first)))
            .where(which, head.c[self._destination].bool_op("NOT IN")(json_texts(bindparam("full"))))
        )

    def _chosen(self, heads: Subquery) -> SelectBase:
        """One row of each owner before the second of any, as far as the shares go."""
        # Among owners in timeout chance decides: their turns would end at whom the last claim served besides them.
        of_its_kind = func.row_number().over(partition_by=heads.c.slow, order_by=(heads.c.place, func.random()))
        shared = (
            select(*heads.c, of_its_kind.label("of_its_kind")).where(heads.c.place <= heads.c.free).subquery("shared")
        )
        return (
            select(shared.c.id)
            .where((shared.c.slow == 0) | (shared.c.of_its_kind <= bindparam("in_timeout_free", type_=Integer)))
            .order_by(shared.c.place, shared.c.turn, shared.c.owner)
            .limit(_MOST)
        )

    def _locked(self, found: SelectBase) -> CTE:
        """Locks the rows `found`, skipping those that another worker has locked (see `work_queue_statements.py`
        for the form of the conditions)."""
        rows = self._table
        due = rows.c[self._due]
        return (
            select(rows.c.id)
            .where(in_materialized(rows.c.id, found), is_still_pending(rows), due + 0 <= bindparam("now"))
            .with_for_update(skip_locked=True, of=rows)
            .cte("due")
        )
