"""Refunds: SQL and row mapping. A unique constraint allows one refund for each payment."""

import json
from collections.abc import Collection, Mapping
from typing import Final

from sqlalchemy import bindparam, or_, select, update

from guichet.clock import Instant
from guichet.db.engine import Database, Reader, Transaction, require
from guichet.db.lists.pages import ListScope, PageBounds, read_page
from guichet.db.references import new_reference
from guichet.db.sql_functions import is_listed, new_row, upsert, values_of
from guichet.db.tables import refunds
from guichet.domain.ids import MerchantId, PaymentId, RefundId
from guichet.domain.merchants import Environment
from guichet.domain.payments import AutomaticReason, Payment, Refund, RefundStatus, Settlement
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
_TARGET: Final = bindparam("target", type_=refunds.c.status.type)
_FINISH: Final = (
    update(refunds)
    .where(
        refunds.c.id == bindparam("refund_id"),
        refunds.c.status == "pending",
        # The refusal of an older request, by a process that was held up, ends nothing while a newer one is on its way.
        or_(_TARGET == "succeeded", refunds.c.request_number == bindparam("ended_request")),
    )
    .values(
        status=_TARGET,
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
    bounds: PageBounds,
) -> tuple[list[Refund], int]:
    """One page and the exact total, at the cost described in `db/lists/pages.py`."""
    scope = ListScope(merchant_id, env, filters.status)
    rows, total = await read_page(db, refunds, scope, bounds, filters.since, filters.until)
    return [Refund(*row) for row in rows], total


async def finish(tx: Transaction, settlements: Mapping[RefundId, Settlement]) -> dict[RefundId, Refund]:
    """The refunds that made their transition; one that was no longer pending, or is requested anew, is missing."""
    rows = [
        {
            "refund_id": refund_id,
            "ended_request": require(settlement.refund).request_number,
            "target": settlement.transition.target,
            "now": settlement.now,
            "reason": settlement.failure_reason,
        }
        for refund_id, settlement in sorted(settlements.items())
    ]
    refunds = [Refund(*row) for row in await tx.write_many(_FINISH, rows)]
    return {refund.id: refund for refund in refunds}
