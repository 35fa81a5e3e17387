"""The postings that a payment, a refund or a dispute must have, derived from its row (`subjects.py` compares them)."""

from collections.abc import Sequence

from guichet.domain import posting_rules as ledger
from guichet.domain.late_results import LateStage
from guichet.domain.money import Hundredths, round_to_currency
from guichet.ledger.audit.audit_state import AuditState
from guichet.ledger.audit.subject_statements import DisputeFacts, Leg, RefundFacts, Subject

#: The postings that a subject must have, by cause.
Expected = dict[str, list[ledger.Posting]]


def payment(payment: Subject, late_stage: LateStage | None, legs: list[Leg]) -> Expected:
    """Of a payment that succeeded its collection, of a failed one that was paid all the same what followed, else
    nothing. The `legs` say what only they know: whether it was suspended, or settled by hand."""
    if payment.status in ("succeeded", "refunded"):
        return _collection(payment, legs)
    return _late_payment(payment, late_stage, legs) if payment.status == "failed" else {}


def refund(refund: Subject, facts: RefundFacts, legs: list[Leg]) -> Expected:
    """A held refund, which was then disbursed or released; and what followed after its end was told."""
    expected = _late_refund(refund, facts.late_stage, legs)
    if facts.held:
        expected[ledger.HELD] = ledger.refund_hold(refund.amount)
        if refund.status == "succeeded":
            account = _account(refund, ledger.DISBURSED, legs)
            money = refund.amount, refund.fee_amount, refund.currency
            expected[ledger.DISBURSED] = ledger.refund_disbursed(account, *money)
        elif refund.status == "failed":
            expected[ledger.RELEASED] = ledger.refund_release(refund.amount)
    return expected


def dispute(dispute: Subject, facts: DisputeFacts) -> Expected:
    """What the bank took back, and then returned or somebody bore."""
    account = ledger.float_account(dispute.provider_account, "", dispute.currency)
    if not facts.taken:
        return {}
    expected = {ledger.DISPUTE_OPENED: ledger.dispute_opened(account, facts.disputed)}
    if facts.status == "won":
        expected[ledger.DISPUTE_WON] = ledger.dispute_won(account, facts.disputed)
    if facts.borne_by is not None:
        merchant_part = Hundredths(min(facts.disputed, dispute.amount) if facts.borne_by == "merchant" else 0)
        service_part = Hundredths(facts.disputed - merchant_part)
        expected[ledger.DISPUTE_CHARGED] = ledger.dispute_charged(merchant_part, service_part)
    return expected


def _collection(payment: Subject, legs: list[Leg]) -> Expected:
    suspended = any(leg.destination == ledger.SUSPENSE for leg in legs)
    money = payment.amount, payment.fee_amount, payment.currency
    account = _account(payment, ledger.COLLECTED, legs)
    expected = {ledger.COLLECTED: ledger.collection(account, *money, to_suspense=suspended)}
    # Whether it was released or still waits is compared with the wallet entries (`accounts.py`).
    if suspended and any(leg.cause == ledger.UNSUSPENDED for leg in legs):
        expected[ledger.UNSUSPENDED] = ledger.suspense_release(payment.amount)
    return expected


def _late_payment(payment: Subject, stage: LateStage | None, legs: list[Leg]) -> Expected:
    """The postings of a failed payment: none, unless it was paid after its failure."""
    if stage in (None, "asking"):
        return {}
    moved = total(payment)
    expected = {ledger.PAID_LATE: ledger.into_late_suspense(float_account(payment, ledger.PAID_LATE, legs), moved)}
    money = payment.amount, payment.fee_amount, payment.currency
    taken_back = sum(leg.cause == ledger.LATE_TAKEN_BACK and leg.source == ledger.WALLET for leg in legs)
    expected[ledger.LATE_TAKEN_BACK] = [
        posting for time in range(taken_back) for posting in ledger.late_taken_back(*money, time=time)
    ]
    expected[ledger.LATE_CREDITED] = [
        posting
        for time in range(taken_back + (stage == "credited"))
        for posting in ledger.numbered(ledger.collection(ledger.LATE_SUSPENSE, *money), time)
    ]
    if stage == "returned":
        expected[ledger.LATE_RETURNED] = ledger.late_returned(_account(payment, ledger.LATE_RETURNED, legs), moved)
    expected[ledger.LATE_RETURNED_AGAIN] = _returned_again(payment, ledger.LATE_RETURNED_AGAIN, legs)
    return expected


