"""The SQL that reads payments and refunds together with their postings, and the rows that it returns."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, FromClause, and_, bindparam, func, select

from guichet.db.tables import audit_log, disputes, late_results, payments, postings, refunds, treasury_movements
from guichet.domain.disputes import Bearer, DisputeStatus
from guichet.domain.ids import MerchantId
from guichet.domain.late_results import LateStage
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths
from guichet.domain.payments import PaymentStatus, RefundStatus, SubjectType
from guichet.domain.posting_rules import TREASURY_MOVED
from guichet.domain.treasury import TreasuryMovement
from guichet.ledger.postings import OF_DISPUTES, OF_PAYMENTS, OF_REFUNDS


def late_result_of(subject_type: SubjectType, subjects: FromClause) -> ColumnElement[bool]:
    """`subjects` are payments or refunds, or some of them; a subject has one late result at most."""
    return and_(
        late_results.c.merchant_id == subjects.c.merchant_id,
        late_results.c.subject_type == subject_type,
        late_results.c.subject_id == subjects.c.id,
    )


_LEG: Final = (
    postings.c.id.label("posting_id"),
    postings.c.env.label("posting_env"),
    postings.c.currency.label("posting_currency"),
    postings.c.cause,
    postings.c.leg,
    postings.c.source,
    postings.c.destination,
    postings.c.amount.label("posting_amount"),
)


_some_payments: Final = (
    select(payments)
    .where(payments.c.id > bindparam("after"))
    .order_by(payments.c.id)
    .limit(bindparam("most"))
    .subquery()
)
PAYMENTS: Final = (
    select(
        _some_payments.c.id,
        _some_payments.c.merchant_id,
        _some_payments.c.env,
        _some_payments.c.reference,
        _some_payments.c.status,
        _some_payments.c.amount,
        _some_payments.c.fee_amount,
        _some_payments.c.currency,
        func.coalesce(_some_payments.c.provider_account, ""),
        refunds.c.status.label("refund_status"),
        late_results.c.stage.label("late_stage"),
        *_LEG,
    )
    .select_from(_some_payments)
    .outerjoin(
        refunds,
        and_(refunds.c.merchant_id == _some_payments.c.merchant_id, refunds.c.payment_id == _some_payments.c.id),
    )
    .outerjoin(late_results, late_result_of("payment", _some_payments))
    .outerjoin(
        postings,
        and_(
            postings.c.merchant_id == _some_payments.c.merchant_id,
            OF_PAYMENTS,
            postings.c.subject_id == _some_payments.c.id,
        ),
    )
    .order_by(_some_payments.c.id, postings.c.id)
)
_some_refunds: Final = (
    select(refunds).where(refunds.c.id > bindparam("after")).order_by(refunds.c.id).limit(bindparam("most")).subquery()
)
REFUNDS: Final = (
    select(
        _some_refunds.c.id,
        _some_refunds.c.merchant_id,
        _some_refunds.c.env,
        _some_refunds.c.reference,
        _some_refunds.c.status,
        payments.c.amount,
        payments.c.fee_amount,
        _some_refunds.c.currency,
        func.coalesce(_some_refunds.c.provider_account, ""),
        _some_refunds.c.held,
        _some_refunds.c.amount.label("returned"),
        payments.c.status.label("payment_status"),
        payments.c.merchant_id.label("payment_merchant"),
        payments.c.env.label("payment_env"),
        payments.c.currency.label("payment_currency"),
        late_results.c.stage.label("late_stage"),
        *_LEG,
    )
    .select_from(_some_refunds)
    .join(payments, payments.c.id == _some_refunds.c.payment_id)
    .outerjoin(late_results, late_result_of("refund", _some_refunds))
    .outerjoin(
        postings,
        and_(
            postings.c.merchant_id == _some_refunds.c.merchant_id,
            OF_REFUNDS,
            postings.c.subject_id == _some_refunds.c.id,
        ),
    )
    .order_by(_some_refunds.c.id, postings.c.id)
)
_some_disputes: Final = (
    select(disputes)
    .where(disputes.c.id > bindparam("after"))
    .order_by(disputes.c.id)
    .limit(bindparam("most"))
    .subquery()
)
DISPUTES: Final = (
    select(
        _some_disputes.c.id,
        _some_disputes.c.merchant_id,
        _some_disputes.c.env,
        _some_disputes.c.reference,
        # One that matches no payment has none of these.
        func.coalesce(payments.c.status, ""),
        func.coalesce(payments.c.amount, 0),
        func.coalesce(payments.c.fee_amount, 0),
        _some_disputes.c.currency,
        _some_disputes.c.provider_account,
        _some_disputes.c.status.label("dispute_status"),
        _some_disputes.c.amount.label("disputed"),
        _some_disputes.c.borne_by,
        _some_disputes.c.taken,
        *_LEG,
    )
    .select_from(_some_disputes)
    .outerjoin(payments, payments.c.id == _some_disputes.c.payment_id)
    .outerjoin(
        postings,
        and_(
            postings.c.merchant_id == _some_disputes.c.merchant_id,
            OF_DISPUTES,
            postings.c.subject_id == _some_disputes.c.id,
        ),
    )
    .order_by(_some_disputes.c.id, postings.c.id)
)
_some_movements: Final = (
    select(treasury_movements)
    .where(treasury_movements.c.id > bindparam("after"))
    .order_by(treasury_movements.c.id)
    .limit(bindparam("most"))
    .subquery()
)
_OF_MOVEMENT: Final = and_(
    postings.c.merchant_id == _some_movements.c.merchant_id,
    postings.c.cause == TREASURY_MOVED,
    postings.c.subject_id == _some_movements.c.id,
)
#: Movements of our own money with their postings.
TREASURY: Final = (
    select(*_some_movements.c, *_LEG)
    .select_from(_some_movements.outerjoin(postings, _OF_MOVEMENT))
    .order_by(_some_movements.c.id, postings.c.id)
)
#: Whether the audit log has an entry about the subject: two people settled it against the provider's answer.
SETTLED_BY_PEOPLE: Final = (
    select(audit_log.c.number)
    .where(audit_log.c.subject == bindparam("about"), audit_log.c.action == bindparam("action"))
    .limit(1)
)
#: Postings without a payment, refund, dispute or movement of our own money of the same merchant, environment and
#: currency.
ORPHAN_POSTINGS: Final = (
    select(postings.c.id, postings.c.cause, postings.c.subject_id)
    .outerjoin(
        payments,
        and_(
            payments.c.id == postings.c.subject_id,
            OF_PAYMENTS,
            payments.c.merchant_id == postings.c.merchant_id,
            payments.c.env == postings.c.env,
            payments.c.currency == postings.c.currency,
        ),
    )
    .outerjoin(
        refunds,
        and_(
            refunds.c.id == postings.c.subject_id,
            OF_REFUNDS,
            refunds.c.merchant_id == postings.c.merchant_id,
            refunds.c.env == postings.c.env,
            refunds.c.currency == postings.c.currency,
        ),
    )
    .outerjoin(
        disputes,
        and_(
            disputes.c.id == postings.c.subject_id,
            OF_DISPUTES,
            disputes.c.merchant_id == postings.c.merchant_id,
            disputes.c.env == postings.c.env,
            disputes.c.currency == postings.c.currency,
        ),
    )
    .outerjoin(
        treasury_movements,
        and_(
            treasury_movements.c.id == postings.c.subject_id,
            postings.c.cause == TREASURY_MOVED,
            treasury_movements.c.merchant_id == postings.c.merchant_id,
            treasury_movements.c.currency == postings.c.currency,
        ),
    )
    .where(
        postings.c.id > bindparam("after"),
        postings.c.id <= bindparam("last"),
        func.coalesce(payments.c.id, refunds.c.id, disputes.c.id, treasury_movements.c.id).is_(None),
    )
    .order_by(postings.c.id)
    .limit(1)
)


class Leg(NamedTuple):
    """A posting of a subject; `leg` tells the postings of one cause apart."""

    id: int
    env: Environment
    currency: Currency
    cause: str
    leg: str
    source: str
    destination: str
    amount: Hundredths


class Subject(NamedTuple):
    """A payment, a refund or a dispute; the amounts are always those of the payment."""

    id: int
    merchant_id: MerchantId
    env: Environment
    reference: str
    #: A refund's statuses are among those of a payment.
    status: PaymentStatus
    amount: Hundredths
    fee_amount: Hundredths
    currency: Currency
    provider_account: str


class PaymentFacts(NamedTuple):
    """What the audit must know of a payment besides its `Subject`. `late_stage`: see `domain/late_results.py`."""

    refund_status: RefundStatus | None
    late_stage: LateStage | None


class DisputeFacts(NamedTuple):
    """What the audit must know of a dispute besides the `Subject` with its payment's facts; `disputed` in
    hundredths."""

    status: DisputeStatus
    disputed: Hundredths
    borne_by: Bearer | None
    taken: bool


class RefundFacts(NamedTuple):
    """What the audit must know of a refund besides its `Subject`; `returned` is its amount in hundredths."""

    held: bool
    returned: Hundredths
    payment_status: PaymentStatus
    payment_merchant: int
    payment_env: Environment
    payment_currency: Currency
    late_stage: LateStage | None


def split(group: Sequence[Any], facts: int) -> tuple[Subject, list[Any], list[Leg]]:
    """The subject of a group of rows, the `facts` further columns that its statement selects, and its postings."""
    width = len(Subject._fields)
    rows = [list(row) for row in group]
    legs = [Leg(*row[width + facts :]) for row in rows if row[width + facts] is not None]
    return Subject(*rows[0][:width]), rows[0][width : width + facts], legs


def split_movement(group: Sequence[Any]) -> tuple[TreasuryMovement, list[Leg]]:
    """A movement of our own money from a group of rows, and its postings."""
    width = len(treasury_movements.c)
    legs = [Leg(*row[width:]) for row in group if row[width] is not None]
    return TreasuryMovement(*group[0][:width]), legs
