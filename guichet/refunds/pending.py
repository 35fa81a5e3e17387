"""Pending refunds in the database: what was sent for one, what it waits for, who may work on it, and when next."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, func, select, update

from guichet.clock import Instant
from guichet.db.engine import Database, Transaction, Writer
from guichet.db.queues.work_queue import WorkQueue
from guichet.db.tables import refunds
from guichet.domain.ids import RefundId
from guichet.domain.payments import Refund
from guichet.payments.pending import is_free, was_not_asked

_CHANGE_PENDING: Final = update(refunds).where(refunds.c.id == bindparam("refund_id"), refunds.c.status == "pending")
_CHANGE_UNSENT: Final = _CHANGE_PENDING.where(refunds.c.sent_at.is_(None))
_MARK_SENT: Final = _CHANGE_UNSENT.values(
    sent_at=bindparam("now"),
    provider_account=bindparam("new_account"),
    account_fingerprint=bindparam("new_fingerprint"),
    provider_data=bindparam("new_data"),
    payee_number=func.coalesce(bindparam("new_payee", type_=refunds.c.payee_number.type), refunds.c.payee_number),
    not_found_count=0,
    not_found_duration=0,
).returning(*refunds.c)
_START_NEXT_REQUEST: Final = (
    _CHANGE_PENDING.where(refunds.c.request_number == bindparam("ended_request"))
    .values(
        sent_at=None,
        provider_reference=None,
        provider_data=None,
        request_number=refunds.c.request_number + 1,
        float_empty_accounts=bindparam("empty_accounts"),
        ambiguous_code=bindparam("new_code"),
        next_poll_at=bindparam("next_due"),
    )
    .returning(*refunds.c)
)
_WAIT_FOR_FLOAT: Final = _CHANGE_UNSENT.values(
    float_empty_accounts=bindparam("empty_accounts"), next_poll_at=bindparam("next_due"), lease_expires_at=None
)
_WAIT_FOR_PAYEE: Final = (
    _CHANGE_UNSENT.where(refunds.c.payee_number.is_(None))
    .values(float_empty_accounts=None, next_poll_at=bindparam("next_due"), lease_expires_at=None)
    .returning(refunds.c.id)
)
_CONFIRM_PAYEE: Final = _CHANGE_UNSENT.values(
    payee_number=bindparam("payee"), next_poll_at=bindparam("now"), lease_expires_at=None
).returning(*refunds.c)
#: For an account's balance.
_WAITING: Final = select(refunds.c.id).where(
    refunds.c.float_empty_accounts.is_not(None),
    refunds.c.float_empty_accounts.like(bindparam("account_between_commas")),
    refunds.c.status == "pending",
)
_OLDER_WAITS: Final = _WAITING.where(refunds.c.id < bindparam("refund_id")).limit(1)
#: The oldest. One that is locked is being worked on already.
_NEXT_IN_LINE: Final = (
    _WAITING.where(refunds.c.sent_at.is_(None))
    .order_by(refunds.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("next_in_line")
)
_WAKE: Final = update(refunds).where(refunds.c.id.in_(select(_NEXT_IN_LINE.c.id))).values(next_poll_at=bindparam("now"))
_MARK_HELD: Final = _CHANGE_PENDING.where(refunds.c.held.is_(False)).values(held=True).returning(*refunds.c)
#: Unless another process has had the lease since: it may have sent a request.
_MARK_NOT_SENT: Final = _CHANGE_PENDING.where(refunds.c.asked_at == bindparam("leased_at")).values(
    sent_at=None, next_poll_at=bindparam("next_due"), poll_count=refunds.c.poll_count + 1, lease_expires_at=None
)
_RECORD_ACCEPTANCE: Final = _CHANGE_PENDING.where(
    refunds.c.provider_reference.is_not_distinct_from(bindparam("known_ref", type_=refunds.c.provider_reference.type))
).values(
    provider_reference=bindparam("new_ref"),
    provider_data=bindparam("new_data"),
    float_empty_accounts=None,
    ambiguous_code=func.coalesce(bindparam("new_code", type_=refunds.c.ambiguous_code.type), refunds.c.ambiguous_code),
    next_poll_at=bindparam("next_due"),
    lease_expires_at=None,
    not_found_count=0,
    not_found_duration=0,
)
_SCHEDULE_NEXT_POLL: Final = _CHANGE_PENDING.values(
    float_empty_accounts=None,
    next_poll_at=bindparam("next_due"),
    poll_count=refunds.c.poll_count + 1,
    lease_expires_at=None,
    not_found_count=bindparam("not_found"),
    not_found_duration=bindparam("not_found_for"),
)
_LEASE: Final = (
    _CHANGE_PENDING.where(is_free(refunds), was_not_asked(refunds))
    .values(lease_expires_at=bindparam("until"), asked_at=bindparam("now"))
    .returning(*refunds.c)
)
_END_LEASE: Final = _CHANGE_PENDING.values(lease_expires_at=None)
#: Refunds to work on, by provider account; "" is that of refunds that were not sent yet.
QUEUE: Final = WorkQueue(refunds, "next_poll_at", "provider_account", lambda row: Refund(*row))


async def mark_sent(
    db: Database,
    refund_id: RefundId,
    *,
    provider_account: str,
    fingerprint: str | None,
    provider_data: str | None,
    payee_number: str | None = None,
    now: Instant,
) -> Refund | None:
    """Marks a refund as sent, before the request is sent. None when it is already marked, or final.

    `payee_number`: the number of a payout; None keeps what is stored. A refund that waited for a balance keeps its
    place before newer ones until its request is answered.
    """
    return await db.write_as(
        Refund,
        _MARK_SENT,
        refund_id=refund_id,
        new_account=provider_account,
        new_fingerprint=fingerprint,
        new_data=provider_data,
        new_payee=payee_number,
        now=now,
    )


async def start_next_request(
    db: Database,
    refund: Refund,
    next_poll_at: Instant,
    *,
    empty_account: str | None = None,
    ambiguous_code: str | None = None,
) -> Refund | None:
    """The current request moved nothing, and never will: the refund waits until `next_poll_at` for a new one. Keeps the
    lease. `empty_account`: the account whose balance was empty. None when the refund is final, or has a new request
    already."""
    return await db.write_as(
        Refund,
        _START_NEXT_REQUEST,
        refund_id=refund.id,
        ended_request=refund.request_number,
        empty_accounts=f",{empty_account}," if empty_account else None,
        new_code=ambiguous_code,
        next_due=next_poll_at,
    )


async def wait_for_float(
    db: Database, refund_id: RefundId, provider_accounts: Sequence[str], next_poll_at: Instant
) -> None:
    """A refund that was not sent waits for the balance of these accounts until `next_poll_at`. Ends the lease."""
    accounts = f",{','.join(provider_accounts)},"
    await db.write(_WAIT_FOR_FLOAT, refund_id=refund_id, empty_accounts=accounts, next_due=next_poll_at)


async def wait_for_payee(writer: Writer, refund_id: RefundId, next_poll_at: Instant) -> bool:
    """A refund that was not sent waits until `next_poll_at` for a person to confirm its payee. Ends the lease. False
    when the payee was confirmed meanwhile, or the refund is final: then nothing changed."""
    return await writer.write(_WAIT_FOR_PAYEE, refund_id=refund_id, next_due=next_poll_at) is not None


async def confirm_payee(writer: Writer, refund_id: RefundId, payee_number: str, now: Instant) -> Refund | None:
    """Stores the number, and makes the refund due; None when it was sent already, or is final."""
    return await writer.write_as(Refund, _CONFIRM_PAYEE, refund_id=refund_id, payee=payee_number, now=now)


async def has_older_pending_refund(db: Database, refund_id: RefundId, provider_account: str) -> bool:
    """Whether an older refund waits for the balance of this account, or is being paid from it just now: it must be
    paid first.

    Cost: the older refunds that wait for other accounts.
    """
    pattern = f"%,{provider_account},%"
    return await db.one(_OLDER_WAITS, refund_id=refund_id, account_between_commas=pattern) is not None


async def wake_next_in_line(db: Database, provider_account: str, most: int, now: Instant) -> None:
    """Makes the oldest refunds that wait for the balance of this account due, at most so many."""
    await db.write(_WAKE, account_between_commas=f"%,{provider_account},%", most=most, now=now)


async def mark_held(tx: Transaction, refund_id: RefundId) -> Refund | None:
    """For a refund that holds nothing of the wallet yet, and does in this transaction. None when it does already, or is
    final."""
    return await tx.write_as(Refund, _MARK_HELD, refund_id=refund_id)


async def mark_not_sent(db: Database, refund: Refund, next_poll_at: Instant) -> None:
    """Removes the mark, because the provider provably processed nothing; it may be sent again at `next_poll_at`.
    `refund`: as this process leased it. Nothing changes if it was held up for longer than its lease, and another one
    works on the refund since."""
    await db.write(_MARK_NOT_SENT, refund_id=refund.id, leased_at=refund.asked_at, next_due=next_poll_at)


async def record_acceptance(
    db: Database,
    refund: Refund,
    provider_reference: str | None,
    provider_data: str | None,
    next_poll_at: Instant,
    *,
    ambiguous_code: str | None = None,
) -> None:
    """`refund`: as it was when the provider was called. Nothing is stored if another process has stored the provider's
    reference since: this one was held up for longer than its lease, and its answer is about an older call.
    `ambiguous_code`: None keeps what is stored."""
    await db.write(
        _RECORD_ACCEPTANCE,
        refund_id=refund.id,
        known_ref=refund.provider_reference,
        new_ref=provider_reference,
        new_data=provider_data,
        new_code=ambiguous_code,
        next_due=next_poll_at,
    )


async def schedule_next_poll(
    db: Database, refund_id: RefundId, next_poll_at: Instant, not_found: Refund | None = None
) -> None:
    """Counts a poll that brought no final result. `not_found`: the refund with its `not_found_…` as they are to be
    stored; without it they begin again."""
    await db.write(
        _SCHEDULE_NEXT_POLL,
        refund_id=refund_id,
        next_due=next_poll_at,
        not_found=not_found.not_found_count if not_found else 0,
        not_found_for=not_found.not_found_duration if not_found else 0,
    )


async def lease(
    db: Database, refund_id: RefundId, now: Instant, until: Instant, asked_before: Instant
) -> Refund | None:
    """Takes the exclusive right to work on a pending refund until `until`, and notes that it is asked about now.

    None if another has that right, if it was asked about after `asked_before`, or if it is final.
    """
    return await db.write_as(Refund, _LEASE, refund_id=refund_id, now=now, until=until, asked_before=asked_before)


async def end_lease(db: Database, refund_id: RefundId) -> None:
    """Ends the lease of a refund that stays as it was; the time of its next poll stays too."""
    await db.write(_END_LEASE, refund_id=refund_id)
