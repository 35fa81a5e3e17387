"""What the audit can know of the postings of a provider's fees: everything but the amount, which only the
statement names."""

from collections.abc import Sequence

from guichet.domain.money import Hundredths, round_to_currency
from guichet.domain.posting_rules import PROVIDER_FEES, Posting, provider_fee
from guichet.ledger.audit.audit_state import AuditState
from guichet.ledger.audit.expectations import float_account
from guichet.ledger.audit.subject_statements import Leg, Subject


def expected(subject: Subject, cause: str, legs: Sequence[Leg]) -> dict[str, list[Posting]]:
    """The posting that a fee of this payment or refund must be, if there is one: once, in live, between the provider's
    fees and a float of its account, and no more than the provider moved."""
    charged = next((leg for leg in legs if leg.cause == cause), None)
    moved = round_to_currency(Hundredths(subject.amount + subject.fee_amount), subject.currency)
    if charged is None or subject.env != "live" or charged.amount > moved:
        return {}
    sign = 1 if charged.source == PROVIDER_FEES else -1
    return {cause: [provider_fee(float_account(subject, cause, legs), Hundredths(sign * charged.amount))]}


def add_expected(state: AuditState, subject: Subject, cause: str, legs: Sequence[Leg]) -> None:
    """Adds the fee to what the float must hold, if it lies before the horizon."""
    account = float_account(subject, cause, legs)
    for leg in legs:
        if leg.cause == cause and leg.id <= state.horizon:
            signed = leg.amount * ((leg.destination == account) - (leg.source == account))
            state.expected_floats[subject.merchant_id, subject.env, subject.currency, account] += signed
