"""Pending payments in the database: what the call that initiated one brought, who may poll it, and when next."""

from typing import Any, Final

from msgspec import structs
from sqlalchemy import BigInteger, ColumnElement, Table, Update, and_, bindparam, case, or_, update

from guichet.clock import Instant, earlier
from guichet.db.engine import Database, GroupedWrite, require
from guichet.db.queues.work_queue import WorkQueue, is_still_pending
from guichet.db.tables import payments
from guichet.domain.ids import PaymentId
from guichet.domain.payments import Payment
from guichet.payments.repository import by_id, from_row


def _grouped(statement: Update) -> GroupedWrite:
    """A change of the payment `payment_id`, which returns nothing, its id or the whole row."""
    return GroupedWrite(statement, "payment_id")


_CHANGE_PENDING: Final = update(payments).where(payments.c.id == bindparam("payment_id"), is_still_pending(payments))
_RECORD_INITIATION: Final = _grouped(
    _CHANGE_PENDING.values(
        provider_account=bindparam("new_account"),
        provider_reference=bindparam("new_ref"),
        provider_data=bindparam("new_data"),
        redirect_url=bindparam("new_redirect"),
        next_poll_at=bindparam("next_due"),
        lease_expires_at=None,
        not_found_count=0,
        not_found_duration=0,
    ).returning(payments.c.id)
)
_SWITCH: Final = _CHANGE_PENDING.values(
    provider_account=bindparam("new_account"),
    account_fingerprint=bindparam("new_fingerprint"),
    lease_expires_at=bindparam("until"),
).returning(*payments.c)
_RECORD_LOST_INITIATION: Final = _grouped(
    _CHANGE_PENDING.values(
        next_poll_at=bindparam("next_due"), initiation_ended_at=bindparam("now"), lease_expires_at=None
    )
)
_RECORD_ANSWERED_PENDING: Final = _CHANGE_PENDING.values(answered_pending=True)
_NOT_FOUND: Final[dict[str, Any]] = {
    "not_found_count": bindparam("not_found"),
    "not_found_duration": bindparam("not_found_for"),
}
_SCHEDULE_NEXT_POLL: Final = _grouped(
    _CHANGE_PENDING.values(
        next_poll_at=bindparam("next_due"), poll_count=payments.c.poll_count + 1, lease_expires_at=None, **_NOT_FOUND
    )
)
_END_LEASE: Final = _grouped(_CHANGE_PENDING.values(lease_expires_at=None, **_NOT_FOUND))


def is_free(rows: Table) -> ColumnElement[bool]:
    """Nobody holds the lease of this payment or refund."""
    return or_(rows.c.lease_expires_at.is_(None), rows.c.lease_expires_at <= bindparam("now"))


def was_not_asked(rows: Table) -> ColumnElement[bool]:
    """No provider was asked about it after `asked_before`. An instant after now means that the clock was set back."""
    return or_(
        rows.c.asked_at.is_(None), rows.c.asked_at <= bindparam("asked_before"), rows.c.asked_at > bindparam("now")
    )


_LEASE: Final = _grouped(
    _CHANGE_PENDING.where(is_free(payments), was_not_asked(payments))
    .values(lease_expires_at=bindparam("until"), asked_at=bindparam("now"))
    .returning(*payments.c)
)
_MAY_LEASE: Final = and_(payments.c.env == "live", is_free(payments))
#: Payments to poll, by provider account. The claim of a live payment is its lease at the same time, unless somebody
#: polls it now (`is_leased_by_claim`). It then ends a microsecond before the claim, as no other lease does.
QUEUE: Final = WorkQueue(
    payments,
    "next_poll_at",
    "provider_account",
    lambda row: Payment(*row),
    values={
        "lease_expires_at": case(
            (_MAY_LEASE, bindparam("until", type_=BigInteger) - 1), else_=payments.c.lease_expires_at
        ),
        "asked_at": case((_MAY_LEASE, bindparam("now", type_=BigInteger)), else_=payments.c.asked_at),
    },
)


