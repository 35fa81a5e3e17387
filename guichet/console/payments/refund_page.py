"""The refund of one payment: what it costs and does, then the request. The same function as the API's does it."""

from typing import Any, Final

from starlette.responses import Response

from guichet.console.page_request import MerchantRequest
from guichet.console.payments.payment_view import find_payment, payment_view
from guichet.domain.errors import Conflict
from guichet.domain.payments import Payment
from guichet.ledger import wallets
from guichet.refunds.request import refund_obstacle, request_refund

#: As `schemas.refund.RefundBody`.
_LONGEST_REASON: Final = 255


async def show(request: MerchantRequest) -> Response:
    """Asks for the second factor before the question, so that nobody must answer it twice."""
    request.require("payments.refund")
    payment = await find_payment(request)
    obstacle = await refund_obstacle(request.db, payment)
    return await _page(request, payment, obstacle=obstacle)


async def refund(request: MerchantRequest) -> Response:
    form = await request.form()
    ctx = request.ctx
    request.require("payments.refund")
    payment = await find_payment(request)
    reason = " ".join(form.get("reason", "").replace("\0", "").split())
    if len(reason) > _LONGEST_REASON:
        fault = request.text("payments.reason_too_long", most=_LONGEST_REASON)
        return await _page(request, payment, 422, fault=fault, reason=reason)
    obstacle: str | None = await refund_obstacle(ctx.db, payment)
    if obstacle is None:
        try:
            await request_refund(ctx, payment, reason or None, request.actor)
        except Conflict as conflict:
            obstacle = conflict.reason or "not_refundable"
    if obstacle in (None, "already_refunded"):
        # A form that was sent twice: the page of the payment shows the refund that there is.
        return request.redirect(request.here(f"/payments/{payment.reference}"))
    return await _page(request, payment, 409, obstacle=obstacle, reason=reason)


async def _page(
    request: MerchantRequest,
    payment: Payment,
    status: int = 200,
    *,
    obstacle: str | None = None,
    fault: Any = None,
    reason: str = "",
) -> Response:
    ctx = request.ctx
    mode = (await ctx.catalogues.of(request.merchant.id)).by_operator(payment.operator)
    wallet = await wallets.wallet(ctx.db, payment.merchant_id, payment.env, payment.currency)
    balance = wallet.balance if wallet else 0
    return request.show(
        "payments/refund.html",
        status,
        payment=payment_view(request, payment, mode),
        balance=request.amount(balance, payment.currency),
        balance_after=request.amount(balance - payment.amount, payment.currency),
        sees_balance=request.may("balance.view"),
        obstacle=obstacle,
        fault=request.text(f"payments.refusal.{obstacle}") if obstacle else fault,
        reason=reason,
        longest_reason=_LONGEST_REASON,
    )
