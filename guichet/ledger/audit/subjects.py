"""Compares payments and refunds with their postings, and postings with their payments and refunds.

Each comparison is one statement. It sees one instant, so a service at work never looks wrong.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from guichet.db.tables import postings
from guichet.domain import posting_rules as ledger
from guichet.domain.late_results import LateStage
from guichet.domain.money import Hundredths, plain, round_to_currency
from guichet.domain.posting_rules import (
    COLLECTED,
    DISBURSED,
    HELD,
    LATE_CREDITED,
    LATE_RETURNED,
    LATE_SUSPENSE,
    MANUAL_SETTLEMENT,
    PAID_LATE,
    PAYMENT_CAUSES,
    RECEIVABLE,
    RECEIVABLE_PAID,
    REFUND_CAUSES,
    REFUND_FAILED_LATE,
    REFUND_LATE_CREDITED,
    REFUND_PAID_LATE,
    RELEASED,
    SUSPENSE,
    UNSUSPENDED,
    WALLET,
)
from guichet.ledger.audit.audit_state import BEFORE_ALL, ROWS_AT_ONCE, AuditState, id_ranges, next_id_range
from guichet.ledger.audit.subject_statements import (
    ORPHAN_POSTINGS,
    PAYMENTS,
    REFUNDS,
    SETTLED_BY_PEOPLE,
    Leg,
    PaymentFacts,
    RefundFacts,
    Subject,
    split,
)

_NEXT_POSTINGS: Final = next_id_range(postings.c.id)
#: The postings that a subject must have, by cause.
Expected = dict[str, list[ledger.Posting]]
#: The causes that move money of an operator: towards us (-1: it owes us more) or back.
_OPERATOR_MOVES: Final = {
    COLLECTED: -1,
    DISBURSED: 1,
    PAID_LATE: -1,
    LATE_RETURNED: 1,
    REFUND_PAID_LATE: 1,
    REFUND_FAILED_LATE: -1,
}


async def check_payments(state: AuditState) -> str | None:
    """Every succeeded or refunded payment has exactly its collection postings, every other one has none."""
    after = BEFORE_ALL
    while rows := await state.db.scan(PAYMENTS, after=after, most=ROWS_AT_ONCE):
        subjects = 0
        for _, group in groupby(rows, key=lambda row: row[0]):
            subject, facts, legs = split(list(group), len(PaymentFacts._fields))
            fault = _payment_fault(state, subject, PaymentFacts(*facts), legs)
            if fault := fault or await _override_fault(state, subject, legs):
                return f"Payment {subject.reference} ({subject.env}, {subject.status}): {fault}."
            subjects += 1
        after = rows[-1][0]
        state.count("payments", subjects)
    return None


async def check_refunds(state: AuditState) -> str | None:
    """Every refund has the postings of its state: held, and then disbursed or released."""
    after = BEFORE_ALL
    while rows := await state.db.scan(REFUNDS, after=after, most=ROWS_AT_ONCE):
        subjects = 0
        for _, group in groupby(rows, key=lambda row: row[0]):
            subject, facts, legs = split(list(group), len(RefundFacts._fields))
            fault = _refund_fault(state, subject, RefundFacts(*facts), legs)
            if fault := fault or await _override_fault(state, subject, legs):
                return f"Refund {subject.reference} ({subject.env}, {subject.status}): {fault}."
            subjects += 1
        after = rows[-1][0]
        state.count("refunds", subjects)
    return None


async def check_orphan_postings(state: AuditState) -> str | None:
    """Every posting belongs to a payment or refund of its own merchant, environment and currency."""
    async for after, last, rows in id_ranges(state.db, _NEXT_POSTINGS):
        for posting_id, cause, subject_id in await state.db.scan(ORPHAN_POSTINGS, after=after, last=last):
            noun = "payment" if cause in PAYMENT_CAUSES else "refund" if cause in REFUND_CAUSES else "subject"
            return (
                f"Posting {posting_id} ({cause}) belongs to no {noun} {subject_id} "
                "of its merchant, environment and currency."
            )
        state.count("postings", rows)
    return None


async def _override_fault(state: AuditState, subject: Subject, legs: list[Leg]) -> str | None:
    """Postings against MANUAL_SETTLEMENT are right only if the audit log says which people decided so."""
    if not any(MANUAL_SETTLEMENT in (leg.source, leg.destination) for leg in legs):
        return None
    actions = ("payment.settled", "refund.settled", "late_money.resolved")
    for action in actions:
        if await state.db.scan(SETTLED_BY_PEOPLE, about=subject.reference, action=action):
            return None
    return "it was settled by hand, and the audit log does not say by whom"


def _payment_fault(state: AuditState, payment: Subject, facts: PaymentFacts, legs: list[Leg]) -> str | None:
    if (payment.status == "refunded") != (facts.refund_status == "succeeded"):
        return f"its refund is {facts.refund_status or 'missing'}"
    expected = _late_payment(payment, facts.late_stage) if payment.status == "failed" else {}
    if payment.status not in ("succeeded", "refunded") and not expected:
        return f"posting {legs[0].id} books it all the same" if legs else None
    if not expected:
        expected = _collection(payment, legs)
    if any(leg.destination == SUSPENSE for leg in legs) and payment.env == "test":
        return "a test payment never waits in suspense"
    if fault := _difference(payment, expected, legs):
        return fault
    _add_expected(state, payment, legs)
    return None


def _collection(payment: Subject, legs: list[Leg]) -> Expected:
    suspended = any(leg.destination == SUSPENSE for leg in legs)
    money = payment.amount, payment.fee_amount, payment.currency
    expected = {COLLECTED: ledger.collection(_account(payment, COLLECTED, legs), *money, to_suspense=suspended)}
    # Whether it was released or still waits is compared with the wallet entries (`accounts.py`).
    if suspended and any(leg.cause == UNSUSPENDED for leg in legs):
        expected[UNSUSPENDED] = ledger.suspense_release(payment.amount)
    return expected


def _late_payment(payment: Subject, stage: LateStage | None) -> Expected:
    """The postings of a failed payment: none, unless it was paid after its failure (D86)."""
    if stage in (None, "asking"):
        return {}
    operator, total = ledger.operator_account(payment.operator), _total(payment)
    expected = {PAID_LATE: ledger.into_late_suspense(operator, total)}
    if stage == "credited":
        money = payment.amount, payment.fee_amount, payment.currency
        expected[LATE_CREDITED] = ledger.collection(LATE_SUSPENSE, *money)
    elif stage == "returned":
        expected[LATE_RETURNED] = ledger.late_returned(operator, total)
    return expected


def _late_refund(refund: Subject, stage: LateStage | None, legs: list[Leg]) -> Expected:
    """What was posted after the end of a refund was told: it was paid, or came back, all the same (D86)."""
    if stage in (None, "asking"):
        return {}
    operator = ledger.operator_account(refund.operator)
    money = refund.amount, refund.fee_amount, refund.currency
    if refund.status == "succeeded":
        expected = {REFUND_FAILED_LATE: ledger.into_late_suspense(operator, _total(refund))}
        if stage == "credited":
            expected[REFUND_LATE_CREDITED] = ledger.collection(LATE_SUSPENSE, *money)
        return expected
    expected = {REFUND_PAID_LATE: ledger.refund_disbursed(operator, *money, held_in=RECEIVABLE)}
    if stage == "paid":
        by_hand = any(leg.source == MANUAL_SETTLEMENT for leg in legs)
        account = MANUAL_SETTLEMENT if by_hand else WALLET
        expected[RECEIVABLE_PAID] = ledger.receivable_paid(account, refund.amount)
    return expected


def _account(subject: Subject, cause: str, legs: list[Leg]) -> str:
    """The account that a settlement moved money of: the operator's, or MANUAL_SETTLEMENT when people overrode it."""
    by_hand = any(leg.cause == cause and MANUAL_SETTLEMENT in (leg.source, leg.destination) for leg in legs)
    return MANUAL_SETTLEMENT if by_hand else ledger.operator_account(subject.operator)