async def switch_provider_account(
    db: Database, payment: Payment, provider_account: str, fingerprint: str | None, until: Instant
) -> Payment | None:
    """Stores the next account of the route, before it is called. None when the payment is final already: then no
    provider may be called."""
    return await db.write_as(
        Payment, _SWITCH, payment_id=payment.id, new_account=provider_account, new_fingerprint=fingerprint, until=until
    )


async def record_initiation(
    db: Database,
    payment: Payment,
    *,
    provider_reference: str | None,
    provider_data: str | None,
    redirect_url: str | None,
    next_poll_at: Instant,
) -> Payment | None:
    """Stores what the provider returned and ends the lease. The payment with it, otherwise as the caller knows it; None
    when it is no longer pending."""
    values = {
        "payment_id": payment.id,
        "new_account": payment.provider_account,
        "new_ref": provider_reference,
        "new_data": provider_data,
        "new_redirect": redirect_url,
        "next_due": next_poll_at,
    }
    if await db.write_grouped(_RECORD_INITIATION, values) is None:
        return None
    return structs.replace(
        payment,
        provider_reference=provider_reference,
        provider_data=provider_data,
        redirect_url=redirect_url,
        next_poll_at=next_poll_at,
        lease_expires_at=None,
        not_found_count=0,
        not_found_duration=0,
    )


async def record_lost_initiation(db: Database, payment_id: PaymentId, now: Instant, next_poll_at: Instant) -> None:
    """The call that initiated the debit ended at `now` without an answer: ends the lease and sets the first poll."""
    await db.write_grouped(_RECORD_LOST_INITIATION, {"payment_id": payment_id, "now": now, "next_due": next_poll_at})


async def record_answered_pending(db: Database, payment: Payment) -> Payment:
    """A repeated request is answered with this payment while its initiation runs: a refusal must be told by a webhook.
    Returns the payment as it is stored afterwards, which may be final now."""
    await db.write(_RECORD_ANSWERED_PENDING, payment_id=payment.id)
    return require(await by_id(db, payment.id))


async def schedule_next_poll(db: Database, payment: Payment, next_poll_at: Instant) -> None:
    """Counts a poll that brought no final result, ends the lease and sets the next poll. Stores the payment's
    `not_found_…` too."""
    await db.write_grouped(
        _SCHEDULE_NEXT_POLL,
        {
            "payment_id": payment.id,
            "next_due": next_poll_at,
            "not_found": payment.not_found_count,
            "not_found_for": payment.not_found_duration,
        },
    )


async def end_lease(db: Database, payment: Payment) -> None:
    """Ends the lease after an unscheduled poll without a final result; the time of the scheduled poll stays. Stores the
    payment's `not_found_…` too."""
    await db.write_grouped(
        _END_LEASE,
        {
            "payment_id": payment.id,
            "not_found": payment.not_found_count,
            "not_found_for": payment.not_found_duration,
        },
    )


async def lease(
    db: Database, payment_id: PaymentId, now: Instant, until: Instant, asked_before: Instant
) -> Payment | None:
    """Takes the exclusive right to poll a payment until `until`, and notes that it is asked about now.

    None if another has that right, if it was asked about after `asked_before`, or if it is final.
    """
    row = await db.write_grouped(
        _LEASE, {"payment_id": payment_id, "now": now, "until": until, "asked_before": asked_before}
    )
    return from_row(row)


def is_leased_by_claim(claimed: Payment, now: Instant) -> bool:
    """Whether the claim that returned this payment took the right to poll it, and that still holds `now`: a process may
    have stood still since."""
    lease_ends = claimed.lease_expires_at
    return claimed.next_poll_at is not None and lease_ends == earlier(claimed.next_poll_at, 1) and now < lease_ends