def _late_refund(refund: Subject, stage: LateStage | None, legs: list[Leg]) -> Expected:
    """What was posted after the end of a refund was told: it was paid, or came back, all the same."""
    if stage in (None, "asking"):
        return {}
    money = refund.amount, refund.fee_amount, refund.currency
    if refund.status == "succeeded":
        account = float_account(refund, ledger.REFUND_FAILED_LATE, legs)
        expected = {ledger.REFUND_FAILED_LATE: ledger.into_late_suspense(account, total(refund))}
        if stage == "credited":
            expected[ledger.REFUND_LATE_CREDITED] = ledger.collection(ledger.LATE_SUSPENSE, *money)
        return expected
    if stage not in ("receivable", "paid"):
        return _refund_made_good(refund, stage, legs)
    account = float_account(refund, ledger.REFUND_PAID_LATE, legs)
    expected = {ledger.REFUND_PAID_LATE: ledger.refund_disbursed(account, *money, held_in=ledger.RECEIVABLE)}
    if stage == "paid":
        by_hand = any(leg.source == ledger.MANUAL_SETTLEMENT for leg in legs)
        account = ledger.MANUAL_SETTLEMENT if by_hand else ledger.WALLET
        expected[ledger.RECEIVABLE_PAID] = ledger.receivable_paid(account, refund.amount)
    return expected


def _refund_made_good(refund: Subject, stage: LateStage | None, legs: list[Leg]) -> Expected:
    """Of a failed refund: the wallet gave its money, once for each time that it was not credited again."""
    money = refund.amount, refund.fee_amount, refund.currency
    taken = max(1, sum(leg.cause == ledger.REFUND_MADE_GOOD and leg.source == ledger.WALLET for leg in legs))
    expected = {
        ledger.REFUND_MADE_GOOD: [
            posting for time in range(taken) for posting in ledger.late_taken_back(*money, time=time)
        ],
        ledger.REFUND_LATE_CREDITED: [
            posting
            for time in range(1, taken + (stage == "credited"))
            for posting in ledger.numbered(ledger.collection(ledger.LATE_SUSPENSE, *money), time)
        ],
        ledger.REFUND_RETURNED_AGAIN: _returned_again(refund, ledger.REFUND_RETURNED_AGAIN, legs),
    }
    if stage == "returned":
        account = _account(refund, ledger.REFUND_RETURNED, legs)
        expected[ledger.REFUND_RETURNED] = ledger.late_returned(account, total(refund))
    return expected


def _account(subject: Subject, cause: str, legs: list[Leg]) -> str:
    """The account that a settlement moved money of: a float, or MANUAL_SETTLEMENT when people overrode the provider."""
    by_hand = any(leg.cause == cause and ledger.MANUAL_SETTLEMENT in (leg.source, leg.destination) for leg in legs)
    return ledger.MANUAL_SETTLEMENT if by_hand else float_account(subject, cause, legs)


def float_account(subject: Subject, cause: str, legs: Sequence[Leg]) -> str:
    """The float that a cause moved: of the subject's own provider account and currency. Which wallet of the account it
    is, only the provider's folder knows, so that of the posting counts."""
    accounts = (account for leg in legs if leg.cause == cause for account in (leg.source, leg.destination))
    own = (account for account in accounts if ledger.is_float_of(account, subject.provider_account, subject.currency))
    return next(own, ledger.float_account(subject.provider_account, "", subject.currency))


def _returned_again(subject: Subject, cause: str, legs: Sequence[Leg]) -> list[ledger.Posting]:
    account = float_account(subject, cause, legs)
    again = [leg for leg in legs if leg.cause == cause]
    return [ledger.Posting(leg.leg, ledger.MANUAL_SETTLEMENT, account, total(subject)) for leg in again]


def total(subject: Subject) -> Hundredths:
    """What the provider moved."""
    return round_to_currency(Hundredths(subject.amount + subject.fee_amount), subject.currency)


def charged_fee(subject: Subject, cause: str, legs: Sequence[Leg]) -> dict[str, list[ledger.Posting]]:
    """The posting that a provider's fee must be, if there is one: once, in live, between the provider's fees and a
    float of its account, and no more than the provider moved. Only the statement names the amount."""
    charged = next((leg for leg in legs if leg.cause == cause), None)
    if charged is None or subject.env != "live" or charged.amount > total(subject):
        return {}
    sign = 1 if charged.source == ledger.PROVIDER_FEES else -1
    return {cause: [ledger.provider_fee(float_account(subject, cause, legs), Hundredths(sign * charged.amount))]}


def add_charged_fee(state: AuditState, subject: Subject, cause: str, legs: Sequence[Leg]) -> None:
    """Adds the fee to what the float must hold, if it lies before the horizon."""
    account = float_account(subject, cause, legs)
    for leg in legs:
        if leg.cause == cause and leg.id <= state.horizon:
            signed = leg.amount * ((leg.destination == account) - (leg.source == account))
            state.expected_floats[subject.merchant_id, subject.env, subject.currency, account] += signed
