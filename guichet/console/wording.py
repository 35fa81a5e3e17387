"""How the pages of the console write amounts, days and words for the person who reads them."""

from datetime import date
from typing import Final

from markupsafe import Markup
from starlette.requests import Request

from guichet.accounts.errors import TooManyAttempts
from guichet.console.console import Console
from guichet.console.messages import message_text, word
from guichet.domain.merchants import Merchant
from guichet.domain.money import Currency, plain, round_to_currency
from guichet.domain.names import holds_address
from guichet.domain.payments import Payment
from guichet.pages import formatting
from guichet.pages.page_request import PageRequest

#: How many characters of a refused name are read to say why it was refused.
_LONGEST_NAME: Final = 400


class Wording(PageRequest):
    plain = staticmethod(plain)
    message_text = message_text
    word = word

    def __init__(self, console: Console, request: Request) -> None:
        super().__init__(request, console.renderer, console.base_path, console.ctx.settings.time_zone)
        self.console = console
        self._own_currency: Currency | None = None

    def operator_name(self, operator: str) -> str:
        """`MTN MoMo · Bénin`, of the installation's catalogue."""
        return self.console.ctx.catalogues.base.name_of(operator)

    def amount(self, hundredths: int, currency: Currency) -> str:
        """An amount as the reader of this page writes it."""
        return formatting.amount(hundredths, currency, self.language, coded=self.is_foreign(currency))

    def is_foreign(self, currency: str | None) -> bool:
        """Whether it is another one than that of the merchant whose page this is, so that its code is written."""
        return currency != self._own_currency

    def belongs_to(self, merchant: Merchant) -> None:
        super().belongs_to(merchant)
        self._own_currency = merchant.currency

    def charged(self, payment: Payment) -> str:
        """What the customer is debited: whole units if the currency has no decimals (D27)."""
        return self.amount(round_to_currency(payment.total_amount, payment.currency), payment.currency)

    def day(self, day: date) -> str:
        """`3 octobre 2026`."""
        return formatting.long_date(day, self.language)

    def month(self, year: int, month: int) -> str:
        """`octobre 2026`."""
        return formatting.month(year, month, self.language)

    def stated_amount(self, amount: int | float | str | None, currency: str | None) -> str:
        """An amount in the main unit, as a provider or a command states it."""
        return formatting.stated_amount(amount, currency, self.language, coded=self.is_foreign(currency))

    def name_fault(self, name: str, otherwise: str) -> Markup:
        """Why a name is refused: it holds an address, or the text `otherwise`."""
        return self.text("name.holds_address" if holds_address(name[:_LONGEST_NAME]) else otherwise)

    def too_many(self, refused: TooManyAttempts) -> Markup:
        """What is said to somebody who has used up their attempts."""
        minutes = -(-refused.retry_after // 60)
        if minutes <= 60:
            return self.text("sign_in.too_many", minutes=minutes)
        return self.text("sign_in.too_many_today", hours=-(-minutes // 60))
