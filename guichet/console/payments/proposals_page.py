"""The refunds that programs proposed and nobody has decided yet. Each is decided on the page of its refund."""

from starlette.responses import Response

from guichet.console.page_request import MerchantRequest
from guichet.console.payments.payment_view import PaymentRow, payment_row
from guichet.pages.views import View
from guichet.printable import printable
from guichet.refunds import proposal_repository


class ProposalRow(View, frozen=True):
    """`href`: where it is decided. `key`: of the program; `at`: when it asked; `until`: the end of its proposal."""

    href: str
    payment: PaymentRow
    key: str
    at: str
    until: str
    reason: str


class ProposalsView(View, frozen=True):
    """`more`: there may be others, which follow when these are decided."""

    rows: list[ProposalRow]
    more: bool


async def show(request: MerchantRequest) -> Response:
    catalogue = await request.ctx.catalogues.of(request.merchant.id)
    proposals = await proposal_repository.open_of(request.db, *request.scope, request.now())
    rows = [
        ProposalRow(
            href=request.merchant_url(f"/payments/{row.payment.reference}/refund"),
            payment=payment_row(request, row.payment, catalogue, request.date_time(row.payment.created_at)),
            key=printable(row.key),
            at=request.date_time(row.proposal.created_at),
            until=request.date_time(row.proposal.expires_at),
            reason=printable(row.proposal.reason or ""),
        )
        for row in proposals
    ]
    return request.page("payments/proposals.html", ProposalsView(rows, more=len(rows) == proposal_repository.MOST))
