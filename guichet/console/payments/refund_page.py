"""The refund of one payment: what it costs and does, then the request. The same function as the API's does it. Here a
person also decides what a program proposed (`refunds/proposals.py`)."""

from typing import ClassVar, Final

from starlette.responses import Response

from guichet.console.page_request import ConsoleRequest, FormFault, MerchantRequest
from guichet.console.payments.payment_view import PaymentView, find_payment, payment_view
from guichet.db.references import parse_reference
from guichet.domain.errors import Conflict, NotFound
from guichet.domain.money import Currency, Hundredths
from guichet.domain.payments import Payment
from guichet.domain.refund_proposals import RefundProposal
from guichet.ledger import wallets
from guichet.pages.fields import Fields
from guichet.pages.views import View
from guichet.payments import repository
from guichet.refunds import proposal_repository, proposals
from guichet.refunds.request import refund_obstacle, request_refund

#: As `schemas.refund.RefundBody`.
_LONGEST_REASON: Final = 255


class RefundForm(Fields):
    act: str = ""
    reason: str = ""


class RefundView(View, frozen=True):
    """`amount` of the payment, and the `balance` of its wallet. `obstacle`: why it cannot be refunded. `proposal`: what
    a program proposed, by the `key`; None without an open one."""

    payment: PaymentView
    currency: Currency
    amount: Hundredths
    balance: Hundredths
    obstacle: str | None
    proposal: RefundProposal | None
    key: str
    longest_reason: ClassVar = _LONGEST_REASON


async def find(request: ConsoleRequest) -> Response:
    """To the refund of a payment of one of the merchants that the person works for: the address that a program is
    given, which knows the reference only."""
    reference = parse_reference(request.path["reference"])
    payment = await repository.find(request.db, reference) if reference else None
    if payment is None or payment.merchant_id not in {merchant.id for _, merchant in request.memberships}:
        raise NotFound
    return request.redirect(
        request.console_url(f"/{payment.merchant_id}/{payment.env}/payments/{payment.reference}/refund")
    )


async def show(request: MerchantRequest) -> Response:
    """Asks for the second factor before the question, so that nobody must answer it twice."""
    request.require("payments.refund")
    payment = await find_payment(request)
    obstacle = await refund_obstacle(request.db, payment)
    if obstacle:
        request.fault = _refusal(request, obstacle, 200)
    return await _page(request, payment, obstacle)


async def refund(request: MerchantRequest) -> Response:
    form = await request.form(RefundForm)
    request.require("payments.refund")
    payment = await find_payment(request)
    if form.act == "decline":
        return await _decline(request, payment)
    reason = " ".join(form.reason.replace("\0", "").split())
    if len(reason) > _LONGEST_REASON:
        request.fault = FormFault(request.text("payments.reason_too_long", most=_LONGEST_REASON))
        return await _page(request, payment, None)
    obstacle: str | None = await refund_obstacle(request.db, payment)
    if obstacle is None:
        try:
            await request_refund(request.ctx, payment, reason or None, request.actor)
        except Conflict as conflict:
            obstacle = conflict.reason or "not_refundable"
    if obstacle in (None, "already_refunded"):
        # A form that was sent twice: the page of the payment shows the refund that there is.
        here = request.merchant_url(f"/payments/{payment.reference}")
        return request.done(here, "refund_asked") if obstacle is None else request.redirect(here)
    request.fault = _refusal(request, obstacle)
    return await _page(request, payment, obstacle)


async def _decline(request: MerchantRequest, payment: Payment) -> Response:
    here = request.merchant_url(f"/payments/{payment.reference}")
    try:
        await proposals.decline(request.ctx, payment, request.actor)
    except Conflict:  # Somebody else decided, or its time has passed.
        return request.redirect(here)
    return request.done(here, "refund_declined")


def _refusal(request: MerchantRequest, obstacle: str | None, status: int = 409) -> FormFault:
    return FormFault(request.text(f"payments.refusal.{obstacle}"), status)


async def _page(request: MerchantRequest, payment: Payment, obstacle: str | None) -> Response:
    proposal = await proposal_repository.of_payment(request.db, payment.id)
    if proposal is not None and proposal.status_at(request.now()) != "open":
        proposal = None
    wallet = await wallets.wallet(request.db, payment.merchant_id, payment.env, payment.currency)
    view = RefundView(
        payment=payment_view(request, payment, await request.ctx.catalogues.of(request.merchant.id)),
        currency=payment.currency,
        amount=payment.amount,
        balance=wallet.balance if wallet else Hundredths(0),
        obstacle=obstacle,
        proposal=proposal,
        key=await proposal_repository.key_of(request.db, proposal) if proposal else "",
    )
    return request.page("payments/refund.html", view)
