"""Requests that give late money back to the payer: SQL and row mapping."""

from typing import Any, Final

from sqlalchemy import bindparam, func, select, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Writer
from guichet.db.queues.work_queue import WorkQueue
from guichet.db.sql_functions import new_columns, params, upsert
from guichet.db.tables import late_returns
from guichet.domain.ids import LateReturnId
from guichet.domain.late_results import LateResult, LateReturn, ReturnStatus
from guichet.domain.payments import Refund

_NEW_COLUMNS: Final = new_columns(late_returns)
_INSERT: Final = upsert(late_returns).values(params(*_NEW_COLUMNS))
_PENDING: Final = (late_returns.c.id == bindparam("return_id"), late_returns.c.status == "pending")
_CHANGE_UNSENT: Final = update(late_returns).where(*_PENDING, late_returns.c.sent_at.is_(None))
_MARK_SENT: Final = _CHANGE_UNSENT.values(
    sent_at=bindparam("now"), provider_data=bindparam("new_data"), next_poll_at=bindparam("next_due")
).returning(*late_returns.c)
_CHANGE_PENDING: Final = update(late_returns).where(*_PENDING)
_RECORD_ACCEPTANCE: Final = _CHANGE_PENDING.where(
    late_returns.c.provider_reference.is_not_distinct_from(
        bindparam("known_ref", type_=late_returns.c.provider_reference.type)
    )
).values(
    provider_reference=bindparam("new_ref"), provider_data=bindparam("new_data"), next_poll_at=bindparam("next_due")
)
_POLL_LATER: Final = _CHANGE_PENDING.values(next_poll_at=bindparam("next_due"))
_END: Final = _CHANGE_PENDING.values(
    status=bindparam("to_status"),
    provider_reference=func.coalesce(
        bindparam("new_ref", type_=late_returns.c.provider_reference.type), late_returns.c.provider_reference
    ),
    next_poll_at=None,
).returning(late_returns.c.id)
_CANCEL: Final = _CHANGE_UNSENT.values(status="failed", next_poll_at=None).returning(late_returns.c.id)
#: A late result has a few.
_OF: Final = (
    select(late_returns)
    .where(late_returns.c.late_result_id == bindparam("late_id"))
    .order_by(late_returns.c.id)
    .limit(100)
)
#: Requests to send or to ask about, by provider account.
QUEUE: Final = WorkQueue(late_returns, "next_poll_at", "provider_account", lambda row: LateReturn(*row))


async def insert_new(tx: Writer, late: LateResult, reference: str, now: Instant, **sent: Any) -> None:
    """A request that the worker sends at once, unless `sent` says what became of it before."""
    empty: dict[str, Any] = dict.fromkeys(_NEW_COLUMNS)
    row = empty | {
        "merchant_id": late.merchant_id,
        "env": late.env,
        "late_result_id": late.id,
        "reference": reference,
        "provider_account": late.provider_account,
        "status": "pending",
        "requested_at": now,
        "next_poll_at": now,
    }
    await tx.write(_INSERT, **row | sent)


async def insert_sent(tx: Writer, late: LateResult, refund: Refund, now: Instant) -> None:
    """The last request of a failed refund, whose end nobody knows: it is only asked about."""
    await insert_new(
        tx,
        late,
        refund.request_reference,
        now,
        requested_at=refund.created_at,
        sent_at=refund.sent_at or refund.created_at,
        provider_reference=refund.provider_reference,
        provider_data=refund.provider_data,
    )


async def mark_sent(
    db: Database, request: LateReturn, provider_data: str | None, now: Instant, next_poll_at: Instant
) -> LateReturn | None:
    """Marks the request as sent, before it is sent. None when it is marked already, or ended."""
    return await db.write_as(
        LateReturn, _MARK_SENT, return_id=request.id, now=now, new_data=provider_data, next_due=next_poll_at
    )


async def record_acceptance(
    db: Database, request: LateReturn, provider_reference: str | None, provider_data: str | None, next_poll_at: Instant
) -> None:
    """Keeps what the provider returned. `request`: as it was when the provider was called. Nothing is stored if its
    reference was stored since: this answer is about an older call."""
    await db.write(
        _RECORD_ACCEPTANCE,
        return_id=request.id,
        known_ref=request.provider_reference,
        new_ref=provider_reference,
        new_data=provider_data,
        next_due=next_poll_at,
    )


async def poll_later(db: Database, return_id: LateReturnId, next_poll_at: Instant) -> None:
    await db.write(_POLL_LATER, return_id=return_id, next_due=next_poll_at)


async def end(tx: Writer, return_id: LateReturnId, status: ReturnStatus, provider_reference: str | None = None) -> bool:
    """Its final answer came. False when that was recorded before."""
    return await tx.write(_END, return_id=return_id, to_status=status, new_ref=provider_reference) is not None


async def cancel_unsent(tx: Writer, return_id: LateReturnId) -> bool:
    """It will never be sent. False when it was sent, or has ended."""
    return await tx.write(_CANCEL, return_id=return_id) is not None


async def of(db: Reader, late: LateResult) -> list[LateReturn]:
    """Every request about one late result, oldest first."""
    return [LateReturn(*row) for row in await db.all(_OF, late_id=late.id)]
