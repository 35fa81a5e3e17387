"""The refund of one payment: what it costs and does, then the request. The same function as the API's does it."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts.rights import Member
from guichet.console.payments.payment_view import find_payment, payment_view
from guichet.console.visit import Visit
from guichet.domain.errors import Conflict
from guichet.domain.payments import Payment
from guichet.ledger import wallets
from guichet.refunds.request import refund_obstacle, request_refund

#: As `schemas.refund.RefundBody`.
_LONGEST_REASON: Final = 255


async def show(visit: Visit, acting: Member) -> Response:
    """Asks for the second factor before the question, so that nobody must answer it twice."""
    acting.require("payments.refund", visit.console.ctx.clock.now())
    payment = await find_payment(visit, acting)
    obstacle = await refund_obstacle(visit.console.ctx.db, payment)
    return await _page(visit, acting, payment, obstacle=obstacle)


async def refund(visit: Visit, acting: Member) -> Response:
    form = await visit.form()
    ctx = visit.console.ctx
    acting.require("payments.refund", ctx.clock.now())
    payment = await find_payment(visit, acting)
    reason = " ".join(form.get("reason", "").replace("\0", "").split())
    if len(reason) > _LONGEST_REASON:
        fault = visit.text("payments.reason_too_long", most=_LONGEST_REASON)
        return await _page(visit, acting, payment, 422, fault=fault, reason=reason)
    obstacle: str | None = await refund_obstacle(ctx.db, payment)
    if obstacle is None:
        try:
            await request_refund(ctx, payment, reason or None, acting.actor)
        except Conflict as conflict:
            obstacle = conflict.reason or "not_refundable"
    if obstacle in (None, "already_refunded"):
        # A form that was sent twice: the page of the payment shows the refund that there is.
        return visit.redirect(visit.here(f"/payments/{payment.reference}"))
    return await _page(visit, acting, payment, 409, obstacle=obstacle, reason=reason)


async def _page(
    visit: Visit,
    acting: Member,
    payment: Payment,
    status: int = 200,
    *,
    obstacle: str | None = None,
    fault: Any = None,
    reason: str = "",
) -> Response:
    ctx = visit.console.ctx
    mode = (await ctx.catalogues.of(acting.merchant.id)).by_operator(payment.operator)
    wallet = await wallets.wallet(ctx.db, payment.merchant_id, payment.env, payment.currency)
    balance = wallet.balance if wallet else 0
    return visit.show(
        "payments/refund.html",
        status,
        payment=payment_view(visit, payment, mode),
        balance=visit.amount(balance, payment.currency),
        balance_after=visit.amount(balance - payment.amount, payment.currency),
        sees_balance=acting.may("balance.view"),
        obstacle=obstacle,
        fault=visit.text(f"payments.refusal.{obstacle}") if obstacle else fault,
        reason=reason,
        longest_reason=_LONGEST_REASON,
    )
