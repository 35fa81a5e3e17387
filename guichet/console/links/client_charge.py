"""What the customer of a sale is debited, before they chose an operator and after."""

from typing import Final

from guichet.console.page_request import MerchantRequest
from guichet.domain import catalogue
from guichet.domain.catalogue import Catalogue
from guichet.domain.money import DECIMALS, Currency, Hundredths, round_to_currency
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import Payment
from guichet.pages.views import View

_FRANCS: Final = "F\u00a0CFA"


class ClientCharge(View, frozen=True):
    """Numbers without their unit, which stands smaller beside them. `totals`: one, or the lowest and the highest while
    that depends on the operator; `fee`: None until there is one total."""

    totals: list[str]
    own: str
    fee: str | None
    unit: str


def client_charge(
    request: MerchantRequest, link: PaymentLink, modes: Catalogue, payment: Payment | None
) -> ClientCharge:
    """`payment`: the try that decides; its total is exact."""
    currency = link.currency
    if payment is not None:
        debits = [payment.total_amount]
    else:
        quotes = [catalogue.quote(mode, link.amount) for mode in modes.active()]
        debits = [quote.total_amount for quote in quotes if not catalogue.debit_faults(quote, currency)]
    rounded = [round_to_currency(debit, currency) for debit in debits] or [link.amount]
    low, high = min(rounded), max(rounded)

    def number(amount: int) -> str:
        return request.amount(amount, currency).removesuffix(_FRANCS).rstrip("\u00a0")

    return ClientCharge(
        totals=[number(low)] if low == high else [number(low), number(high)],
        own=number(link.amount),
        fee=number(Hundredths(low - link.amount)) if debits and low == high else None,
        unit=unit_of(currency),
    )


def unit_of(currency: Currency) -> str:
    """What stands beside a number of this currency; nothing where its sign is part of the number."""
    return "" if DECIMALS[currency] else _FRANCS
