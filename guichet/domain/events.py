"""Webhook events: names, envelope facts and the retry schedule (docs/contract.md, "Webhooks")."""

from typing import Final, Literal, get_args

from guichet.clock import Instant
from guichet.domain.ids import DeliveryId, MerchantId, PaymentId
from guichet.domain.merchants import Environment
from guichet.domain.records import Record

EventName = Literal[
    "payment.succeeded",
    "payment.failed",
    "payment.refunded",
    "refund.succeeded",
    "refund.failed",
    "dispute.opened",
    "dispute.won",
    "dispute.lost",
    "webhook.test",
    "checkout_session.completed",
    "checkout_session.expired",
]
EVENT_NAMES: Final[tuple[EventName, ...]] = get_args(EventName)
PAYMENT_SUCCEEDED: Final = "payment.succeeded"
PAYMENT_FAILED: Final = "payment.failed"
PAYMENT_REFUNDED: Final = "payment.refunded"
REFUND_SUCCEEDED: Final = "refund.succeeded"
REFUND_FAILED: Final = "refund.failed"
DISPUTE_OPENED: Final = "dispute.opened"
DISPUTE_WON: Final = "dispute.won"
DISPUTE_LOST: Final = "dispute.lost"
WEBHOOK_TEST: Final = "webhook.test"
SESSION_COMPLETED: Final = "checkout_session.completed"
SESSION_EXPIRED: Final = "checkout_session.expired"

#: The events that payments and refunds cause. `webhook.test` is sent only when a merchant asks for it.
EVENTS: Final[tuple[EventName, ...]] = (
    PAYMENT_SUCCEEDED,
    PAYMENT_FAILED,
    PAYMENT_REFUNDED,
    REFUND_SUCCEEDED,
    REFUND_FAILED,
)

#: Additions to the contract: they are sent like the others, and are not listed by `GET /webhooks/endpoint`.
DISPUTE_EVENTS: Final[tuple[EventName, ...]] = (DISPUTE_OPENED, DISPUTE_WON, DISPUTE_LOST)
SESSION_EVENTS: Final[tuple[EventName, ...]] = (SESSION_COMPLETED, SESSION_EXPIRED)

#: Seconds to wait before attempt n+1, counted from the end of attempt n.
RETRY_DELAYS: Final = (10, 60, 300, 1800)
MAX_ATTEMPTS: Final = 1 + len(RETRY_DELAYS)
#: Seconds that a merchant's server has to answer.
ANSWER_TIMEOUT: Final = 10.0
#: Seconds after which a receiver refuses a signature.
SIGNATURE_AGE: Final = 300

DeliveryStatus = Literal["pending", "success", "failed"]
DELIVERY_STATUSES: Final[tuple[DeliveryStatus, ...]] = get_args(DeliveryStatus)

#: Where a delivery goes: to the merchant's endpoint, or to the `callback_url` of the payment (D32).
DeliveryTarget = Literal["account", "callback"]
DELIVERY_TARGETS: Final[tuple[DeliveryTarget, ...]] = get_args(DeliveryTarget)


#: Why an attempt failed, or was not made.
DeliveryError = Literal[
    "bad_status",
    "timeout",
    "address_refused",
    "connection_failed",
    "tls_failed",
    "answer_lost",
    "interrupted",
    "endpoint_disabled",
    "own_fault",
]


class StoredEvent(Record, frozen=True):
    """What happened, in the bytes that tell of it. They do not change; `reference` is the `id` in them."""

    id: DeliveryId
    merchant_id: MerchantId
    env: Environment
    reference: str
    payment_id: PaymentId | None
    event: EventName
    body: str
    created_at: Instant


class Delivery(Record, frozen=True):
    """A webhook that is queued, or that was sent."""

    #: That of its event, and so is `reference`.
    id: DeliveryId
    merchant_id: MerchantId
    env: Environment
    reference: str
    payment_id: PaymentId | None
    event: EventName
    #: Disabling the endpoint fails the pending deliveries to `account`, not those to `callback` (D36).
    target: DeliveryTarget
    #: Where the last attempt went, or the first one will go.
    url: str
    destination: str
    status: DeliveryStatus
    attempts: int
    response_code: int | None
    created_at: Instant
    delivered_at: Instant | None
    #: End of the latest attempt; None until the first one has ended. Later events of the payment wait for it (D35).
    last_attempt_at: Instant | None
    next_attempt_at: Instant | None
    #: Why the latest attempt failed; None if it did not, or if that was not recorded.
    error: DeliveryError | None = None
    #: The attempts that ended, as JSON (`webhooks/deliveries.py`).
    history: str | None = None


class Endpoint(Record, frozen=True):
    """Where one merchant's webhooks of one environment go. Secrets are encrypted at rest; `old_secret` signs too, by
    Standard Webhooks only, until `old_secret_until`."""

    merchant_id: MerchantId
    env: Environment
    url: str | None
    secret: str
    updated_at: Instant
    old_secret: str | None = None
    old_secret_until: Instant | None = None


def retry_delay(attempts: int) -> int | None:
    """Seconds to wait after attempt number `attempts`; None if it was the last one."""
    return RETRY_DELAYS[attempts - 1] if attempts < MAX_ATTEMPTS else None
