"""Late results: what a provider says about a payment or refund after its end was told to the merchant.

The told status and its webhooks stay. A row follows each failure, and each callback that says otherwise:

    asking       the provider is asked again (`next_poll_at`)
    found        the money came to us all the same, and waits in `suspense:late` for a person
    receivable   a refund reached the customer after its hold was released: the merchant owes us the amount
    returning    a person sent the money back to the payer; the provider has not confirmed it yet
    credited, returned, paid   a person ended it; what was credited can still be returned to the payer

Each request that sends money back to the payer is a row of its own, a `LateReturn`. Its reference is polled until
the provider's final answer, whatever a person decided meanwhile: what nobody saw fail may still be paid.
"""

from typing import Final, Literal, get_args

from guichet.clock import DAY, HOUR, Instant, later
from guichet.domain.ids import LateResultId, LateReturnId, MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths
from guichet.domain.payments import SubjectType
from guichet.domain.records import Record

LateStage = Literal["asking", "found", "receivable", "returning", "credited", "returned", "paid"]
LATE_STAGES: Final[tuple[LateStage, ...]] = get_args(LateStage)
#: Who acts next: the worker (`pending`), a person (`open`), nobody (`closed`).
LateStatus = Literal["pending", "open", "closed"]
LATE_STATUSES: Final[tuple[LateStatus, ...]] = get_args(LateStatus)
STATUS_OF_STAGE: Final[dict[LateStage, LateStatus]] = {
    "asking": "pending",
    "found": "open",
    "receivable": "open",
    "returning": "pending",
    "credited": "closed",
    "returned": "closed",
    "paid": "closed",
}
#: `pending`: no final answer of the provider yet. `succeeded`: it gave the money back. `failed`: it never will under
#: this reference.
ReturnStatus = Literal["pending", "succeeded", "failed"]
RETURN_STATUSES: Final[tuple[ReturnStatus, ...]] = get_args(ReturnStatus)

#: Microseconds after a failure at which the provider is asked again about what it refused itself.
POLL_DELAYS: Final = (HOUR, DAY)
#: A poll without an answer is repeated after this time, for so long.
REPEAT_AFTER: Final = HOUR
GIVE_UP_AFTER: Final = 3 * DAY
#: How long a failure is polled that the provider never stated: its transaction may still be paid. Some providers
#: reconcile for weeks.
POLLED_FOR: Final = 90 * DAY
#: Polls of late results that a process sends to one provider account: so many at once, and so many a second.
POLLS_AT_ONCE: Final = 120
POLLS_PER_SECOND: Final = 1.0
#: How long after a return was sent another one may be, or the merchant be credited, while nobody knows its end.
SECOND_RETURN_AFTER: Final = DAY


class LateResult(Record, frozen=True):
    """A row of `late_results`, in the order of its columns. `amount`: what the provider moved, in hundredths; None
    while nothing was found."""

    id: LateResultId
    merchant_id: MerchantId
    env: Environment
    currency: Currency
    subject_type: SubjectType
    subject_id: int
    reference: str
    provider_account: str
    status: LateStatus
    stage: LateStage
    told_at: Instant
    #: The end that was told is the provider's own explicit answer.
    refused_by_provider: bool
    #: How often the provider answered.
    asked_count: int
    amount: Hundredths | None
    found_at: Instant | None
    #: When the provider is asked next; None unless `asking`.
    next_poll_at: Instant | None
    #: The reference of the latest request that gives the money back to the payer.
    return_reference: str | None


class LateReturn(Record, frozen=True):
    """A row of `late_returns`, in the order of its columns: one request that gives late money back to the payer."""

    id: LateReturnId
    merchant_id: MerchantId
    env: Environment
    late_result_id: LateResultId
    #: Ours, under which the provider knows the request.
    reference: str
    provider_account: str
    status: ReturnStatus
    requested_at: Instant
    #: Set before the request is sent; from then on it is only asked about.
    sent_at: Instant | None
    next_poll_at: Instant | None
    provider_reference: str | None
    provider_data: str | None


def next_poll(late: LateResult, now: Instant, *, answered: bool) -> Instant | None:
    """When the provider is asked again after an answer that was not final, or after none; None: no more.

    What the provider refused itself is asked about after an hour and after a day. Anything else is, from then on, asked
    about daily until its final answer comes.
    """
    age = now - late.told_at
    if late.refused_by_provider:
        if not answered:
            return None if age > GIVE_UP_AFTER else later(now, REPEAT_AFTER)
        delay = next((delay for delay in POLL_DELAYS if delay > age), None)
        return None if delay is None else later(late.told_at, delay)
    delay = HOUR if age < HOUR else (age // DAY + 1) * DAY
    if delay > POLLED_FOR:
        return None
    at = later(late.told_at, delay)
    return at if answered or age > GIVE_UP_AFTER else min(at, later(now, REPEAT_AFTER))
