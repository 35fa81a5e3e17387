"""Late results: what a provider says about a payment or refund after its end was told to the merchant.

The told status and its webhooks stay. A row follows each failure, and each callback that says otherwise:

    asking       the provider is asked once more after an hour and after a day
    found        the money came to us all the same, and waits in `suspense:late` for a person
    receivable   a refund reached the customer after its hold was released: the merchant owes us the amount
    returning    a person sent the money back to the payer; the provider has not confirmed it yet
    credited, returned, paid   a person ended it
"""

from typing import Final, Literal, get_args

from guichet.clock import DAY, HOUR, Instant
from guichet.domain.ids import LateResultId, MerchantId
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

#: Microseconds after the failure at which the provider is asked again.
POLL_DELAYS: Final = (HOUR, DAY)
#: How long a question without an answer is repeated, and how often.
GIVE_UP_AFTER: Final = 3 * DAY
REPEAT_AFTER: Final = HOUR


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
    asked_count: int
    amount: Hundredths | None
    found_at: Instant | None
    #: When the worker acts next; None unless `pending`.
    next_poll_at: Instant | None
    #: The request that gives the money back to the payer: our reference for it, and what the provider returned.
    return_reference: str | None
    return_sent_at: Instant | None
    provider_reference: str | None
    provider_data: str | None
