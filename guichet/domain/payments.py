"""Payments and refunds: their fields, states, transitions, the event each transition implies, and the settlement: the
final result that is to be applied once.

The fields of `Payment` and `Refund` are in the column order of their tables, so that `Payment(*row)` works; a test
checks it.
"""

import hashlib
from typing import Any, ClassVar, Final, Literal, get_args
from uuid import UUID

from guichet.clock import DAY, HOUR, MINUTE, SECOND, Instant
from guichet.domain.audit_log import Act
from guichet.domain.catalogue import Catalogue
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
#: Why a payment through a link is refunded without being asked (`refunds/automatic.py`): its link of one use was paid
#: before, its sale was cancelled, or another payment succeeded of those that one customer began in each other's place.
AutomaticReason = Literal["link_paid", "sale_cancelled", "attempt_paid"]
AUTOMATIC_REASONS: Final[tuple[AutomaticReason, ...]] = get_args(AutomaticReason)

#: What a reference belongs to.
SubjectType = Literal["payment", "refund"]
SUBJECT_TYPES: Final[tuple[SubjectType, ...]] = get_args(SubjectType)
#: What an incident is about: also a dispute that matches no payment, and what a provider account lists.
IncidentSubject = Literal["payment", "refund", "dispute", "account"]
INCIDENT_SUBJECTS: Final[tuple[IncidentSubject, ...]] = get_args(IncidentSubject)

DEFAULT_DESCRIPTION: Final = "Paiement API"
DEFAULT_REASON: Final = "Remboursement demandé par le marchand"
DEFAULT_COUNTRY: Final = "Benin"


class Transition(Record, frozen=True):
    """A change of status, and the webhook event that it causes.

    `event` is None for a creation, and for a refusal that the merchant learns from the response itself (D20). `source`
    is None for a creation. All statuses of a refund are also statuses of a payment.
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

    subject_type: ClassVar[Literal["payment"]] = "payment"

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
    #: The provider account that was called last. It changes only while the accounts before it processed nothing.
    provider_account: str | None
    #: The provider's own reference, and other data that its module needs later (a JSON object of strings).
    provider_reference: str | None
    provider_data: str | None
    redirect_url: str | None
    #: Why it failed: a key of `REFUSAL_REASONS`; None otherwise.
    failure_reason: str | None
    #: When the provider must be polled next; None once the payment is final.
    next_poll_at: Instant | None
    #: How many scheduled polls there were; the interval grows with it.
    poll_count: int
    #: Until then one process polls this payment and no other may; None while nobody does.
    lease_expires_at: Instant | None
    #: Which account the name `provider_account` stood for when the payment was sent: `Provider.fingerprint`.
    account_fingerprint: str | None
    #: The full number that paid, as the provider states it (`domain/phone_numbers.py`).
    payer_number: str | None = None
    #: When the provider was last asked for the status; pages and callbacks ask only some seconds later again.
    asked_at: Instant | None = None
    #: When the call that initiated the debit is known to have ended; None while it runs, or if its process died.
    initiation_ended_at: Instant | None = None
    #: How often the provider answered, one time after the other, that it does not know the reference, and the
    #: microseconds between these answers that the asking process measured (`payments/outcomes.py`).
    not_found_count: int = 0
    not_found_duration: int = 0
    #: Until then a pending payment keeps its use of a payment link from others; None once it was given to another
    #: payment, and without a link.
    link_reserved_until: Instant | None = None
    #: A repeated request was answered while the initiation ran: a refusal is then told by a webhook too (D20).
    answered_pending: bool = False
    #: That of its payment link, whose fields never change.
    link_external_id: str | None = None
    #: The day (`date.toordinal()`) on which it counts towards its merchant's daily limit; None if there was none.
    counted_day: int | None = None
    #: The request that created it was answered with the refusal.
    refused_at_initiation: bool = False
    #: The first of the payments that one customer began in each other's place, each from the waiting page of one before
    #: (`payments/attempts.py`): the first names itself. None for a payment that stands alone.
    attempt_of: PaymentId | None = None
    #: That of its checkout session, whose external_id is `link_external_id` then.
    session_reference: str | None = None


class PaymentSummary(Record, frozen=True):
    """What a list of the console shows of a payment. Reading all columns of 25 payments takes as long as writing their
    whole page."""

    id: PaymentId
    reference: str
    external_id: str | None
    status: PaymentStatus
    amount: Hundredths
    currency: Currency
    description: str
    operator: str
    phone_number: str | None
    firstname: str | None
    lastname: str | None
    created_at: Instant


class ApiPayment(PaymentSummary, frozen=True):
    """What the API's object of a payment shows (`schemas/payment.py`)."""

    env: Environment
    fee_amount: Hundredths
    total_amount: Hundredths
    email: str | None
    metadata: str | None
    link_id: LinkId | None
    updated_at: Instant
    provider_data: str | None
    redirect_url: str | None
    failure_reason: str | None
    link_external_id: str | None
    session_reference: str | None


