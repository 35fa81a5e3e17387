"""Refunds: statements and row mapping. The unique constraint on the payment allows one refund, ever."""

from collections.abc import Collection, Sequence
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
    refunds.c.reference == bindparam("reference"), refunds.c.provider_account == bindparam("provider_account")
)
_BY_PROVIDER_REFERENCE: Final = select(refunds).where(
    refunds.c.provider_account == bindparam("provider_account"),
    refunds.c.provider_reference == bindparam("provider_reference"),
)
_PENDING: Final = (refunds.c.id == bindparam("refund_id"), refunds.c.status == "pending")
_FINISH: Final = (
    update(refunds)
    .where(*_PENDING)
    .values(
        status=bindparam("target"),
        processed_at=bindparam("now"),
        failure_reason=bindparam("reason"),
        next_poll_at=None,
        lease_expires_at=None,
    )
    .returning(*refunds.c)
)
_SENDING: Final = (
    update(refunds)
    .where(*_PENDING, refunds.c.sent_at.is_(None))
    .values(sent_at=bindparam("now"), provider_account=bindparam("new_provider_account"))
    .returning(*refunds.c)
)
_NOT_SENT: Final = (
    update(refunds)
    .where(*_PENDING)
    .values(
        sent_at=None, next_poll_at=bindparam("next_due"), poll_count=refunds.c.poll_count + 1, lease_expires_at=None
    )
)
_TAKEN: Final = (
    update(refunds)
    .where(*_PENDING)
    .values(
        provider_reference=bindparam("new_ref"),
        provider_data=bindparam("new_memo"),
        next_poll_at=bindparam("next_due"),
        lease_expires_at=None,
    )
)
_ASK_LATER: Final = (
    update(refunds)
    .where(*_PENDING)
    .values(next_poll_at=bindparam("next_due"), poll_count=refunds.c.poll_count + 1, lease_expires_at=None)
)
_LEASE: Final = (
    update(refunds)
    .where(*_PENDING, or_(refunds.c.lease_expires_at.is_(None), refunds.c.lease_expires_at <= bindparam("now")))
    .values(lease_expires_at=bindparam("until"))
    .returning(*refunds.c)
)
_QUEUE: Final = WorkQueue(
    refunds, "next_poll_at", ("provider_account",), {}, tuple(refunds.c), lambda row: Refund(*row)
)


async def insert_new(tx: Transaction, refund: Refund) -> int | None:
    """The new refund's id; None when the payment has one already."""
    row = await tx.write(_INSERT, **{name: getattr(refund, name) for name in _NEW_COLUMNS})
    return row[0] if row else None


async def by_reference(db: Reader, merchant_id: int, env: str, reference: str) -> Refund | None:
    """`reference` must be a UUID."""
    return _refund(await db.one(_BY_REFERENCE, merchant_id=merchant_id, env=env, reference=reference))


async def by_id(db: Reader, refund_id: int) -> Refund | None:
    return _refund(await db.one(_BY_ID, id=refund_id))


async def by_callback_reference(db: Reader, provider_account: str, reference: str) -> Refund | None:
    """`reference` must be a UUID. An operator does not say whose refund it is; references are unique anyway."""
    return _refund(await db.one(_BY_CALLBACK_REFERENCE, provider_account=provider_account, reference=reference))


async def by_provider_reference(db: Reader, provider_account: str, provider_reference: str) -> Refund | None:
    return _refund(
        await db.one(_BY_PROVIDER_REFERENCE, provider_account=provider_account, provider_reference=provider_reference)
    )


async def page(db: Database, merchant_id: int, env: str, limit: int, offset: int) -> tuple[list[Refund], int]:
    """One page, newest first, and the exact total, at the flat cost described in `counts.py`."""
    rows, total = await counts.page(db, refunds, counts.Scope("refunds", merchant_id, env), limit, offset)
    return [Refund(*row) for row in rows], total


async def finish(
    tx: Transaction, refund_id: int, target: str, now: Instant, failure_reason: str | None = None
) -> Refund | None:
    """The conditional transition; None when the refund was no longer pending."""
    return _refund(await tx.write(_FINISH, refund_id=refund_id, target=target, now=now, reason=failure_reason))


async def mark_sending(db: Database, refund_id: int, provider_account: str, now: Instant) -> Refund | None:
    """Before the first byte leaves; None when it was already sent or is final."""
    return _refund(await db.write(_SENDING, refund_id=refund_id, new_provider_account=provider_account, now=now))


async def mark_not_sent(db: Database, refund_id: int, next_poll_at: Instant) -> None:
    """The operator provably did not take it: it may be sent again at `next_poll_at`."""
    await db.write(_NOT_SENT, refund_id=refund_id, next_due=next_poll_at)


async def mark_taken(
    db: Database, refund_id: int, provider_reference: str | None, memo: str | None, next_poll_at: Instant
) -> None:
    await db.write(_TAKEN, refund_id=refund_id, new_ref=provider_reference, new_memo=memo, next_due=next_poll_at)


async def schedule_next_poll(db: Database, refund_id: int, next_poll_at: Instant) -> None:
    await db.write(_ASK_LATER, refund_id=refund_id, next_due=next_poll_at)


async def lease(db: Database, refund_id: int, now: Instant, until: Instant) -> Refund | None:
    """The right to work on a pending refund until `until`; None when somebody else has it, or it is final."""
    return _refund(await db.write(_LEASE, refund_id=refund_id, now=now, until=until))


async def claim_due(
    db: Database, now: Instant, until: Instant, most: int, saturated: Sequence[Collection[str]] = ()
) -> Claim[Refund]:
    """Up to `most` refunds to work on; they come back at `until` if this process dies. `saturated`: provider accounts
    that take none now; "" stands for those that were not sent yet. Cost: see `db/work_queue.py`."""
    return await _QUEUE.claim(db, now, until, most, saturated)


def _refund(row: Row | None) -> Refund | None:
    return Refund(*row) if row is not None else None
