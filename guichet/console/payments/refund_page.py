"""The refund of one payment: what it costs and does, then the request. The same function as the API's does it."""

from typing import Final

from starlette.responses import Response

from guichet.console.page_request import ConsoleRequest, FormFault, MerchantRequest
from guichet.console.payments.payment_view import PaymentView, find_payment, payment_view
from guichet.db.references import parse_reference
from guichet.domain.errors import Conflict, NotFound
from guichet.domain.payments import Payment
from guichet.ledger import wallets
from guichet.pages.fields import Fields
from guichet.pages.views import View
from guichet.payments import repository
from guichet.refunds.request import refund_obstacle, request_refund

#: As `schemas.refund.RefundBody`.
_LONGEST_REASON: Final = 255


class RefundForm(Fields):
    reason: str = ""


class RefundView(View, frozen=True):
    """`obstacle`: why the payment cannot be refunded."""

    payment: PaymentView
    balance: str
    balance_after: str
    sees_balance: bool
    obstacle: str | None
    reason: str
    longest_reason: int


async def find(request: ConsoleRequest) -> Response:
    """To the refund of a payment of one of the merchants that the person works for. A program that may not refund knows
    the reference only, and gives this address to somebody who may (docs/mcp.md)."""
    reference = parse_reference(request.path["reference"])
    payment = await repository.find(request.db, reference) if reference else None
    if payment is None or payment.merchant_id not in {merchant.id for _, merchant in request.places}:
        raise NotFound
    path = f"/{payment.merchant_id}/{payment.env}/payments/{payment.reference}/refund"
    return request.redirect(request.at(path, reason=request.query.get("reason")))


async def show(request: MerchantRequest) -> Response:
    """Asks for the second factor before the question, so that nobody must answer it twice. The address may propose a
    reason."""
    request.require("payments.refund")
    payment = await find_payment(request)
    obstacle = await refund_obstacle(request.db, payment)
    fault = _refusal(request, obstacle, 200) if obstacle else None
    return await _page(request, payment, obstacle, fault, request.query.get("reason", "")[:_LONGEST_REASON])


async def refund(request: MerchantRequest) -> Response:
    form = await request.form(RefundForm)
    request.require("payments.refund")
    payment = await find_payment(request)
    reason = " ".join(form.reason.replace("\0", "").split())
    if len(reason) > _LONGEST_REASON:
        fault = FormFault(request.text("payments.reason_too_long", most=_LONGEST_REASON))
        return await _page(request, payment, None, fault, reason)
    obstacle: str | None = await refund_obstacle(request.db, payment)
    if obstacle is None:
        try:
            await request_refund(request.ctx, payment, reason or None, request.actor)
        except Conflict as conflict:
            obstacle = conflict.reason or "not_refundable"
    if obstacle in (None, "already_refunded"):
        # A form that was sent twice: the page of the payment shows the refund that there is.
        here = request.here(f"/payments/{payment.reference}")
        return request.done(here, "refund_asked") if obstacle is None else request.redirect(here)
    return await _page(request, payment, obstacle, _refusal(request, obstacle), reason)


def _refusal(request: MerchantRequest, obstacle: str | None, status: int = 409) -> FormFault:
    return FormFault(request.text(f"payments.refusal.{obstacle}"), status)


async def _page(
    request: MerchantRequest, payment: Payment, obstacle: str | None, fault: FormFault | None, reason: str = ""
) -> Response:
    wallet = await wallets.wallet(request.db, payment.merchant_id, payment.env, payment.currency)
    balance = wallet.balance if wallet else 0
    view = RefundView(
        payment=payment_view(request, payment, await request.ctx.catalogues.of(request.merchant.id)),
        balance=request.amount(balance, payment.currency),
        balance_after=request.amount(balance - payment.amount, payment.currency),
        sees_balance=request.may("balance.view"),
        obstacle=obstacle,
        reason=reason,
        longest_reason=_LONGEST_REASON,
    )
    return request.page("payments/refund.html", view, fault)
