"""Recorded movements of our own money: SQL and row mapping."""

from typing import Final

from sqlalchemy import bindparam, select, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Transaction
from guichet.db.sql_functions import new_row, upsert, values_of
from guichet.db.tables import treasury_movements
from guichet.domain.treasury import MovementStatus, TreasuryMovement

#: Movements that one list shows. People record some a day.
MOST: Final = 200

_rows: Final = treasury_movements.c
_INSERT: Final = (
    upsert(treasury_movements).values(new_row(treasury_movements)).on_conflict_do_nothing().returning(*_rows)
)
_FIND: Final = select(treasury_movements).where(_rows.reference == bindparam("ours"))
_END: Final = (
    update(treasury_movements)
    .where(_rows.reference == bindparam("ours"), _rows.status == "announced")
    .values(status=bindparam("new_status"), ended_at=bindparam("now"))
    .returning(*_rows)
)
_LATEST: Final = select(treasury_movements).order_by(_rows.id.desc()).limit(MOST)


async def insert_new(tx: Transaction, movement: TreasuryMovement) -> TreasuryMovement | None:
    """None when its reference was used before."""
    values = values_of(treasury_movements, movement)
    return await tx.write_as(TreasuryMovement, _INSERT, **values)


async def end(tx: Transaction, reference: str, status: MovementStatus, now: Instant) -> TreasuryMovement | None:
    """None when it is not announced any more."""
    return await tx.write_as(TreasuryMovement, _END, ours=reference, new_status=status, now=now)


async def find(db: Reader, reference: str) -> TreasuryMovement | None:
    return await db.one_as(TreasuryMovement, _FIND, ours=reference)


async def latest(db: Database) -> list[TreasuryMovement]:
    """The newest, at most 200."""
    return [TreasuryMovement(*row) for row in await db.scan(_LATEST)]
