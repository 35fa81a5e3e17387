"""The outbox: webhooks are written in the transaction of the change they tell of, with their bytes frozen."""

import json
from collections.abc import Collection, Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec import structs
from sqlalchemy import bindparam, select

from guichet.clock import SECOND, Instant, iso, later
from guichet.db.engine import Reader, Transaction
from guichet.db.references import new_reference
from guichet.db.sql_functions import json_numbers
from guichet.db.tables import webhook_endpoints
from guichet.domain.catalogue import Catalogue
from guichet.domain.disputes import Dispute
from guichet.domain.events import (
    PAYMENT_SUCCEEDED,
    REFUND_SUCCEEDED,
    RETRY_DELAYS,
    Delivery,
    DeliveryTarget,
    Endpoint,
    EventName,
)
from guichet.domain.ids import DeliveryId, MerchantId, PaymentId
from guichet.domain.merchants import Environment
from guichet.domain.payments import Payment, Refund
from guichet.domain.records import Record
from guichet.domain.sandbox_scenarios import scenario_of
from guichet.schemas.dispute import DisputeObject, dispute_object
from guichet.schemas.json_codec import encode
from guichet.schemas.notification import WebhookMessageObject
from guichet.schemas.payment import PaymentObject, payment_object
from guichet.schemas.refund import RefundObject, refund_object
from guichet.webhooks import deliveries

ACCOUNT: Final = "account"
CALLBACK: Final = "callback"
#: The events that come late on request, and the attempts that they have behind them: the next one is a minute later.
_OVERTAKEN: Final = (PAYMENT_SUCCEEDED, REFUND_SUCCEEDED)
_LOST_ATTEMPTS: Final = 2
_ENDPOINTS: Final = select(webhook_endpoints).where(
    webhook_endpoints.c.merchant_id.bool_op("IN")(json_numbers(bindparam("ids")))
)


class Event(Record, frozen=True):
    """What happened to a payment, to its refund or by a dispute. `refund` is given for the events `refund.*`, `dispute`
    for `dispute.*`."""

    name: EventName
    payment: Payment
    catalogue: Catalogue
    now: Instant
    refund: Refund | None = None
    dispute: Dispute | None = None


async def emit(tx: Transaction, events: Sequence[Event]) -> None:
    """Queues each event, in this order; none for a merchant without an address.

    The payment's own `callback_url` takes the place of the account endpoint (D32). Address and body are frozen here.
    """
    for_accounts = {event.payment.merchant_id for event in events if event.payment.callback_url is None}
    endpoints = await endpoints_of(tx, for_accounts) if for_accounts else {}
    queued = []
    for event in events:
        payment = event.payment
        target: DeliveryTarget = CALLBACK
        url = payment.callback_url
        if url is None:
            target, url = ACCOUNT, endpoints[payment.merchant_id, payment.env].url
        if url is not None:
            delivery = new_delivery(
                payment.merchant_id,
                payment.env,
                event.name,
                target,
                url,
                _data(event),
                event.now,
                payment_id=payment.id,
            )
            if payment.env == "test" and payment.provider_data is not None:
                delivery = _as_the_scenario_wants(delivery, payment)
            queued.append(delivery)
    await deliveries.insert_new(tx, queued)


async def endpoints_of(
    db: Reader, merchant_ids: Collection[MerchantId]
) -> dict[tuple[MerchantId, Environment], Endpoint]:
    """The endpoints of these merchants, by merchant and environment. Cost: those rows."""
    rows = await db.all(_ENDPOINTS, ids=json.dumps(sorted(merchant_ids)))
    return {(endpoint.merchant_id, endpoint.env): endpoint for endpoint in (Endpoint(*row) for row in rows)}


def _as_the_scenario_wants(delivery: Delivery, payment: Payment) -> Delivery:
    """The new delivery of a test payment; one that is to be overtaken waits as if two attempts had been lost, so that
    the payment's later events do not wait for it (D35). A lost answer causes the same in live, so a receiver sees the
    real thing."""
    if delivery.event not in _OVERTAKEN or scenario_of(payment) != "webhook_out_of_order":
        return delivery
    now = delivery.created_at
    due = later(now, RETRY_DELAYS[_LOST_ATTEMPTS - 1] * SECOND)
    return structs.replace(delivery, attempts=_LOST_ATTEMPTS, last_attempt_at=now, next_attempt_at=due)


def _data(event: Event) -> PaymentObject | RefundObject | DisputeObject:
    if event.dispute is not None:
        return dispute_object(event.dispute)
    if event.refund is not None:
        return refund_object(event.refund)
    return payment_object(event.payment, event.catalogue.by_operator(event.payment.operator))


def new_delivery(
    merchant_id: MerchantId,
    env: Environment,
    event: EventName,
    target: DeliveryTarget,
    url: str,
    data: PaymentObject | RefundObject | DisputeObject | WebhookMessageObject,
    now: Instant,
    payment_id: PaymentId | None = None,
) -> Delivery:
    """A delivery that is due at once. Its body is sent unchanged at each attempt."""
    reference = new_reference(now)
    body = {"id": reference, "event": event, "livemode": env == "live", "created_at": iso(now), "data": data}
    return Delivery(
        id=DeliveryId(0),
        merchant_id=merchant_id,
        env=env,
        reference=reference,
        payment_id=payment_id,
        event=event,
        target=target,
        url=url,
        destination=destination_of(url),
        body=encode(body).decode(),
        status="pending",
        attempts=0,
        response_code=None,
        created_at=now,
        delivered_at=None,
        last_attempt_at=None,
        next_attempt_at=now,
    )


def destination_of(url: str) -> str:
    """The host and port whose attempts at once are limited together."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
