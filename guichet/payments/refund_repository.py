"""Refunds: statements and row mapping. The unique constraint on the payment allows one refund, ever."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from guichet.clock import Instant
from guichet.db import list_counts as counts
from guichet.db.engine import Database, Reader, Row, Transaction
from guichet.db.tables import refunds
from guichet.db.work_queue import Claim, WorkQueue
from guichet.domain.payments import Refund

_NEW_COLUMNS: Final = [column.name for column in refunds.c if column.name != "id"]
_INSERT: Final = (
    upsert(refunds)
    .values({name: bindparam(name) for name in _NEW_COLUMNS})
    .on_conflict_do_nothing()
    .returning(refunds.c.id)
)
_MINE: Final = (refunds.c.merchant_id == bindparam("merchant_id"), refunds.c.env == bindparam("env"))
_BY_REFERENCE: Final = select(refunds).where(*_MINE, refunds.c.reference == bindparam("reference"))
_BY_ID: Final = select(refunds).where(refunds.c.id == bindparam("id"))
_BY_CALLBACK_REFERENCE: Final = select(refunds).where(
    refunds.c.reference == bindparam("reference"), refunds.c.connection == bindparam("connection")
)
_BY_PROVIDER_REF: Final = select(refunds).where(
    refunds.c.connection == bindparam("connection"), refunds.c.provider_ref == bindparam("provider_ref")
)
_PENDING: Final = (refunds.c.id == bindparam("refund_id"), refunds.c.status == "pending")
_FINISH: Final = (
    update(refunds)
    .where(*_PENDING)
    .values(
        status=bindparam("target"),
        processed_at=bindparam("now"),
        failure=bindparam("reason"),
        due_at=None,
        leased_until=None,
    )
    .returning(*refunds.c)
)
_MARK_SENT: Final = (
    update(refunds)
    .where(*_PENDING, refunds.c.sent_at.is_(None))
    .values(sent_at=bindparam("now"), connection=bindparam("new_connection"))
    .returning(*refunds.c)
)
_MARK_NOT_SENT: Final = (
    update(refunds)
    .where(*_PENDING)
    .values(sent_at=None, due_at=bindparam("next_due"), asked=refunds.c.asked + 1, leased_until=None)
)
_RECORD_ACCEPTANCE: Final = (
    update(refunds)
    .where(*_PENDING)
    .values(
        provider_ref=bindparam("new_ref"),
        provider_memo=bindparam("new_memo"),
        due_at=bindparam("next_due"),
        leased_until=None,
    )
)
_SCHEDULE_NEXT_POLL: Final = (
    update(refunds).where(*_PENDING).values(due_at=bindparam("next_due"), asked=refunds.c.asked + 1, leased_until=None)
)
_LEASE: Final = (
    update(refunds)
    .where(*_PENDING, or_(refunds.c.leased_until.is_(None), refunds.c.leased_until <= bindparam("now")))
    .values(leased_until=bindparam("until"))
    .returning(*refunds.c)
)
_QUEUE: Final = WorkQueue(refunds, ("connection",), {}, tuple(refunds.c), lambda row: Refund(*row))


async def insert_new(tx: Transaction, refund: Refund) -> int | None:
    """The new refund's id; None when the payment has one already."""
    row = await tx.write(_INSERT, **{name: getattr(refund, name) for name in _NEW_COLUMNS})
    return row[0] if row else None


async def by_reference(db: Reader, merchant_id: int, env: str, reference: str) -> Refund | None:
    """`reference` must be a UUID."""
    return _refund(await db.one(_BY_REFERENCE, merchant_id=merchant_id, env=env, reference=reference))


async def by_id(db: Reader, refund_id: int) -> Refund | None:
    return _refund(await db.one(_BY_ID, id=refund_id))


async def by_callback_reference(db: Reader, connection: str, reference: str) -> Refund | None:
    """`reference` must be a UUID. An operator does not say whose refund it is; references are unique anyway."""
    return _refund(await db.one(_BY_CALLBACK_REFERENCE, connection=connection, reference=reference))


async def by_provider_ref(db: Reader, connection: str, provider_ref: str) -> Refund | None:
    return _refund(await db.one(_BY_PROVIDER_REF, connection=connection, provider_ref=provider_ref))


async def page(db: Database, merchant_id: int, env: str, limit: int, offset: int) -> tuple[list[Refund], int]:
    """One page, newest first, and the exact total, at the flat cost described in `counts.py`."""
    rows, total = await counts.page(db, refunds, counts.Scope("refunds", merchant_id, env), limit, offset)
    return [Refund(*row) for row in rows], total


@dataclass(frozen=True, slots=True)
class Finish:
    """A conditional transition of one pending refund to its final status."""

    refund_id: int
    target: str
    now: Instant
    failure_reason: str | None


async def finish(tx: Transaction, transitions: Sequence[Finish]) -> list[Refund]:
    """The refunds that made their transition, in no order; one that was no longer pending is missing."""
    rows = [
        {"refund_id": each.refund_id, "target": each.target, "now": each.now, "reason": each.failure_reason}
        for each in transitions
    ]
    return [Refund(*row) for row in await tx.execute_many_returning(_FINISH, rows)]


async def mark_sent(db: Database, refund_id: int, connection: str, now: Instant) -> Refund | None:
    """Called before the first byte leaves. None when the refund was already sent, or is final."""
    return _refund(await db.write(_MARK_SENT, refund_id=refund_id, new_connection=connection, now=now))


async def mark_not_sent(db: Database, refund_id: int, due_at: Instant) -> None:
    """The provider provably did not process it: it may be sent again at `due_at`."""
    await db.write(_MARK_NOT_SENT, refund_id=refund_id, next_due=due_at)


async def record_acceptance(
    db: Database, refund_id: int, provider_ref: str | None, memo: str | None, due_at: Instant
) -> None:
    await db.write(_RECORD_ACCEPTANCE, refund_id=refund_id, new_ref=provider_ref, new_memo=memo, next_due=due_at)


async def schedule_next_poll(db: Database, refund_id: int, due_at: Instant) -> None:
    await db.write(_SCHEDULE_NEXT_POLL, refund_id=refund_id, next_due=due_at)


async def lease(db: Database, refund_id: int, now: Instant, until: Instant) -> Refund | None:
    """The right to work on a pending refund until `until`; None when somebody else has it, or it is final."""
    return _refund(await db.write(_LEASE, refund_id=refund_id, now=now, until=until))


async def claim_due(
    db: Database, now: Instant, until: Instant, most: int, saturated: Sequence[Collection[str]] = ()
) -> Claim[Refund]:
    """Claims up to `most` refunds to work on; they are due again at `until` if this process dies.

    `saturated`: provider accounts that take none now; "" stands for refunds that were not sent yet. Cost: see
    `db/work_queue.py`.
    """
    return await _QUEUE.claim(db, now, until, most, saturated)


def _refund(row: Row | None) -> Refund | None:
    return Refund(*row) if row is not None else None
