"""Who gets a refund: the number that paid, never a number that only the request named
(docs/decisions.md, "Payer's number")."""

from typing import Final

from guichet.domain.payments import Payment, Refund

#: Seconds between two looks at a refund that waits for a person to confirm its payee.
PAYEE_RETRY_SECONDS: Final = 3600


def payer_number(payment: Payment) -> str | None:
    """The number that paid, as digits with the country code; None when nobody knows it.

    It is the number that the provider states. Where the provider states none, it is the number that we asked the
    provider to debit, unless the customer confirmed on the provider's own page: there, another number may have paid.
    """
    if payment.payer_number is not None:
        return payment.payer_number
    return None if payment.redirect_url is not None else payment.phone_number


def payee_number(refund: Refund, payment: Payment) -> str | None:
    """The number that a payout of this refund goes to; None when it must wait for a person.

    Once a payout was sent, or a person confirmed the number, it stays the same.
    """
    return refund.payee_number or payer_number(payment)
