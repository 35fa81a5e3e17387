"""Compares payments and refunds with their postings, and postings with their payments and refunds.

Each comparison is one statement. It sees one instant, so a service at work never looks wrong.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final

from sqlalchemy import Executable

from guichet.db.engine import Row
from guichet.db.tables import postings
from guichet.domain import posting_rules as ledger
from guichet.domain.messages import Amount, Fact, Message
from guichet.domain.money import Hundredths
from guichet.ledger.audit import expectations
from guichet.ledger.audit.audit_state import BEFORE_ALL, ROWS_AT_ONCE, AuditState, id_ranges, next_id_range
from guichet.ledger.audit.expectations import Expected
from guichet.ledger.audit.faults import AuditFault
from guichet.ledger.audit.subject_statements import (
    DISPUTES,
    ORPHAN_POSTINGS,
    PAYMENTS,
    REFUNDS,
    SETTLED_BY_PEOPLE,
    TREASURY,
    DisputeFacts,
    Leg,
    PaymentFacts,
    RefundFacts,
    Subject,
    split,
    split_movement,
)

_NEXT_POSTINGS: Final = next_id_range(postings.c.id)
#: The causes that move our money with a provider: towards us (-1: a float is the source when it grows) or back.
_FLOAT_MOVES: Final = {
    ledger.COLLECTED: -1,
    ledger.DISBURSED: 1,
    ledger.PAID_LATE: -1,
    ledger.LATE_RETURNED: 1,
    ledger.LATE_RETURNED_AGAIN: 1,
    ledger.REFUND_PAID_LATE: 1,
    ledger.REFUND_FAILED_LATE: -1,
    ledger.REFUND_RETURNED: 1,
    ledger.REFUND_RETURNED_AGAIN: 1,
}


async def _groups(state: AuditState, statement: Executable, noun: str) -> AsyncIterator[list[Row]]:
    """The rows of each subject with its postings, in the order of their ids; counts the subjects."""
    after = BEFORE_ALL
    while rows := await state.db.scan(statement, after=after, most=ROWS_AT_ONCE):
        groups = [list(group) for _, group in groupby(rows, key=itemgetter(0))]
        for group in groups:
            yield group
        after = rows[-1][0]
        state.count(noun, len(groups))


async def check_payments(state: AuditState) -> Message | None:
    """Every succeeded or refunded payment has exactly its collection postings, every other one has none."""
    async for group in _groups(state, PAYMENTS, "payments"):
        subject, facts, legs = split(group, len(PaymentFacts._fields))
        fault = _payment_fault(state, subject, PaymentFacts(*facts), legs)
        if fault := fault or await _override_fault(state, subject, legs):
            return AuditFault.OF_PAYMENT(**_identity(subject), status=subject.status, audit_fault=fault)
    return None


async def check_refunds(state: AuditState) -> Message | None:
    """Every refund has the postings of its state: held, and then disbursed or released."""
    async for group in _groups(state, REFUNDS, "refunds"):
        subject, facts, legs = split(group, len(RefundFacts._fields))
        fault = _refund_fault(state, subject, RefundFacts(*facts), legs)
        if fault := fault or await _override_fault(state, subject, legs):
            return AuditFault.OF_REFUND(**_identity(subject), status=subject.status, audit_fault=fault)
    return None


async def check_disputes(state: AuditState) -> Message | None:
    """Every dispute has the postings of its state: taken back, and then returned or charged to somebody."""
    async for group in _groups(state, DISPUTES, "disputes"):
        subject, facts, legs = split(group, len(DisputeFacts._fields))
        if fault := _dispute_fault(state, subject, DisputeFacts(*facts), legs):
            return AuditFault.OF_DISPUTE(**_identity(subject), audit_fault=fault)
    return None


async def check_treasury(state: AuditState) -> Message | None:
    """Every movement of our own money that was posted has exactly its posting, every other one has none."""
    async for group in _groups(state, TREASURY, "movements"):
        movement, legs = split_movement(group)
        expected = {ledger.TREASURY_MOVED: movement.entries} if movement.status == "posted" else {}
        subject = Subject(
            id=movement.id,
            merchant_id=movement.merchant_id,
            env="live",
            reference=movement.reference,
            status="succeeded",
            amount=movement.amount,
            fee_amount=Hundredths(0),
            currency=movement.currency,
            provider_account="",
        )
        if fault := _difference(subject, expected, legs):
            return AuditFault.OF_TREASURY(reference=movement.reference, audit_fault=fault)
        _add_floats(state, subject, legs)
    return None


async def check_orphan_postings(state: AuditState) -> Message | None:
    """Every posting belongs to a payment, refund or dispute of its own merchant, environment and currency."""
    async for after, last, rows in id_ranges(state.db, _NEXT_POSTINGS):
        for posting_id, cause, subject_id in await state.db.scan(ORPHAN_POSTINGS, after=after, last=last):
            nouns = {
                "payment": ledger.PAYMENT_CAUSES,
                "refund": ledger.REFUND_CAUSES,
                "dispute": ledger.DISPUTE_CAUSES,
                "movement": (ledger.TREASURY_MOVED,),
            }
            noun = next((name for name, causes in nouns.items() if cause in causes), "subject")
            return AuditFault.ORPHAN(posting=posting_id, cause=cause, noun=noun, number=subject_id)
        state.count("postings", rows)
    return None


async def _override_fault(state: AuditState, subject: Subject, legs: list[Leg]) -> Message | None:
    """Postings against MANUAL_SETTLEMENT are right only if the audit log says which people decided so."""
    if not any(ledger.MANUAL_SETTLEMENT in (leg.source, leg.destination) for leg in legs):
        return None
    decided = await state.db.scan(SETTLED_BY_PEOPLE, about=subject.reference)
    return None if decided else AuditFault.NOBODY_DECIDED()


def _payment_fault(state: AuditState, payment: Subject, facts: PaymentFacts, legs: list[Leg]) -> Message | None:
    if (payment.status == "refunded") != (facts.refund_status == "succeeded"):
        status = facts.refund_status
        return AuditFault.REFUND_STATUS(status=status) if status else AuditFault.REFUND_MISSING()
    expected = expectations.payment(payment, facts.late_stage, legs)
    if not expected:
        return AuditFault.BOOKED_ALL_THE_SAME(posting=legs[0].id) if legs else None
    if any(leg.destination == ledger.SUSPENSE for leg in legs) and payment.env == "test":
        return AuditFault.TEST_IN_SUSPENSE()
    expected |= expectations.charged_fee(payment, ledger.PAYMENT_CHARGED, legs)
    if fault := _difference(payment, expected, legs):
        return fault
    _add_expected(state, payment, legs)
    expectations.add_charged_fee(state, payment, ledger.PAYMENT_CHARGED, legs)
    return None


def _refund_fault(state: AuditState, refund: Subject, facts: RefundFacts, legs: list[Leg]) -> Message | None:
    its_payment = (facts.payment_merchant, facts.payment_env, facts.payment_currency)
    if its_payment != (refund.merchant_id, refund.env, refund.currency):
        return AuditFault.OTHER_OWNER()
    if facts.returned != refund.amount + refund.fee_amount:
        debited = Amount(refund.amount + refund.fee_amount)
        return AuditFault.OTHER_AMOUNT(returned=Amount(facts.returned), taken=debited)
    if refund.status == "succeeded" and not facts.held:
        return AuditFault.NOT_HELD()
    if refund.status == "succeeded" and facts.payment_status != "refunded":
        return AuditFault.PAYMENT_STATUS(status=facts.payment_status)
    expected = expectations.refund(refund, facts, legs)
    if expected.keys() & {ledger.DISBURSED, ledger.REFUND_PAID_LATE, ledger.REFUND_RETURNED}:
        expected |= expectations.charged_fee(refund, ledger.REFUND_CHARGED, legs)
    if fault := _difference(refund, expected, legs):
        return fault
    _add_expected(state, refund, legs)
    expectations.add_charged_fee(state, refund, ledger.REFUND_CHARGED, legs)
    return None


def _dispute_fault(state: AuditState, dispute: Subject, facts: DisputeFacts, legs: list[Leg]) -> Message | None:
    if fault := _difference(dispute, expectations.dispute(dispute, facts), legs):
        return fault
    _add_moved(state, dispute, legs, {ledger.DISPUTE_OPENED: 1, ledger.DISPUTE_WON: -1}, facts.disputed)
    return None


def _add_floats(state: AuditState, subject: Subject, legs: Iterable[Leg]) -> None:
    """What a movement of our own money adds to floats: its posting, which was compared with its row."""
    for leg in legs:
        for account, sign in ((leg.destination, 1), (leg.source, -1)):
            if account.startswith(ledger.FLOAT) and leg.id <= state.horizon:
                key = subject.merchant_id, subject.env, subject.currency, account
                state.expected_floats[key] += sign * leg.amount


def _difference(subject: Subject, expected: Expected, legs: Iterable[Leg]) -> Message | None:
    unposted = {(cause, posting.leg): posting for cause, entries in expected.items() for posting in entries}
    for leg in legs:
        posting = unposted.pop((leg.cause, leg.leg), None)
        if posting is None:
            return AuditFault.NOT_ITS_POSTING(posting=leg.id, cause=leg.cause, leg=leg.leg)
        if (leg.env, leg.currency) != (subject.env, subject.currency):
            return AuditFault.OTHER_ENVIRONMENT(posting=leg.id, env=leg.env, currency=leg.currency)
        if (leg.source, leg.destination, leg.amount) != (posting.source, posting.destination, posting.amount):
            return AuditFault.OTHER_MOVE(
                posting=leg.id,
                moved=Amount(leg.amount),
                source=leg.source,
                destination=leg.destination,
                wanted=Amount(posting.amount),
                right_source=posting.source,
                right_destination=posting.destination,
            )
    for cause, missing in unposted:
        return AuditFault.POSTING_MISSING(cause=cause, leg=missing)
    return None


def _identity(subject: Subject) -> dict[str, Fact]:
    return {"reference": subject.reference, "env": subject.env}


def _add_expected(state: AuditState, subject: Subject, legs: list[Leg]) -> None:
    _add_moved(state, subject, legs, _FLOAT_MOVES, expectations.total(subject))


def _add_moved(
    state: AuditState, subject: Subject, legs: list[Leg], signs: Mapping[str, int], amount: Hundredths
) -> None:
    """Adds what the provider moved at each cause, which is `amount` by the subject's own facts. Where the horizon lies
    between two postings of a cause, the posted amounts before it count instead."""
    for cause, sign in signs.items():
        account = expectations.float_account(subject, cause, legs)
        floats = [leg for leg in legs if leg.cause == cause and account in (leg.source, leg.destination)]
        before_horizon = [leg for leg in floats if leg.id <= state.horizon]
        if not before_horizon:
            continue
        moved = sign * amount
        if len(before_horizon) < len(floats):
            moved = sum(leg.amount * ((leg.destination == account) - (leg.source == account)) for leg in before_horizon)
        state.expected_floats[subject.merchant_id, subject.env, subject.currency, account] += moved
