"""The outbox: events and their webhooks are written in the transaction of the change they tell of, with their bytes
frozen."""

from collections.abc import Sequence
from typing import Final

from msgspec import structs
from msgspec.json import encode
from sqlalchemy import insert, literal_column, select

from guichet.clock import SECOND, Instant, iso, later
from guichet.context import DeliveryBatch
from guichet.db.engine import RowStatement, Transaction, require
from guichet.db.references import new_reference
from guichet.db.sql_functions import params
from guichet.db.tables import events, webhook_endpoints
from guichet.domain.events import (
    PAYMENT_FAILED,
    PAYMENT_SUCCEEDED,
    REFUND_SUCCEEDED,
    RETRY_DELAYS,
    Delivery,
    EventName,
    StoredEvent,
)
from guichet.domain.ids import DeliveryId, MerchantId, PaymentId
from guichet.domain.merchants import Environment
from guichet.domain.payments import Payment
from guichet.domain.records import Record
from guichet.domain.sandbox_scenarios import scenario_of
from guichet.schemas.checkout_session import CheckoutSessionObject
from guichet.schemas.dispute import DisputeObject
from guichet.schemas.notification import WebhookMessageObject
from guichet.schemas.payment import PaymentObject
from guichet.schemas.refund import RefundObject
from guichet.webhooks import deliveries

EventData = PaymentObject | RefundObject | DisputeObject | CheckoutSessionObject | WebhookMessageObject
ACCOUNT: Final = "account"
CALLBACK: Final = "callback"
#: The events that come late on request, and the attempts that they have behind them: the next one is a minute later.
_OVERTAKEN: Final = (PAYMENT_SUCCEEDED, REFUND_SUCCEEDED)
_LOST_ATTEMPTS: Final = 2
#: The fields of `NewEvent`, in their order.
_EVENT_COLUMNS: Final = tuple(column.name for column in events.c if column.name not in ("id", "transaction_id"))
#: The present address comes back with it: the transaction needs no statement for that.
_INSERT_EVENT: Final = RowStatement(
    insert(events)
    .values(params(*_EVENT_COLUMNS))
    .returning(
        events.c.reference,
        events.c.id,
        select(webhook_endpoints.c.url)
        .where(
            # Spelled out: in RETURNING the compiler leaves the table out, and the endpoint has the same columns.
            webhook_endpoints.c.merchant_id == literal_column("events.merchant_id"),
            webhook_endpoints.c.env == literal_column("events.env"),
        )
        .scalar_subquery()
        .label("url"),
    ),
    _EVENT_COLUMNS,
)
#: What ends a payment's wait: no event of it comes before, for which this one would have to wait (D35).
_FIRST_OF_PAYMENT: Final = (PAYMENT_SUCCEEDED, PAYMENT_FAILED)


class Event(Record, frozen=True):
    """What happened to a payment, to its refund or by a dispute: `data` is the object of that one."""

    name: EventName
    payment: Payment
    data: EventData
    now: Instant


class NewEvent(Record, frozen=True):
    """An event that is not stored yet. `body` is sent unchanged at each attempt, and `reference` is the `id` in it."""

    merchant_id: MerchantId
    env: Environment
    reference: str
    payment_id: PaymentId | None
    event: EventName
    body: str
    created_at: Instant


async def emit(tx: Transaction, happened: Sequence[Event], batch: DeliveryBatch | None = None) -> None:
    """Stores the event of each, in this order, and queues its webhook; none for a merchant without an address.

    The payment's own `callback_url` takes the place of the account endpoint (D32). The body is frozen here. `batch`:
    may take first attempts over.
    """
    if not happened:
        return
    new = [
        new_event(event.payment.merchant_id, event.payment.env, event.name, event.data, event.now, event.payment.id)
        for event in happened
    ]
    inserted = await _insert_events(tx, new)
    queued = []
    for event, stored in zip(happened, new, strict=True):
        payment, row = event.payment, inserted[stored.reference]
        delivery = delivery_of(stored, row.id, row.url, payment.callback_url)
        if delivery is None:
            continue
        if payment.env == "test" and payment.provider_data is not None:
            delivery = _as_the_scenario_wants(delivery, payment)
        if batch is not None:
            if stored.event in _FIRST_OF_PAYMENT and not delivery.attempts:
                delivery = batch.reserve(delivery)
            else:
                batch.needs_claim = True
        queued.append(delivery)
    await deliveries.insert_new(tx, queued)


class _Inserted(Record, frozen=True):
    """`url`: where the merchant's webhooks go at present; None if they are disabled."""

    id: DeliveryId
    url: str | None


async def _insert_events(tx: Transaction, new: Sequence[NewEvent]) -> dict[str, _Inserted]:
    """Stores events, in this order; by their references."""
    rows = await tx.write_rows(_INSERT_EVENT, [structs.astuple(event) for event in new])
    return {reference: _Inserted(event_id, url) for reference, event_id, url in rows}


def _as_the_scenario_wants(delivery: Delivery, payment: Payment) -> Delivery:
    """The new delivery of a test payment; one that is to be overtaken waits as if two attempts had been lost, so that
    the payment's later events do not wait for it (D35). A lost answer causes the same in live, so a receiver sees the
    real thing."""
    if delivery.event not in _OVERTAKEN or scenario_of(payment) != "webhook_out_of_order":
        return delivery
    now = delivery.created_at
    due = later(now, RETRY_DELAYS[_LOST_ATTEMPTS - 1] * SECOND)
    return structs.replace(delivery, attempts=_LOST_ATTEMPTS, last_attempt_at=now, next_attempt_at=due)


async def emit_other(tx: Transaction, event: NewEvent) -> None:
    """Stores an event that is not of one payment, and queues its webhook; none for a merchant without an address."""
    row = (await _insert_events(tx, [event]))[event.reference]
    delivery = delivery_of(event, row.id, row.url)
    if delivery is not None:
        await deliveries.insert_new(tx, [delivery])


async def queue_events(tx: Transaction, new: Sequence[NewEvent], url: str) -> list[Delivery]:
    """Stores events and queues them for the address `url` of their merchant's endpoint."""
    inserted = await _insert_events(tx, new)
    queued = [require(delivery_of(event, inserted[event.reference].id, url)) for event in new]
    await deliveries.insert_new(tx, queued)
    return queued


def new_event(
    merchant_id: MerchantId,
    env: Environment,
    name: EventName,
    data: EventData,
    now: Instant,
    payment_id: PaymentId | None = None,
) -> NewEvent:
    reference = new_reference(now)
    body = {"id": reference, "event": name, "livemode": env == "live", "created_at": iso(now), "data": data}
    return NewEvent(merchant_id, env, reference, payment_id, name, encode(body).decode(), now)


def delivery_of(
    event: NewEvent | StoredEvent, event_id: DeliveryId, url: str | None, callback_url: str | None = None
) -> Delivery | None:
    """The delivery of a stored event, due at once: to `callback_url`, or to the merchant's address `url`. None without
    an address."""
    address = callback_url or url
    if address is None:
        return None
    return Delivery(
        id=event_id,
        merchant_id=event.merchant_id,
        env=event.env,
        reference=event.reference,
        payment_id=event.payment_id,
        event=event.event,
        target=ACCOUNT if callback_url is None else CALLBACK,
        url=address,
        destination=deliveries.destination_of(address),
        status="pending",
        attempts=0,
        response_code=None,
        created_at=event.created_at,
        delivered_at=None,
        last_attempt_at=None,
        next_attempt_at=event.created_at,
    )
