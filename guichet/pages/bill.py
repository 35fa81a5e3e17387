"""What a customer pays, as the hosted pages and the receipt show it."""

from guichet.domain import money
from guichet.domain.money import Currency, Hundredths
from guichet.domain.records import Record
from guichet.pages import formatting
from guichet.pages.page_request import PageRequest


class Bill(Record, frozen=True):
    """The amount that the customer is debited: a provider debits whole units if the currency has no decimals (D27)."""

    amount: str
    fee: str
    total: str


def bill(page: PageRequest, amount: Hundredths, total_amount: Hundredths, currency: Currency) -> Bill:
    total = money.round_to_currency(total_amount, currency)
    amounts = [formatting.amount(value, currency, page.language) for value in (amount, total - amount, total)]
    return Bill(*amounts)
