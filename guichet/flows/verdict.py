"""Whether an operator's success is ours: amount and currency that come back are compared with what was asked."""

from guichet.domain.money import round_to_currency
from guichet.domain.payments import Payment
from guichet.observability import log
from guichet.operators.base import Succeeded


def confirms(payment: Payment, answer: Succeeded) -> bool:
    """False, and said loudly, when the operator moved something else than what we asked: nothing is credited."""
    asked = round_to_currency(payment.total_amount, payment.currency)
    if answer.amount == asked and answer.currency == payment.currency:
        return True
    log.error(
        "operator.mismatch",
        reference=payment.reference,
        connection=payment.connection,
        asked=asked,
        asked_currency=payment.currency,
        answered=answer.amount,
        answered_currency=answer.currency,
    )
    return False
