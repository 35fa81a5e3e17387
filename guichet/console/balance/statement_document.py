"""Draws the statement of a wallet over a month."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

from guichet.clock import Instant
from guichet.console.balance.document_base import new_document, plain
from guichet.console.balance.periods import today
from guichet.console.page_request import ConsoleRequest
from guichet.domain.merchants import Merchant
from guichet.ledger.balance_checkpoints import WalletKey
from guichet.ledger.monthly_statement import Figures, MonthlyStatement
from guichet.ledger.movement_names import movement_name
from guichet.pages.pdf import PdfColumn

#: The widths of the first column and of the four columns of figures, in percent.
_FIRST: Final = 25
_COLUMNS: Final = ("count", "debits", "credits")
_SHARES: Final = (9, 21, 21, 24)


def draw_statement(
    request: ConsoleRequest,
    merchant: Merchant,
    wallet: WalletKey,
    month: date,
    figures: MonthlyStatement,
    operators: Mapping[str | None, str],
    until: Instant | None,
) -> Callable[[], bytes]:
    """What draws the document. `operators`: their names; `until`: how far the figures go if the month is not over."""
    return lambda: _Drawing(request, merchant, wallet, figures, operators).draw(month, until)


class _Drawing:
    def __init__(
        self,
        request: ConsoleRequest,
        merchant: Merchant,
        wallet: WalletKey,
        figures: MonthlyStatement,
        operators: Mapping[str | None, str],
    ) -> None:
        self._visit = request
        self._merchant = merchant
        self._env = wallet.env
        self._currency = wallet.currency
        self._figures = figures
        self._operators = operators

    def draw(self, month: date, until: Instant | None) -> bytes:
        request, figures, merchant = self._visit, self._figures, self._merchant
        title = self._text("statement.title", month=request.month(month.year, month.month))
        document = new_document(request, self._env, f"{title} · {merchant.name}")
        document.heading(title)
        pairs = [
            (self._text("receipt.merchant"), merchant.name),
            (self._text("balance.currency"), self._currency),
            (self._text("statement.time_zone"), str(request.time_zone)),
        ]
        if until is not None:
            pairs.append((self._text("statement.until"), request.date_time(until)))
        document.lines(pairs)
        document.heading(self._text("statement.kinds"), 12)
        document.lines(
            [
                (self._text("statement.opening"), self._amount(figures.opening)),
                *((movement_name(cause, request.language), self._signed(each)) for cause, each in self._kinds()),
                (self._text("statement.closing"), self._amount(figures.closing)),
            ],
            strong_last=True,
        )
        document.paragraph(self._text("statement.fees", amount=self._amount(figures.total.fees)), soft=True)
        document.heading(self._text("statement.operators"), 12)
        columns = self._columns("balance.operator", "statement.fee")
        rows = [
            [self._operators[operator], *self._cells(each), self._amount(each.fees)]
            for operator, each in sorted(figures.operators.items(), key=lambda item: item[0] or "")
        ]
        total = [self._text("statement.total"), *self._cells(figures.total)]
        document.table(columns, [*rows, [*total, self._amount(figures.total.fees)]], strong_last=True)
        document.heading(self._text("statement.days"), 12)
        days = [
            [request.day(today(each.start, request.time_zone)), *self._cells(each.figures), self._amount(each.closing)]
            for each in figures.days
        ]
        columns = self._columns("balance.day", "balance.after")
        document.table(columns, [*days, [*total, self._amount(figures.closing)]], strong_last=True)
        return document.done()

    def _kinds(self) -> list[tuple[str, Figures]]:
        return [(cause, each) for cause, each in sorted(self._figures.kinds.items()) if each.movements]

    def _columns(self, first: str, last: str) -> list[PdfColumn]:
        titles = [self._text(f"statement.{name}") for name in _COLUMNS] + [self._text(last)]
        rest = (PdfColumn(title, share, "right") for title, share in zip(titles, _SHARES, strict=True))
        return [PdfColumn(self._text(first), _FIRST), *rest]

    def _cells(self, each: Figures) -> list[str]:
        return [str(each.movements), self._amount(each.debits), self._amount(each.credits)]

    def _signed(self, each: Figures) -> str:
        amount = each.credits - each.debits
        return ("+" if amount > 0 else "") + self._amount(amount)

    def _amount(self, hundredths: int) -> str:
        return self._visit.amount(hundredths, self._currency)

    def _text(self, key: str, **values: Any) -> str:
        return plain(self._visit, key, **values)
