"""The SQL that reads payments and refunds together with their postings, and the rows that it returns."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, FromClause, Select, Subquery, Table, and_, bindparam, func, or_, select

from guichet.db.sql_functions import columns
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
    *columns(postings, "cause", "leg", "source", "destination"),
    postings.c.amount.label("posting_amount"),
)


def _next(table: Table) -> Subquery:
    return select(table).where(table.c.id > bindparam("after")).order_by(table.c.id).limit(bindparam("most")).subquery()


def _with_postings(
    rows: FromClause, beside: FromClause, causes: ColumnElement[bool], selected: Sequence[ColumnElement[Any]]
) -> Select[Any]:
    """These columns of `rows`, and of what stands `beside` them, with each posting of these causes."""
    of_row = and_(postings.c.merchant_id == rows.c.merchant_id, causes, postings.c.subject_id == rows.c.id)
    read = select(*selected, *_LEG).select_from(beside).outerjoin(postings, of_row)
    return read.order_by(rows.c.id, postings.c.id)


_payments: Final = _next(payments)
_ITS_REFUND: Final = and_(refunds.c.merchant_id == _payments.c.merchant_id, refunds.c.payment_id == _payments.c.id)
PAYMENTS: Final = _with_postings(
    _payments,
    _payments.outerjoin(refunds, _ITS_REFUND).outerjoin(late_results, late_result_of("payment", _payments)),
    OF_PAYMENTS,
    (
        *columns(_payments, "id", "merchant_id", "env", "reference", "status"),
        *columns(_payments, "amount", "fee_amount", "currency"),
        func.coalesce(_payments.c.provider_account, ""),
        refunds.c.status.label("refund_status"),
        late_results.c.stage.label("late_stage"),
    ),
)
_refunds: Final = _next(refunds)
REFUNDS: Final = _with_postings(
    _refunds,
    _refunds.join(payments, payments.c.id == _refunds.c.payment_id).outerjoin(
        late_results, late_result_of("refund", _refunds)
    ),
    OF_REFUNDS,
    (
        *columns(_refunds, "id", "merchant_id", "env", "reference", "status"),
        payments.c.amount,
        payments.c.fee_amount,
        _refunds.c.currency,
        func.coalesce(_refunds.c.provider_account, ""),
        _refunds.c.held,
        _refunds.c.amount.label("returned"),
        *(payments.c[name].label(f"payment_{name}") for name in ("status", "merchant_id", "env", "currency")),
        late_results.c.stage.label("late_stage"),
    ),
)
_disputes: Final = _next(disputes)
DISPUTES: Final = _with_postings(
    _disputes,
    _disputes.outerjoin(payments, payments.c.id == _disputes.c.payment_id),
    OF_DISPUTES,
    (
        *columns(_disputes, "id", "merchant_id", "env", "reference"),
        # One that matches no payment has none of these.
        func.coalesce(payments.c.status, ""),
        func.coalesce(payments.c.amount, 0),
        func.coalesce(payments.c.fee_amount, 0),
        _disputes.c.currency,
        _disputes.c.provider_account,
        _disputes.c.status.label("dispute_status"),
        _disputes.c.amount.label("disputed"),
        _disputes.c.borne_by,
        _disputes.c.taken,
    ),
)
_movements: Final = _next(treasury_movements)
_OF_TREASURY: Final = postings.c.cause == TREASURY_MOVED
#: Movements of our own money with their postings.
TREASURY: Final = _with_postings(_movements, _movements, _OF_TREASURY, [*_movements.c])
#: Whether the audit log has an entry about the subject: two people settled it against the provider's answer.
_DECISIONS: Final = ("payment.settled", "refund.settled", "late_money.resolved")
SETTLED_BY_PEOPLE: Final = (
    select(audit_log.c.number)
    .where(audit_log.c.subject == bindparam("about"), or_(*(audit_log.c.action == action for action in _DECISIONS)))
    .limit(1)
)


def _is_of(table: Table, causes: ColumnElement[bool]) -> ColumnElement[bool]:
    same = [table.c[name] == postings.c[name] for name in ("merchant_id", "env", "currency") if name in table.c]
    return and_(table.c.id == postings.c.subject_id, causes, *same)


#: Postings without a payment, refund, dispute or movement of our own money of the same merchant, environment and
#: currency.
ORPHAN_POSTINGS: Final = (
    select(postings.c.id, postings.c.cause, postings.c.subject_id)
    .outerjoin(payments, _is_of(payments, OF_PAYMENTS))
    .outerjoin(refunds, _is_of(refunds, OF_REFUNDS))
    .outerjoin(disputes, _is_of(disputes, OF_DISPUTES))
    .outerjoin(treasury_movements, _is_of(treasury_movements, _OF_TREASURY))
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
