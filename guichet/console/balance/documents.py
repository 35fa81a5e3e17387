"""The PDF documents: a month's statement of a wallet, and the receipt of a payment."""

from typing import Final

from starlette.responses import Response

from guichet.audit_log import entries as audit_log
from guichet.console.balance.balance_page import chosen_currency
from guichet.console.balance.document_base import new_document, plain
from guichet.console.balance.downloads import attachment, file_name
from guichet.console.balance.periods import midnights, read_month, today
from guichet.console.balance.statement_document import draw_statement
from guichet.console.page_request import ConsoleRequest, MerchantRequest
from guichet.console.payments.receipt_lines import Receipt, receipt_of
from guichet.db.references import parse_reference
from guichet.domain.audit_log import Act, ActSubject, Facts
from guichet.domain.catalogue import Catalogue
from guichet.domain.errors import NotFound
from guichet.domain.merchants import Merchant
from guichet.ledger.balance_checkpoints import WalletKey
from guichet.ledger.monthly_statement import monthly_statement
from guichet.pages.pdf import drawn
from guichet.payments import repository as payments

_PDF: Final = "application/pdf"
#: Payments that a receipt exists for: those whose money was received.
_PAID: Final = ("succeeded", "refunded")


async def statement(request: MerchantRequest) -> Response:
    currency = chosen_currency(request, request.query.get("currency", ""))
    month, answer = await month_document(
        request, request.merchant, WalletKey(request.merchant.id, request.env, currency)
    )
    await _record(request, "statement", month, {"currency": currency})
    return answer


async def month_document(request: ConsoleRequest, merchant: Merchant, wallet: WalletKey) -> tuple[str, Response]:
    """The statement of the month that the address names (`2026-10`), or of this month so far. Raises NotFound."""
    ctx = request.ctx
    month, now = read_month(request.query.get("month", "")), ctx.clock.now()
    if month is None or month > today(now, request.time_zone):
        raise NotFound
    days = [each for each in midnights(month, request.time_zone) if each <= now]
    complete = len(days) == len(midnights(month, request.time_zone))
    bounds = days if complete else [*days, now]
    figures = await monthly_statement(ctx.db, wallet, bounds, now)
    modes = await ctx.catalogues.of(merchant.id)
    operators = {each: _operator_name(modes, each) for each in figures.operators}
    until = None if complete else now
    content = await drawn(draw_statement(request, merchant, wallet, month, figures, operators, until))
    title, text = plain(request, "statement.file"), f"{month:%Y-%m}"
    name = file_name(title, merchant.name, wallet.env, text, wallet.currency, suffix="pdf")
    return text, attachment(content, _PDF, name)


async def receipt(request: MerchantRequest) -> Response:
    """What the customer sees after paying, for the merchant to give."""
    ctx = request.ctx
    reference = parse_reference(request.path["reference"])
    payment = None
    if reference is not None:
        payment = await payments.by_reference(ctx.db, request.merchant.id, request.env, reference)
    if payment is None:
        raise NotFound
    if payment.status not in _PAID:
        page = request.here(f"/payments/{payment.reference}")
        return request.show("balance/no_receipt.html", 409, payment=page)
    mode = (await ctx.catalogues.of(request.merchant.id)).by_operator(payment.operator)
    lines = receipt_of(request, request.merchant, payment, mode)
    content = await drawn(lambda: _draw_receipt(request, lines))
    await _record(request, "receipt", payment.reference, {})
    return attachment(content, _PDF, file_name(plain(request, "receipt.file"), payment.reference, suffix="pdf"))


def _operator_name(modes: Catalogue, operator: str | None) -> str:
    mode = modes.by_operator(operator) if operator else None
    if mode is None:
        return operator or "–"
    return f"{mode.name} · {mode.country}" if mode.country else mode.name


def _draw_receipt(request: MerchantRequest, receipt: Receipt) -> bytes:
    document = new_document(request, request.env, f"{receipt.title} · {request.merchant.name}")
    document.heading(receipt.title)
    document.paragraph(receipt.text, soft=True)
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
