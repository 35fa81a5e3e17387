"""Disputes: SQL and row mapping."""

from functools import cache
from typing import Final

import msgspec
from sqlalchemy import ColumnElement, Executable, bindparam, func, literal_column, or_, select, tuple_, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Transaction
from guichet.db.lists.pages import PageBounds
from guichet.db.sql_functions import equal, new_row, upsert, values_of
from guichet.db.tables import disputes
from guichet.domain.disputes import Bearer, Dispute, DisputeStatus, ToldStatus
from guichet.domain.ids import DisputeId, MerchantId, PaymentId
from guichet.domain.merchants import Environment
from guichet.domain.records import Record

_MOST: Final = 500
#: Open disputes of one merchant that its pages know.
MOST_OPEN: Final = 200
_INSERT: Final = upsert(disputes).values(new_row(disputes)).on_conflict_do_nothing().returning(*disputes.c)
_CLOSE: Final = (
    update(disputes)
    .where(disputes.c.id == bindparam("dispute_id"), disputes.c.status == "open")
    .values(status=bindparam("new_status"), closed_at=bindparam("now"))
    .returning(*disputes.c)
)
_UNDECIDED_ONE: Final = (
    disputes.c.id == bindparam("dispute_id"),
    or_(disputes.c.status == "lost", disputes.c.status == "prevented"),
    disputes.c.borne_by.is_(None),
)
_CHARGE: Final = (
    update(disputes)
    .where(*_UNDECIDED_ONE)
    .values(status="lost", borne_by=bindparam("bearer"), taken=True)
    .returning(*disputes.c)
)
_CLEAR: Final = (
    update(disputes)
    .where(*_UNDECIDED_ONE, disputes.c.status == "prevented")
    .values(status="won")
    .returning(*disputes.c)
)
_BY_PROVIDER: Final = select(disputes).where(
    disputes.c.provider_account == bindparam("account"), disputes.c.provider_reference == bindparam("theirs")
)
_FIND: Final = select(disputes).where(disputes.c.reference == bindparam("ours"))
#: A payment has one, or a few.
_MOST_OF_A_PAYMENT: Final = 50
_OF_PAYMENT: Final = (
    select(disputes)
    .where(disputes.c.payment_id == bindparam("payment_id"))
    .order_by(disputes.c.id)
    .limit(_MOST_OF_A_PAYMENT)
)
_OPEN: Final = (
    select(disputes)
    .where(
        *equal(disputes, "merchant_id", "env"),
        # Spelled out: for a parameter that chooses a partial index, SQLite plans the statement anew each time.
        disputes.c.status == literal_column("'open'"),
    )
    .order_by(disputes.c.evidence_due_at)
    .limit(MOST_OPEN)
)
_UNDECIDED: Final = (
    select(disputes)
    .where(disputes.c.status != "won", disputes.c.borne_by.is_(None))
    .order_by(disputes.c.id)
    .limit(_MOST)
)


_TOLD: Final = (
    *equal(disputes, "merchant_id", "env"),
    disputes.c.payment_id.is_not(None),
    disputes.c.status != "prevented",
)


class DisputeFilter(Record, frozen=True):
    """What `GET /disputes` may filter on."""

    status: ToldStatus | None = None
    payment_reference: str | None = None


async def page(
    db: Database,
    merchant_id: MerchantId,
    env: Environment,
    filters: DisputeFilter,
    bounds: PageBounds,
) -> tuple[list[Dispute], int]:
    """One page of those that the merchant is told, and the exact total. Reads an index range of this merchant's
    disputes, which are few."""
    conditions = {name: value for name, value in msgspec.structs.asdict(filters).items() if value is not None}
    params = {"merchant_id": merchant_id, "env": env, **conditions}
    total: int = (await db.scan(_count(frozenset(conditions)), **params))[0][0]
    after = {} if bounds.after is None else {"after_at": bounds.after.created_at, "after_id": bounds.after.id}
    statement = _page(frozenset(conditions), bool(after), bounds.oldest_first)
    rows = await db.scan(statement, **params, **after, most=bounds.size, skipped=bounds.offset)
    return [Dispute(*row) for row in rows], total


@cache
def _count(filters: frozenset[str]) -> Executable:
    return select(func.count()).select_from(disputes).where(*_TOLD, *_filters(filters))


@cache
def _page(filters: frozenset[str], is_after: bool, oldest_first: bool) -> Executable:
    key = (disputes.c.opened_at, disputes.c.id)
    bound = tuple_(bindparam("after_at"), bindparam("after_id"))
    bounds = [tuple_(*key) > bound if oldest_first else tuple_(*key) < bound] if is_after else []
    return (
        select(disputes)
        .where(*_TOLD, *_filters(filters), *bounds)
        .order_by(*(column.asc() if oldest_first else column.desc() for column in key))
        .limit(bindparam("most"))
        .offset(bindparam("skipped"))
    )


def _filters(names: frozenset[str]) -> list[ColumnElement[bool]]:
    return [disputes.c[name] == bindparam(name) for name in sorted(names)]


async def insert_new(tx: Transaction, dispute: Dispute) -> Dispute | None:
    """The dispute as stored; None when it is known already."""
    return await tx.write_as(Dispute, _INSERT, **values_of(disputes, dispute))


async def close(tx: Transaction, dispute_id: DisputeId, status: DisputeStatus, now: Instant) -> Dispute | None:
    """The bank decided. None when that was recorded before."""
    return await tx.write_as(Dispute, _CLOSE, dispute_id=dispute_id, new_status=status, now=now)


async def charge(tx: Transaction, dispute_id: DisputeId, bearer: Bearer) -> Dispute | None:
    """A person decided who bears a lost or prevented dispute. None when it is neither, or somebody decided before."""
    return await tx.write_as(Dispute, _CHARGE, dispute_id=dispute_id, bearer=bearer)


async def clear(tx: Transaction, dispute_id: DisputeId) -> Dispute | None:
    """A person says that nothing was taken by a prevented dispute. None when somebody decided before."""
    return await tx.write_as(Dispute, _CLEAR, dispute_id=dispute_id)


async def by_provider_reference(db: Reader, provider_account: str, provider_reference: str) -> Dispute | None:
    return await db.one_as(Dispute, _BY_PROVIDER, account=provider_account, theirs=provider_reference)


async def find(db: Reader, reference: str) -> Dispute | None:
    return await db.one_as(Dispute, _FIND, ours=reference)


async def of_payment(db: Reader, payment_id: PaymentId) -> list[Dispute]:
    """The disputes about one payment, oldest first."""
    return [Dispute(*row) for row in await db.all(_OF_PAYMENT, payment_id=payment_id)]


async def open_of(db: Reader, merchant_id: MerchantId, env: Environment) -> list[Dispute]:
    """The merchant's open disputes, the one that must be answered first before the others, at most 200."""
    return [Dispute(*row) for row in await db.all(_OPEN, merchant_id=merchant_id, env=env)]


async def undecided(db: Database) -> list[Dispute]:
    """Open disputes, and lost or prevented ones that nobody bears yet, oldest first, at most 500. Reads the table: it
    is short."""
    return [Dispute(*row) for row in await db.scan(_UNDECIDED)]
