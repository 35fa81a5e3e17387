"""Refunds: SQL and row mapping. A unique constraint allows one refund for each payment."""

import json
from collections.abc import Collection, Sequence
from typing import Final

from sqlalchemy import bindparam, select, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Transaction
from guichet.db.lists.pages import ListScope, RowKey, read_page
from guichet.db.references import new_reference
from guichet.db.sql_functions import is_listed, new_row, upsert, values_of
from guichet.db.tables import refunds
from guichet.domain.ids import MerchantId, PaymentId, RefundId
from guichet.domain.merchants import Environment
from guichet.domain.payments import AutomaticReason, Payment, Refund, RefundStatus
from guichet.domain.records import Record

_INSERT: Final = upsert(refunds).values(new_row(refunds)).on_conflict_do_nothing().returning(refunds.c.id)
_OF_MERCHANT: Final = (refunds.c.merchant_id == bindparam("merchant_id"), refunds.c.env == bindparam("env"))
_BY_REFERENCE: Final = select(refunds).where(*_OF_MERCHANT, refunds.c.reference == bindparam("reference"))
_BY_ID: Final = select(refunds).where(refunds.c.id == bindparam("id"))
_OF_PAYMENT: Final = select(refunds).where(
    refunds.c.merchant_id == bindparam("merchant_id"), refunds.c.payment_id == bindparam("payment_id")
)
_AUTOMATIC: Final = select(refunds.c.payment_id).where(
    refunds.c.merchant_id == bindparam("merchant_id"),
    is_listed(refunds.c.payment_id, "payment_ids"),
    refunds.c.automatic.is_not(None),
)
_FIND: Final = select(refunds).where(refunds.c.reference == bindparam("reference"))
_FINISH: Final = (
    update(refunds)
    .where(refunds.c.id == bindparam("refund_id"), refunds.c.status == "pending")
    .values(
        status=bindparam("target"),
        processed_at=bindparam("now"),
        failure_reason=bindparam("reason"),
        float_empty_accounts=None,
        next_poll_at=None,
        lease_expires_at=None,
    )
    .returning(*refunds.c)
)


def new_refund(payment: Payment, reason: str, now: Instant, automatic: AutomaticReason | None = None) -> Refund:
    """A refund that is not stored yet, and that holds nothing of the wallet."""
    return Refund(
        id=RefundId(0),
        merchant_id=payment.merchant_id,
        env=payment.env,
        reference=new_reference(now),
        payment_id=payment.id,
        payment_reference=payment.reference,
        amount=payment.total_amount,
        currency=payment.currency,
        status="pending",
        reason=reason,
        created_at=now,
        processed_at=None,
        held=False,
        provider_account=None,
        provider_reference=None,
        provider_data=None,
        failure_reason=None,
        sent_at=None,
        next_poll_at=now,
        poll_count=0,
        lease_expires_at=None,
        automatic=automatic,
    )


async def insert_new(tx: Transaction, refund: Refund) -> RefundId | None:
    """The new refund's id; None when the payment has one already."""
    row = await tx.write(_INSERT, **values_of(refunds, refund))
    return row[0] if row else None


async def by_reference(db: Reader, merchant_id: MerchantId, env: Environment, reference: str) -> Refund | None:
    """`reference` must be a UUID."""
    return await db.one_as(Refund, _BY_REFERENCE, merchant_id=merchant_id, env=env, reference=reference)


async def by_id(db: Reader, refund_id: RefundId) -> Refund | None:
    return await db.one_as(Refund, _BY_ID, id=refund_id)


async def of_payment(db: Reader, merchant_id: MerchantId, payment_id: PaymentId) -> Refund | None:
    """The one refund that the payment can have."""
    return await db.one_as(Refund, _OF_PAYMENT, merchant_id=merchant_id, payment_id=payment_id)


async def automatic_of(db: Reader, merchant_id: MerchantId, payment_ids: Collection[PaymentId]) -> set[PaymentId]:
    """Those of these payments that are, or were, refunded without being asked: the merchant gave nothing for them."""
    if not payment_ids:
        return set()
    rows = await db.all(_AUTOMATIC, merchant_id=merchant_id, payment_ids=json.dumps(sorted(payment_ids)))
    return {row[0] for row in rows}


async def find(db: Reader, reference: str) -> Refund | None:
    """The refund with this reference (a UUID), whoever's it is: for the staff. References are unique."""
    return await db.one_as(Refund, _FIND, reference=reference)


class RefundFilter(Record, frozen=True):
    """What `GET /refunds` may filter on; bounds are inclusive Instants."""

    status: RefundStatus | None = None
    since: Instant | None = None
    until: Instant | None = None

    def admits(self, refund: Refund) -> bool:
        return (
            self.status in (None, refund.status)
            and (self.since is None or self.since <= refund.created_at)
            and (self.until is None or refund.created_at <= self.until)
        )


async def page(
    db: Database,
    merchant_id: MerchantId,
    env: Environment,
    filters: RefundFilter,
    limit: int,
    offset: int,
    *,
    after: RowKey | None = None,
    oldest_first: bool = False,
) -> tuple[list[Refund], int]:
    """One page, newest first unless `oldest_first`, and the exact total, at the cost described in `db/lists/pages.py`.

    `after`: the key of the refund just before the page.
    """
    scope, bounds = ListScope(merchant_id, env, filters.status), (filters.since, filters.until)
    rows, total = await read_page(db, refunds, scope, limit, offset, *bounds, after=after, oldest_first=oldest_first)
    return [Refund(*row) for row in rows], total


class Finish(Record, frozen=True):
    """A conditional transition of one pending refund to its final status."""

    refund_id: RefundId
    target: RefundStatus
    now: Instant
    failure_reason: str | None


async def finish(tx: Transaction, transitions: Sequence[Finish]) -> list[Refund]:
    """The refunds that made their transition, in no order; one that was no longer pending is missing."""
    rows = [
        {
            "refund_id": transition.refund_id,
            "target": transition.target,
            "now": transition.now,
            "reason": transition.failure_reason,
        }
        for transition in transitions
    ]
    return [Refund(*row) for row in await tx.write_many(_FINISH, rows)]
