"""The ways in which one telephone's number is written as digits with the country code, and the number that gets a
refund: the one that paid, never one that only the request named (docs/decisions.md, "Payer's number")."""

from typing import Final

from guichet.domain.payments import Payment, Refund

#: Numbers of Bénin have ten national digits since 2024, of which the first two are new; some people and providers still
#: use the last eight (docs/providers/README.md, rule 9).
_BENIN: Final = "229"
_BENIN_NEW_DIGITS: Final = "01"
_OLD_LENGTH: Final = 8


def written_forms(phone_number: str) -> tuple[str, str]:
    """The number as it is dialled today, and in its other form; the same number twice if it has no other.

    `phone_number`: digits, country code first.
    """
    today = _BENIN + _BENIN_NEW_DIGITS
    if phone_number.startswith(_BENIN) and len(phone_number) == len(_BENIN) + _OLD_LENGTH:
        return today + phone_number[len(_BENIN) :], phone_number
    if phone_number.startswith(today) and len(phone_number) == len(today) + _OLD_LENGTH:
        return phone_number, _BENIN + phone_number[len(today) :]
    return phone_number, phone_number


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