def unstored_payment(**fields: Any) -> Payment:
    """A pending payment that no table holds, with these fields: for a request that precedes one, or for a trial."""
    blank: dict[str, Any] = dict.fromkeys(Payment.__struct_fields__)
    blank |= {"id": 0, "merchant_id": 0, "env": "live", "status": "pending", "description": DEFAULT_DESCRIPTION}
    return Payment(**blank | {"poll_count": 0, "not_found_count": 0, "not_found_duration": 0} | fields)


class Refund(Record, frozen=True):
    """The one refund that a payment can have (D22). `held`: the wallet's part was moved to the hold account."""

    subject_type: ClassVar[Literal["refund"]] = "refund"

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
    #: Set before a disbursement is sent. From then on its status is polled; it is not sent again unless the provider
    #: certainly did not process it.
    sent_at: Instant | None
    next_poll_at: Instant | None
    poll_count: int
    lease_expires_at: Instant | None
    account_fingerprint: str | None = None
    #: How many requests before the current one ended because our balance with the provider was empty.
    request_number: int = 0
    #: The accounts for whose balance the refund waits, in the order of its routes, each between commas; None while it
    #: does not wait.
    float_empty_accounts: str | None = None
    #: The number that a payout was sent to, or that a person confirmed.
    payee_number: str | None = None
    #: As those of `Payment`.
    asked_at: Instant | None = None
    not_found_count: int = 0
    not_found_duration: int = 0
    #: The code by which the request before the current one was refused though our balance covered it
    #: (`refunds/ambiguous_refusals.py`), or KEPT_FOR_FLOAT.
    ambiguous_code: str | None = None
    #: None for one that somebody asked for.
    automatic: AutomaticReason | None = None

    @property
    def last_empty_account(self) -> str | None:
        return self.float_empty_accounts.split(",")[-2] if self.float_empty_accounts else None

    @property
    def request_reference(self) -> str:
        """The reference under which the provider knows the current request: a random-looking UUID of version 4, as some
        providers demand, and another one for each request, because a provider remembers a failed one."""
        return request_reference(self.reference, self.request_number)


#: In place of a code: the provider keeps the refund until our balance covers it.
KEPT_FOR_FLOAT: Final = "kept"


def request_reference(reference: str, number: int) -> str:
    if number == 0:
        return reference
    digest = hashlib.sha256(f"{reference}/{number}".encode()).digest()
    return str(UUID(bytes=digest[:16], version=4))


#: Answers "not found" that prove that a request never arrived, and the microseconds that they must cover. Providers
#: drop a request after five minutes.
NEVER_ARRIVED_ANSWERS: Final = 3
NEVER_ARRIVED_PERIOD: Final = 15 * MINUTE
#: Microseconds more where nobody saw the request end, because its process died: longer than any request may take.
UNSEEN_END: Final = 2 * MINUTE


def never_arrived(subject: Payment | Refund) -> bool:
    """Whether the answers counted so far prove that the request never arrived. Never, once the provider gave its own
    reference: it did know the request."""
    end_was_seen = isinstance(subject, Payment) and subject.initiation_ended_at is not None
    return (
        subject.provider_reference is None
        and subject.not_found_count >= NEVER_ARRIVED_ANSWERS
        and subject.not_found_duration >= (NEVER_ARRIVED_PERIOD if end_was_seen else NEVER_ARRIVED_PERIOD + UNSEEN_END)
    )


#: Microseconds until the next poll, by the number of polls before it. The last entry repeats until the payment is 72
#: hours old; from then on it is polled once a day.
POLL_INTERVALS: Final = tuple(seconds * SECOND for seconds in (5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600))
#: From this age on, in microseconds, a pending payment or refund is an incident.
INCIDENT_AGE: Final = 3 * DAY
#: Microseconds between two looks at a refund that cannot be sent: it waits for its payee, a wallet, a dispute, a route.
REFUND_RETRY: Final = HOUR


def poll_interval(poll_count: int, age: int) -> int:
    """Microseconds until the next poll of a payment or refund that is `age` old and was polled `poll_count` times."""
    if age >= INCIDENT_AGE:
        return DAY
    return POLL_INTERVALS[min(poll_count, len(POLL_INTERVALS) - 1)]


class Settlement(Record, frozen=True):
    """What `payments/settlement.py` and `refunds/settlement.py` apply: `transition` to `refund` if there is one,
    otherwise to `payment`, which is the refunded payment when `refund` is given.

    `failure_reason` (a key of `REFUSAL_REASONS`), `provider_reference` and `payer_number` are what the settled row
    keeps. `act`: what a person did, when a person settles. `account`: the ledger's account whose money the postings
    move: a wallet with the provider, or MANUAL_SETTLEMENT when people settle against its answer.
    """

    payment: Payment
    transition: Transition
    catalogue: Catalogue
    now: Instant
    account: str
    failure_reason: str | None = None
    provider_reference: str | None = None
    act: Act | None = None
    #: A provider was asked to move the money, so it may still do so after a failure.
    was_sent: bool = False
    #: The provider itself states the failure.
    refused_by_provider: bool = False
    payer_number: str | None = None
    refund: Refund | None = None

    @property
    def succeeds(self) -> bool:
        return self.transition.target == "succeeded"