def _total(subject: Subject) -> Hundredths:
    """What the provider moved."""
    return round_to_currency(Hundredths(subject.amount + subject.fee_amount), subject.currency)


def _refund_fault(state: AuditState, refund: Subject, facts: RefundFacts, legs: list[Leg]) -> str | None:
    its_payment = (facts.payment_merchant, facts.payment_env, facts.payment_currency)
    if its_payment != (refund.merchant_id, refund.env, refund.currency):
        return "its payment is of another merchant, environment or currency"
    if facts.returned != refund.amount + refund.fee_amount:
        return f"it returns {plain(facts.returned)}, the payment took {plain(refund.amount + refund.fee_amount)}"
    if refund.status == "succeeded" and not facts.held:
        return "it was paid out without having been held"
    if refund.status == "succeeded" and facts.payment_status != "refunded":
        return f"its payment is {facts.payment_status}"
    expected = _late_refund(refund, facts.late_stage, legs)
    if facts.held:
        expected[HELD] = ledger.refund_hold(refund.amount)
        if refund.status == "succeeded":
            account = _account(refund, DISBURSED, legs)
            expected[DISBURSED] = ledger.refund_disbursed(account, refund.amount, refund.fee_amount, refund.currency)
        elif refund.status == "failed":
            expected[RELEASED] = ledger.refund_release(refund.amount)
    if fault := _difference(refund, expected, legs):
        return fault
    _add_expected(state, refund, legs)
    return None


def _difference(subject: Subject, expected: dict[str, list[ledger.Posting]], found: Iterable[Leg]) -> str | None:
    wanted = {(cause, each.leg): each for cause, entries in expected.items() for each in entries}
    for leg in found:
        posting = wanted.pop((leg.cause, leg.leg), None)
        if posting is None:
            return f"posting {leg.id} ({leg.cause}, {leg.leg}) is not one of its postings"
        if (leg.env, leg.currency) != (subject.env, subject.currency):
            return f"posting {leg.id} is booked in {leg.env} {leg.currency}"
        if (leg.source, leg.destination, leg.amount) != (posting.source, posting.destination, posting.amount):
            return (
                f"posting {leg.id} moves {plain(leg.amount)} from {leg.source} to {leg.destination}, "
                f"not {plain(posting.amount)} from {posting.source} to {posting.destination}"
            )
    for cause, missing in wanted:
        return f"its posting {cause}, {missing} is missing"
    return None


def _add_expected(state: AuditState, subject: Subject, legs: list[Leg]) -> None:
    """Adds what the operator moved at each cause, by the payment's own amounts. Where the horizon lies between two
    postings of a cause, the posted amounts before it count instead."""
    account = ledger.operator_account(subject.operator)
    for cause, sign in _OPERATOR_MOVES.items():
        operators = [leg for leg in legs if leg.cause == cause and account in (leg.source, leg.destination)]
        before_horizon = [leg for leg in operators if leg.id <= state.horizon]
        if not before_horizon:
            continue
        moved = sign * _total(subject)
        if len(before_horizon) < len(operators):
            moved = sum(leg.amount * ((leg.destination == account) - (leg.source == account)) for leg in before_horizon)
        state.expected_operators[subject.merchant_id, subject.env, subject.currency, account] += moved
