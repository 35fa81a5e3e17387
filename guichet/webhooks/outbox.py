"""Writes a delivery in the transaction of the change it tells: the row is the queue and the log."""

from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

from guichet import wire
from guichet.clock import Instant
from guichet.domain.catalogue import Catalogue
from guichet.domain.events import Delivery
from guichet.domain.payments import Payment, Refund
from guichet.storage import deliveries, merchants
from guichet.storage.engine import Transaction

ACCOUNT: Final = "account"
CALLBACK: Final = "callback"


async def emit(
    tx: Transaction, event: str, payment: Payment, catalogue: Catalogue, now: Instant, refund: Refund | None = None
) -> None:
    """Queues `event` about a payment, or about its refund; nothing when the merchant has nowhere to receive it.

    The payment's own `callback_url` takes the place of the account endpoint (D32). Address and bytes are frozen here.
    """
    if payment.callback_url is not None:
        target, url = CALLBACK, payment.callback_url
    else:
        endpoint = await merchants.endpoint(tx, payment.merchant_id, payment.env)
        if endpoint.url is None:
            return
        target, url = ACCOUNT, endpoint.url
    if refund is not None:
        data = wire.render_refund(refund)
    else:
        data = wire.render_payment(payment, catalogue.by_operator(payment.operator))
    delivery = new_delivery(payment.merchant_id, payment.env, event, target, url, data, now, payment_id=payment.id)
    await deliveries.insert_new(tx, delivery)


def new_delivery(
    merchant_id: int,
    env: str,
    event: str,
    target: str,
    url: str,
    data: dict[str, object],
    now: Instant,
    payment_id: int | None = None,
) -> Delivery:
    """A delivery that is due at once."""
    reference = str(uuid4())
    return Delivery(
        id=0,
        merchant_id=merchant_id,
        env=env,
        reference=reference,
        payment_id=payment_id,
        event=event,
        target=target,
        url=url,
        destination=destination_of(url),
        body=wire.webhook_body(reference, event, data, now, livemode=env == "live"),
        status="pending",
        attempts=0,
        response_code=None,
        created_at=now,
        delivered_at=None,
        answered_at=None,
        due_at=now,
    )


def destination_of(url: str) -> str:
    """What the cap on attempts at once counts: a host and port."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
