"""Payments and refunds: their fields, states, transitions and the event each transition implies.

Field order is the column order of the tables of the same name: a row *is* its class (held by a test).
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from guichet.clock import Instant
from guichet.domain.events import (
    PAYMENT_FAILED,
    PAYMENT_REFUNDED,
    PAYMENT_SUCCEEDED,
    REFUND_FAILED,
    REFUND_SUCCEEDED,
    EventName,
)
from guichet.domain.ids import LinkId, MerchantId, PaymentId, RefundId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths
from guichet.domain.records import Record

PaymentStatus = Literal["pending", "succeeded", "failed", "refunded"]
RefundStatus = Literal["pending", "succeeded", "failed"]
PAYMENT_STATUSES: Final[tuple[PaymentStatus, ...]] = get_args(PaymentStatus)
REFUND_STATUSES: Final[tuple[RefundStatus, ...]] = get_args(RefundStatus)

#: Which of the two a reference names.
SubjectType = Literal["payment", "refund"]
SUBJECT_TYPES: Final[tuple[SubjectType, ...]] = get_args(SubjectType)

DEFAULT_DESCRIPTION: Final = "Paiement API"
DEFAULT_REASON: Final = "Remboursement demandé par le marchand"
DEFAULT_COUNTRY: Final = "Benin"


@dataclass(frozen=True, slots=True)
class Transition:
    """`event` is None when no webhook tells of it: the creation, and a refusal that the answer itself tells (D20).

    A refund's statuses are among those of a payment.
    """

    source: PaymentStatus | None
    target: PaymentStatus
    event: EventName | None


CREATED: Final = Transition(None, "pending", None)
REFUSED_AT_INITIATION: Final = Transition("pending", "failed", None)
CONFIRMED: Final = Transition("pending", "succeeded", PAYMENT_SUCCEEDED)
REFUSED: Final = Transition("pending", "failed", PAYMENT_FAILED)
REFUNDED: Final = Transition("succeeded", "refunded", PAYMENT_REFUNDED)
REFUND_REQUESTED: Final = Transition(None, "pending", None)
REFUND_DISBURSED: Final = Transition("pending", "succeeded", REFUND_SUCCEEDED)
REFUND_REFUSED: Final = Transition("pending", "failed", REFUND_FAILED)

#: The only transitions there are (docs/contract.md, "States").
PAYMENT_TRANSITIONS: Final = {
    "created": CREATED,
    "refused_at_initiation": REFUSED_AT_INITIATION,
    "confirmed": CONFIRMED,
    "refused": REFUSED,
    "refunded": REFUNDED,
}
REFUND_TRANSITIONS: Final = {
    "requested": REFUND_REQUESTED,
    "disbursed": REFUND_DISBURSED,
    "refused": REFUND_REFUSED,
}


class Payment(Record, frozen=True):
    """A payment as it is stored. Amounts are hundredths, dates are Instants (microseconds)."""

    id: PaymentId
    merchant_id: MerchantId
    env: Environment
    reference: str
    external_id: str | None
    status: PaymentStatus
    amount: Hundredths
    fee_amount: Hundredths
    total_amount: Hundredths
    currency: Currency
    description: str
    operator: str
    phone_number: str | None
    firstname: str | None
    lastname: str | None
    email: str | None
    address: str | None
    country: str | None
    return_url: str | None
    callback_url: str | None
    metadata: str | None
    link_id: LinkId | None
    checkout_token: str | None
    created_at: Instant
    updated_at: Instant
    #: The route that took the request; None until one did. Never changes afterwards: money does not switch routes.
    provider_account: str | None
    #: The provider's own reference, and what else its module must keep (a JSON object of strings).
    provider_reference: str | None
    provider_data: str | None
    redirect_url: str | None
    #: Why it failed: a key of `REFUSAL_REASONS`; None otherwise.
    failure_reason: str | None
    #: When somebody must ask the operator next; None once the payment is final.
    next_poll_at: Instant | None
    #: How many times it was asked about; drives the growing interval.
    poll_count: int
    #: Who asks now holds the row until then.
    lease_expires_at: Instant | None


class Refund(Record, frozen=True):
    """The one refund a payment can have (D22). `held` says that the wallet's part is set aside."""

    id: RefundId
    merchant_id: MerchantId
    env: Environment
    reference: str
    payment_id: PaymentId
    payment_reference: str
    amount: Hundredths
    currency: Currency
    status: RefundStatus
    reason: str
    created_at: Instant
    processed_at: Instant | None
    held: bool
    provider_account: str | None
    provider_reference: str | None
    provider_data: str | None
    failure_reason: str | None
    #: Set before the first byte of a disbursement leaves: from then on it is asked about, never sent blindly again.
    sent_at: Instant | None
    next_poll_at: Instant | None
    poll_count: int
    lease_expires_at: Instant | None


#: How long to wait before asking an operator again, by the number of times already asked, in seconds.
#: The last entry repeats until the payment is 72 hours old; then it is asked once a day.
POLL_INTERVALS: Final = (5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
INCIDENT_AGE_SECONDS: Final = 72 * 3600
DAILY_SECONDS: Final = 24 * 3600


def poll_interval(poll_count: int, age_seconds: float) -> int:
    """Seconds until the next question about something still pending."""
    if age_seconds >= INCIDENT_AGE_SECONDS:
        return DAILY_SECONDS
    return POLL_INTERVALS[min(poll_count, len(POLL_INTERVALS) - 1)]
