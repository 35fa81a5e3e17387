"""Everything that is stored about one payment, read for the people who look at it.

Cost: up to fifteen reads of an index, each of a few rows, however many payments there are.
"""

from typing import Final

from guichet.audit_log import entries as audit_log
from guichet.audit_log.entries import Entry
from guichet.db.engine import Database
from guichet.db.lists.pages import PageBounds
from guichet.disputes import repository as dispute_repository
from guichet.domain.disputes import Dispute
from guichet.domain.events import Delivery
from guichet.domain.late_results import LateResult
from guichet.domain.payments import Payment, Refund
from guichet.domain.posting_rules import Movement
from guichet.domain.records import Record
from guichet.incidents import repository as incidents
from guichet.incidents.repository import Incident
from guichet.late_money import repository as late_result_repository
from guichet.ledger import postings
from guichet.provider_callbacks import repository as callbacks
from guichet.provider_callbacks.repository import ProviderCallback
from guichet.refunds import repository as refund_repository
from guichet.webhooks import delivery_log
from guichet.webhooks.delivery_log import DeliveryFilter

#: The latest acts of people about one payment or refund.
_MOST_ACTS: Final = 50
#: The latest webhooks.
_MOST_DELIVERIES: Final = 100


class SubjectHistory(Record, frozen=True):
    """What is known about a payment or a refund, besides its row. `movements`: its postings, by cause."""

    movements: list[Movement]
    callback: ProviderCallback | None
    late: LateResult | None
    incidents: list[Incident]
    #: Newest first.
    acts: list[Entry]


class PaymentHistory(Record, frozen=True):
    """`deliveries`: about the payment, its refund and its disputes, oldest first."""

    payment: Payment
    of_payment: SubjectHistory
    refund: Refund | None
    of_refund: SubjectHistory | None
    disputes: list[tuple[Dispute, list[Movement]]]
    deliveries: list[Delivery]


async def read_history(db: Database, payment: Payment) -> PaymentHistory:
    """The caller has checked that the reader may see the payment."""
    refund = await refund_repository.of_payment(db, payment.merchant_id, payment.id)
    bounds, filters = PageBounds(_MOST_DELIVERIES), DeliveryFilter(payment_id=payment.id)
    deliveries, _ = await delivery_log.page(db, payment.merchant_id, payment.env, bounds, filters)
    return PaymentHistory(
        payment=payment,
        of_payment=await _history_of(db, payment),
        refund=refund,
        of_refund=None if refund is None else await _history_of(db, refund),
        disputes=[
            (dispute, await postings.about(db, payment.merchant_id, "dispute", dispute.id))
            for dispute in await dispute_repository.of_payment(db, payment.id)
        ],
        deliveries=deliveries[::-1],
    )


async def _history_of(db: Database, subject: Payment | Refund) -> SubjectHistory:
    return SubjectHistory(
        movements=await postings.about(db, subject.merchant_id, subject.subject_type, subject.id),
        callback=await callbacks.about(db, subject),
        late=await late_result_repository.about(db, subject),
        incidents=await incidents.about(db, subject.merchant_id, subject.reference),
        acts=await audit_log.about(db, subject.reference, _MOST_ACTS),
    )
