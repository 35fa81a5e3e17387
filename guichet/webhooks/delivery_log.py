"""The log of webhook deliveries: what merchants and the staff read of their table (`webhooks/deliveries.py`)."""

import json
from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, func, literal_column, select

from guichet.clock import Instant
from guichet.db.engine import Database, Reader
from guichet.db.lists.pages import ListScope, PageBounds, count_since, read_page
from guichet.db.queues.work_queue import PENDING
from guichet.db.sql_functions import is_listed
from guichet.db.tables import events, payments, webhook_deliveries
from guichet.domain.events import Delivery, DeliveryStatus, EventName
from guichet.domain.ids import MerchantId, PaymentId
from guichet.domain.merchants import Environment
from guichet.domain.records import Record
from guichet.webhooks.deliveries import OF_MERCHANT

#: A payment has a handful; its disputes may add a few.
_MOST_OF_A_PAYMENT: Final = 200
_OF_PAYMENT: Final = (
    select(webhook_deliveries)
    .where(*OF_MERCHANT, webhook_deliveries.c.payment_id == bindparam("payment_id"))
    .order_by(webhook_deliveries.c.created_at.desc(), webhook_deliveries.c.id.desc())
    .limit(_MOST_OF_A_PAYMENT)
)
_BY_REFERENCE: Final = (
    select(webhook_deliveries)
    .join(events, events.c.id == webhook_deliveries.c.id)
    .where(
        events.c.merchant_id == bindparam("merchant_id"),
        events.c.env == bindparam("environment"),
        events.c.reference == bindparam("reference"),
    )
)
_PAYMENT_REFERENCES: Final = select(payments.c.id, payments.c.reference).where(is_listed(payments.c.id, "ids"))

#: Through the index of retries, in its words: `env` in a form that no other index answers.
_RETRIED: Final = select(func.count()).select_from(
    select(webhook_deliveries.c.id)
    .where(
        webhook_deliveries.c.merchant_id == bindparam("merchant_id"),
        func.coalesce(webhook_deliveries.c.env, "") == bindparam("environment"),
        webhook_deliveries.c.status == PENDING,
        webhook_deliveries.c.attempts > literal_column("0"),
    )
    .limit(bindparam("most"))
    .subquery()
)
#: More are not counted one by one.
MOST_RETRIED: Final = 1000


class DeliveryFilter(Record, frozen=True):
    """What `GET /webhooks/deliveries` may filter on. `payment_id`: the deliveries about this payment and its refund;
    bounds are inclusive Instants."""

    status: DeliveryStatus | None = None
    event: EventName | None = None
    payment_id: PaymentId | None = None
    since: Instant | None = None
    until: Instant | None = None

    def admits(self, delivery: Delivery) -> bool:
        return (
            self.status in (None, delivery.status)
            and self.event in (None, delivery.event)
            and (self.since is None or self.since <= delivery.created_at)
            and (self.until is None or delivery.created_at <= self.until)
        )


async def page(
    db: Database,
    merchant_id: MerchantId,
    env: Environment,
    bounds: PageBounds,
    filters: DeliveryFilter | None = None,
) -> tuple[list[Delivery], int]:
    """One page and the exact total, at the cost described in `db/lists/pages.py`."""
    filters = filters or DeliveryFilter()
    if filters.payment_id is None:
        scope = ListScope(merchant_id, env, filters.status, filters.event)
        rows, total = await read_page(db, webhook_deliveries, scope, bounds, filters.since, filters.until)
        return [Delivery(*row) for row in rows], total
    rows = await db.all(_OF_PAYMENT, merchant_id=merchant_id, environment=env, payment_id=filters.payment_id)
    newest_first = [delivery for delivery in (Delivery(*row) for row in rows) if filters.admits(delivery)]
    return bounds.of(newest_first[::-1] if bounds.oldest_first else newest_first), len(newest_first)


async def failed_since(db: Database, merchant_id: MerchantId, env: Environment, since: Instant) -> int:
    """How many deliveries of events since then have failed for good. Cost: `db/lists/pages.py`."""
    return await count_since(db, webhook_deliveries, ListScope(merchant_id, env, "failed"), since)


async def retried(db: Reader, merchant_id: MerchantId, env: Environment) -> int:
    """How many failed deliveries wait for another attempt; no more than MOST_RETRIED are counted."""
    row = await db.one(_RETRIED, merchant_id=merchant_id, environment=env, most=MOST_RETRIED)
    return row[0] if row is not None else 0


async def by_reference(db: Reader, merchant_id: MerchantId, env: Environment, reference: str) -> Delivery | None:
    """`reference` must be a UUID."""
    return await db.one_as(Delivery, _BY_REFERENCE, merchant_id=merchant_id, environment=env, reference=reference)


async def payment_references(db: Reader, deliveries: Sequence[Delivery]) -> dict[PaymentId, str]:
    """The references of the payments that these deliveries are about."""
    ids = sorted({delivery.payment_id for delivery in deliveries if delivery.payment_id is not None})
    if not ids:
        return {}
    return dict(await db.all(_PAYMENT_REFERENCES, ids=json.dumps(ids)))
