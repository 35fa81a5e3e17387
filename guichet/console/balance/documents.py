"""The PDF documents: a month's statement of a wallet, and the receipt of a payment."""

from typing import Final

from starlette.responses import Response

from guichet.accounts.rights import Member
from guichet.audit_log import entries as audit_log
from guichet.console.balance.balance_page import chosen_currency
from guichet.console.balance.document_base import new_document, plain
from guichet.console.balance.downloads import attachment, file_name
from guichet.console.balance.periods import midnights, read_month, today
from guichet.console.balance.statement_document import draw_statement
from guichet.console.payments.receipt_lines import Receipt, receipt_of
from guichet.console.visit import Visit
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


async def statement(visit: Visit, acting: Member) -> Response:
    currency = chosen_currency(acting, visit.request.query_params.get("currency", ""))
    month, answer = await month_document(visit, acting.merchant, WalletKey(acting.merchant.id, acting.env, currency))
    await _record(visit, acting, "statement", month, {"currency": currency})
    return answer


async def month_document(visit: Visit, merchant: Merchant, wallet: WalletKey) -> tuple[str, Response]:
    """The statement of the month that the address names (`2026-10`), or of this month so far. Raises NotFound."""
    ctx = visit.console.ctx
    month, now = read_month(visit.request.query_params.get("month", "")), ctx.clock.now()
    if month is None or month > today(now, visit.time_zone):
        raise NotFound
    days = [each for each in midnights(month, visit.time_zone) if each <= now]
    complete = len(days) == len(midnights(month, visit.time_zone))
    bounds = days if complete else [*days, now]
    figures = await monthly_statement(ctx.db, wallet, bounds, now)
    modes = await ctx.catalogues.of(merchant.id)
    operators = {each: _operator_name(modes, each) for each in figures.operators}
    until = None if complete else now
    content = await drawn(draw_statement(visit, merchant, wallet, month, figures, operators, until))
    title, text = plain(visit, "statement.file"), f"{month:%Y-%m}"
    name = file_name(title, merchant.name, wallet.env, text, wallet.currency, suffix="pdf")
    return text, attachment(content, _PDF, name)


async def receipt(visit: Visit, acting: Member) -> Response:
    """What the customer sees after paying, for the merchant to give."""
    ctx = visit.console.ctx
    reference = parse_reference(visit.request.path_params["reference"])
    payment = None
    if reference is not None:
        payment = await payments.by_reference(ctx.db, acting.merchant.id, acting.env, reference)
    if payment is None:
        raise NotFound
    if payment.status not in _PAID:
        page = visit.here(f"/payments/{payment.reference}")
        return visit.show("balance/no_receipt.html", 409, payment=page)
    mode = (await ctx.catalogues.of(acting.merchant.id)).by_operator(payment.operator)
    lines = receipt_of(visit, acting.merchant, payment, mode)
    content = await drawn(lambda: _draw_receipt(visit, acting, lines))
    await _record(visit, acting, "receipt", payment.reference, {})
    return attachment(content, _PDF, file_name(plain(visit, "receipt.file"), payment.reference, suffix="pdf"))


def _operator_name(modes: Catalogue, operator: str | None) -> str:
    mode = modes.by_operator(operator) if operator else None
    if mode is None:
        return operator or "–"
    return f"{mode.name} · {mode.country}" if mode.country else mode.name


def _draw_receipt(visit: Visit, acting: Member, receipt: Receipt) -> bytes:
    document = new_document(visit, acting.env, f"{receipt.title} · {acting.merchant.name}")
    document.heading(receipt.title)
    document.paragraph(receipt.text, soft=True)
    document.lines(receipt.details)
    document.heading(receipt.amounts[-1][1], 15)
    document.lines(receipt.amounts, strong_last=True)
    return document.done()


async def _record(visit: Visit, acting: Member, kind: ActSubject, subject: str, facts: Facts) -> None:
    ctx = visit.console.ctx
    act = Act(
        acting.actor, "document.downloaded", kind, subject, acting.merchant.id, after={"env": acting.env, **facts}
    )
    async with ctx.db.transaction() as tx:
        await audit_log.record(tx, act, ctx.clock.now())
