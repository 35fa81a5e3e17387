"""Compares payments and refunds with their postings, and postings with their payments and refunds.

Each comparison is one statement. It sees one instant, so a service at work never looks wrong.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from guichet.db.tables import postings
from guichet.domain import posting_rules as ledger
from guichet.domain.money import Hundredths, plain, round_to_currency
from guichet.domain.payments import RefundStatus
from guichet.domain.posting_rules import (
    COLLECTED,
    DISBURSED,
    HELD,
    PAYMENT_CAUSES,
    PAYMENT_CHARGED,
    REFUND_CAUSES,
    REFUND_CHARGED,
    RELEASED,
    SUSPENSE,
    UNSUSPENDED,
)
from guichet.ledger.audit import provider_fees
from guichet.ledger.audit.audit_state import BEFORE_ALL, ROWS_AT_ONCE, AuditState, id_ranges, next_id_range
from guichet.ledger.audit.subject_statements import ORPHAN_POSTINGS, PAYMENTS, REFUNDS, Leg, RefundFacts, Subject, split

_NEXT_POSTINGS: Final = next_id_range(postings.c.id)


async def check_payments(state: AuditState) -> str | None:
    """Every succeeded or refunded payment has exactly its collection postings, every other one has none."""
    after = BEFORE_ALL
    while rows := await state.db.scan(PAYMENTS, after=after, most=ROWS_AT_ONCE):
        subjects = 0
        for _, group in groupby(rows, key=lambda row: row[0]):
            subject, (refund_status,), legs = split(list(group), 1)
            if fault := _payment_fault(state, subject, refund_status, legs):
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
            if fault := _refund_fault(state, subject, RefundFacts(*facts), legs):
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


def _payment_fault(
    state: AuditState, payment: Subject, refund_status: RefundStatus | None, legs: list[Leg]
) -> str | None:
    if (payment.status == "refunded") != (refund_status == "succeeded"):
        return f"its refund is {refund_status or 'missing'}"
    if payment.status not in ("succeeded", "refunded"):
        return f"posting {legs[0].id} books it all the same" if legs else None
    suspended = any(leg.destination == SUSPENSE for leg in legs)
    if suspended and payment.env == "test":
        return "a test payment never waits in suspense"
    expected = {
        COLLECTED: ledger.collection(
            payment.operator, payment.amount, payment.fee_amount, payment.currency, to_suspense=suspended
        )
    }
    # Whether it was released or still waits is compared with the wallet entries (`accounts.py`).
    if suspended and any(leg.cause == UNSUSPENDED for leg in legs):
        expected[UNSUSPENDED] = ledger.suspense_release(payment.amount)
    expected |= provider_fees.expected(payment, PAYMENT_CHARGED, legs)
    if fault := _difference(payment, expected, legs):
        return fault
    _add_expected(state, payment, [leg for leg in legs if leg.cause != PAYMENT_CHARGED], -1)
    provider_fees.add_expected(state, payment, PAYMENT_CHARGED, legs)
    return None


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
    expected: dict[str, list[ledger.Posting]] = {}
    if facts.held:
        expected[HELD] = ledger.refund_hold(refund.amount)
        if refund.status == "succeeded":
            expected[DISBURSED] = ledger.refund_disbursed(
                refund.operator, refund.amount, refund.fee_amount, refund.currency
            )
            expected |= provider_fees.expected(refund, REFUND_CHARGED, legs)
        elif refund.status == "failed":
            expected[RELEASED] = ledger.refund_release(refund.amount)
    if fault := _difference(refund, expected, legs):
        return fault
    _add_expected(state, refund, [leg for leg in legs if leg.cause == DISBURSED], 1)
    provider_fees.add_expected(state, refund, REFUND_CHARGED, legs)
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


def _add_expected(state: AuditState, subject: Subject, legs: list[Leg], sign: int) -> None:
    """Adds what the operator moved, by the payment's own amounts. Where the horizon lies between two postings of the
    subject, the posted amounts before it count instead."""
    account = ledger.operator_account(subject.operator)
    operators = [leg for leg in legs if account in (leg.source, leg.destination)]
    before_horizon = [leg for leg in operators if leg.id <= state.horizon]
    if not before_horizon:
        return
    moved = sign * round_to_currency(Hundredths(subject.amount + subject.fee_amount), subject.currency)
    if len(before_horizon) < len(operators):
        moved = sum(leg.amount * ((leg.destination == account) - (leg.source == account)) for leg in before_horizon)
    state.expected_operators[subject.merchant_id, subject.env, subject.currency, account] += moved
