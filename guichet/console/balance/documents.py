"""The PDF documents: a month's statement of a wallet, and the receipt of a payment."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from starlette.responses import Response

from guichet.audit_log import entries as audit_log
from guichet.clock import Instant
from guichet.console.balance.balance_page import WalletQuery
from guichet.console.downloads import attachment, file_name
from guichet.console.page_request import ConsoleRequest, MerchantRequest
from guichet.console.payments.payment_view import find_payment
from guichet.console.payments.receipt import Receipt, receipt_of
from guichet.domain.audit_log import Act, ActSubject, Facts
from guichet.domain.errors import NotFound
from guichet.domain.merchants import Environment, Merchant
from guichet.ledger.balance_checkpoints import WalletKey
from guichet.ledger.monthly_statement import Figures, MonthlyStatement, monthly_statement, movement_name
from guichet.pages.days import midnights, read_month, today
from guichet.pages.pdf import PdfColumn, PdfDocument, drawn

#: The widths of the first column and of the four columns of figures, in percent.
_FIRST: Final = 25
_COLUMNS: Final = ("count", "debits", "credits")
_SHARES: Final = (9, 21, 21, 24)
_PDF: Final = "application/pdf"
#: Payments that a receipt exists for: those whose money was received.
_PAID: Final = ("succeeded", "refunded")


async def statement(request: MerchantRequest) -> Response:
    currency = WalletQuery.read(request.query).currency or request.merchant.currency
    month, document = await month_document(request, request.merchant, WalletKey(*request.scope, currency))
    await _record(request, "statement", month, {"currency": currency})
    return document


async def month_document(request: ConsoleRequest, merchant: Merchant, wallet: WalletKey) -> tuple[str, Response]:
    """The statement of the month that the address names (`2026-10`), or of this month so far. Raises NotFound."""
    ctx = request.ctx
    month, now = read_month(request.query.get("month", "")), ctx.clock.now()
    if month is None or month > today(now, request.time_zone):
        raise NotFound
    days = [day for day in midnights(month, request.time_zone) if day <= now]
    complete = len(days) == len(midnights(month, request.time_zone))
    bounds = days if complete else [*days, now]
    figures = await monthly_statement(ctx.db, wallet, bounds, now)
    modes = await ctx.catalogues.of(merchant.id)
    operators = {operator: modes.name_of(operator) if operator else "–" for operator in figures.operators}
    until = None if complete else now
    content = await drawn(lambda: _Statement(request, merchant, wallet, figures, operators).draw(month, until))
    title, text = plain_text(request, "statement.file"), f"{month:%Y-%m}"
    name = file_name(title, merchant.name, wallet.env, text, wallet.currency, suffix="pdf")
    return text, attachment(content, _PDF, name)


async def receipt(request: MerchantRequest) -> Response:
    """What the customer sees after paying, for the merchant to give."""
    ctx = request.ctx
    payment = await find_payment(request)
    if payment.status not in _PAID:
        page = request.merchant_url(f"/payments/{payment.reference}")
        return request.page("balance/no_receipt.html", status=409, payment=page)
    mode = (await ctx.catalogues.of(request.merchant.id)).by_operator(payment.operator)
    lines = receipt_of(request, request.merchant, payment, mode)
    content = await drawn(lambda: _draw_receipt(request, lines))
    await _record(request, "receipt", payment.reference, {})
    return attachment(content, _PDF, file_name(plain_text(request, "receipt.file"), payment.reference, suffix="pdf"))


def _draw_receipt(request: MerchantRequest, receipt: Receipt) -> bytes:
    document = new_document(request, request.env, f"{receipt.title} · {request.merchant.name}")
    document.heading(receipt.title)
    document.paragraph(receipt.text)
    document.lines(receipt.details)
    document.heading(receipt.amounts[-1][1], 15)
    document.lines(receipt.amounts, strong_last=True)
    return document.done()


async def _record(request: MerchantRequest, kind: ActSubject, subject: str, facts: Facts) -> None:
    ctx = request.ctx
    act = Act(
        request.actor, "document.downloaded", kind, subject, request.merchant.id, after={"env": request.env, **facts}
    )
    async with ctx.db.transaction() as tx:
        await audit_log.record(tx, act, ctx.clock.now())


class _Statement:
    def __init__(
        self,
        request: ConsoleRequest,
        merchant: Merchant,
        wallet: WalletKey,
        figures: MonthlyStatement,
        operators: Mapping[str | None, str],
    ) -> None:
        self._request = request
        self._merchant = merchant
        self._env = wallet.env
        self._currency = wallet.currency
        self._figures = figures
        self._operators = operators

    def draw(self, month: date, until: Instant | None) -> bytes:
        """`until`: how far the figures go if the month is not over."""
        request, figures, merchant = self._request, self._figures, self._merchant
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
                *((movement_name(cause, request.language), self._signed(kind)) for cause, kind in self._kinds()),
                (self._text("statement.closing"), self._amount(figures.closing)),
            ],
            strong_last=True,
        )
        document.paragraph(self._text("statement.fees", amount=self._amount(figures.total.fees)))
        document.heading(self._text("statement.operators"), 12)
        columns = self._columns("balance.operator", "statement.fee")
        rows = [
            [self._operators[operator], *self._cells(part), self._amount(part.fees)]
            for operator, part in sorted(figures.operators.items(), key=lambda item: item[0] or "")
        ]
        total = [self._text("statement.total"), *self._cells(figures.total)]
        document.table(columns, [*rows, [*total, self._amount(figures.total.fees)]], strong_last=True)
        document.heading(self._text("statement.days"), 12)
        days = [
            [request.day(today(day.start, request.time_zone)), *self._cells(day.figures), self._amount(day.closing)]
            for day in figures.days
        ]
        columns = self._columns("balance.day", "balance.after")
        document.table(columns, [*days, [*total, self._amount(figures.closing)]], strong_last=True)
        return document.done()

    def _kinds(self) -> list[tuple[str, Figures]]:
        return [(cause, kind) for cause, kind in sorted(self._figures.kinds.items()) if kind.movements]

    def _columns(self, first: str, last: str) -> list[PdfColumn]:
        titles = [self._text(f"statement.{name}") for name in _COLUMNS] + [self._text(last)]
        rest = (PdfColumn(title, share, "right") for title, share in zip(titles, _SHARES, strict=True))
        return [PdfColumn(self._text(first), _FIRST), *rest]

    def _cells(self, figures: Figures) -> list[str]:
        return [str(figures.movements), self._amount(figures.debits), self._amount(figures.credits)]

    def _signed(self, figures: Figures) -> str:
        amount = figures.credits - figures.debits
        return ("+" if amount > 0 else "") + self._amount(amount)

    def _amount(self, hundredths: int) -> str:
        return self._request.amount(hundredths, self._currency)

    def _text(self, key: str, **values: Any) -> str:
        return plain_text(self._request, key, **values)


def plain_text(request: ConsoleRequest, key: str, **values: Any) -> str:
    """A text without the escapes of a page."""
    return request.text(key, **values).unescape()


def new_document(request: ConsoleRequest, env: Environment, title: str) -> PdfDocument:
    test = plain_text(request, "base.test"), plain_text(request, "base.test_text")
    banner = " · ".join(test) if env == "test" else None
    return PdfDocument(title, request.language, request.console.public_url, banner)
