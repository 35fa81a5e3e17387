"""The refund of one payment: what it costs and does, then the request. The same function as the API's does it. Here a
person also decides what a program proposed (`refunds/proposals.py`)."""

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
from guichet.printable import printable
from guichet.refunds import proposal_repository, proposals
from guichet.refunds.request import refund_obstacle, request_refund

#: As `schemas.refund.RefundBody`.
_LONGEST_REASON: Final = 255


class RefundForm(Fields):
    act: str = ""
    reason: str = ""


class ProposalView(View, frozen=True):
    """What a program proposed, and may still be decided."""

    key: str
    at: str
    until: str
    reason: str | None


class RefundView(View, frozen=True):
    """`obstacle`: why the payment cannot be refunded. `proposal`: None without an open one."""

    payment: PaymentView
    balance: str
    balance_after: str
    sees_balance: bool
    obstacle: str | None
    proposal: ProposalView | None
    reason: str
    longest_reason: int


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
        return await _page(request, payment, None, reason)
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
    return await _page(request, payment, obstacle, reason)


async def _decline(request: MerchantRequest, payment: Payment) -> Response:
    here = request.merchant_url(f"/payments/{payment.reference}")
    try:
        await proposals.decline(request.ctx, payment, request.actor)
    except Conflict:  # Somebody else decided, or its time has passed.
        return request.redirect(here)
    return request.done(here, "refund_declined")


def _refusal(request: MerchantRequest, obstacle: str | None, status: int = 409) -> FormFault:
    return FormFault(request.text(f"payments.refusal.{obstacle}"), status)


async def _page(
    request: MerchantRequest, payment: Payment, obstacle: str | None, reason: str | None = None
) -> Response:
    """`reason`: what was typed; None: what the program proposed."""
    proposal = await _proposal(request, payment)
    wallet = await wallets.wallet(request.db, payment.merchant_id, payment.env, payment.currency)
    balance = wallet.balance if wallet else 0
    view = RefundView(
        payment=payment_view(request, payment, await request.ctx.catalogues.of(request.merchant.id)),
        balance=request.amount(balance, payment.currency),
        balance_after=request.amount(balance - payment.amount, payment.currency),
        sees_balance=request.may("balance.view"),
        obstacle=obstacle,
        proposal=proposal,
        reason=(proposal.reason if proposal and reason is None else reason) or "",
        longest_reason=_LONGEST_REASON,
    )
    return request.page("payments/refund.html", view)


async def _proposal(request: MerchantRequest, payment: Payment) -> ProposalView | None:
    proposal = await proposal_repository.of_payment(request.db, payment.id)
    if proposal is None or proposal.status_at(request.now()) != "open":
        return None
    return ProposalView(
        key=printable(await proposal_repository.key_of(request.db, proposal)),
        at=request.date_time(proposal.created_at),
        until=request.date_time(proposal.expires_at),
        reason=printable(proposal.reason) if proposal.reason else None,
    )
