"""Late results: SQL and row mapping (`domain/late_results.py` explains the stages).

Every change names the stage that it starts from, so that of two processes that found the same thing one changes the row
and posts, and the other does nothing.
"""

from typing import Final

from sqlalchemy import Table, Update, bindparam, delete, select, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Transaction, Writer, require
from guichet.db.queues.work_queue import WorkQueue
from guichet.db.sql_functions import equal
from guichet.db.tables import late_results, payments, refunds
from guichet.domain.ids import LateResultId, PaymentId, RefundId
from guichet.domain.late_results import STATUS_OF_STAGE, LateResult, LateStage
from guichet.domain.money import Hundredths
from guichet.domain.payments import Payment, Refund
from guichet.domain.posting_rules import Movement, Posting
from guichet.late_money import return_repository
from guichet.ledger import postings
from guichet.payments import repository
from guichet.refunds import repository as refund_repository

#: Rows that a list for people shows.
_MOST: Final = 500
_AT_STAGE: Final = (late_results.c.id == bindparam("late_id"), late_results.c.stage == bindparam("from_stage"))
_CHANGE: Final = update(late_results).where(*_AT_STAGE)
_ADVANCE: Final = _CHANGE.values(
    stage=bindparam("to_stage"),
    status=bindparam("to_status"),
    amount=bindparam("found_amount"),
    found_at=bindparam("new_found_at"),
    next_poll_at=bindparam("next_due"),
).returning(*late_results.c)
_POLL_LATER: Final = _CHANGE.values(
    refused_by_provider=bindparam("refused"), asked_count=bindparam("asked"), next_poll_at=bindparam("next_due")
).returning(late_results.c.id)
_STOP_POLLING: Final = delete(late_results).where(*_AT_STAGE).returning(late_results.c.id)
_START_RETURN: Final = _CHANGE.values(
    stage="returning", status="pending", return_reference=bindparam("new_reference"), next_poll_at=None
).returning(*late_results.c)
_OPEN: Final = select(late_results).where(late_results.c.status == "open").order_by(late_results.c.id).limit(_MOST)
_ABOUT: Final = select(late_results).where(
    *equal(late_results, "merchant_id", "subject_type", "subject_id"),
)
_BY_ID: Final = select(late_results).where(late_results.c.id == bindparam("late_id"))
#: Rows on which the worker must act, by provider account.
QUEUE: Final = WorkQueue(late_results, "next_poll_at", "provider_account", lambda row: LateResult(*row))


def _note_poll(table: Table) -> Update:
    return update(table).where(table.c.id == bindparam("subject_id")).values(asked_at=bindparam("now"))


_NOTE_POLL: Final = {"payment": _note_poll(payments), "refund": _note_poll(refunds)}


async def note_poll(db: Writer, late: LateResult, now: Instant) -> None:
    """The subject is asked about now: a callback causes the next poll some seconds later (`payments/outcomes.py`)."""
    await db.write(_NOTE_POLL[late.subject_type], subject_id=late.subject_id, now=now)


async def advance(
    tx: Writer, late: LateResult, stage: LateStage, *, amount: Hundredths | None, now: Instant
) -> LateResult | None:
    """Moves a row on to `stage`, which a person or nobody acts on next. None when another process moved it first."""
    return await tx.write_as(
        LateResult,
        _ADVANCE,
        late_id=late.id,
        from_stage=late.stage,
        to_stage=stage,
        to_status=STATUS_OF_STAGE[stage],
        found_amount=amount,
        new_found_at=late.found_at or now,
        next_due=None,
    )


async def poll_later(db: Database, late: LateResult, next_poll_at: Instant) -> None:
    """Stores when the provider is asked next, and what its answers said so far."""
    await db.write(
        _POLL_LATER,
        late_id=late.id,
        from_stage=late.stage,
        refused=late.refused_by_provider,
        asked=late.asked_count,
        next_due=next_poll_at,
    )


async def stop_polling(db: Database, late: LateResult) -> None:
    """Removes a row about which nothing was found."""
    await db.write(_STOP_POLLING, late_id=late.id, from_stage="asking")


async def start_return(tx: Writer, late: LateResult, reference: str, now: Instant) -> LateResult | None:
    """Late money is to go back to the payer, under `reference`. None when its stage is another one now."""
    row = await tx.write(_START_RETURN, late_id=late.id, from_stage=late.stage, new_reference=reference)
    if row is None:
        return None
    await return_repository.insert_new(tx, late, reference, now)
    return LateResult(*row)


async def still_open(db: Database) -> list[LateResult]:
    """Those that wait for a person, oldest first, at most 500."""
    return [LateResult(*row) for row in await db.scan(_OPEN)]


async def about(db: Reader, subject: Payment | Refund) -> LateResult | None:
    return await db.one_as(
        LateResult,
        _ABOUT,
        merchant_id=subject.merchant_id,
        subject_type=subject.subject_type,
        subject_id=subject.id,
    )


async def subject_of(db: Reader, late: LateResult) -> tuple[Payment | Refund, Payment]:
    """The payment or refund that a row is about, and its payment."""
    if late.subject_type == "payment":
        payment = require(await repository.by_id(db, PaymentId(late.subject_id)))
        return payment, payment
    refund = require(await refund_repository.by_id(db, RefundId(late.subject_id)))
    return refund, require(await repository.by_id(db, refund.payment_id))


async def post(tx: Transaction, late: LateResult, cause: str, entries: list[Posting], now: Instant) -> None:
    """The postings of one change of a late result."""
    movement = Movement(late.merchant_id, late.env, late.currency, cause, late.subject_id, entries, now)
    await postings.post(tx, [movement])


async def by_id(db: Reader, late_id: LateResultId) -> LateResult | None:
    return await db.one_as(LateResult, _BY_ID, late_id=late_id)
