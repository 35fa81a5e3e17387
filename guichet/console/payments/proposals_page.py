"""The refunds that programs proposed and nobody has decided yet. Each is decided on the page of its refund."""

from starlette.responses import Response

from guichet.console.page_request import MerchantRequest
from guichet.console.payments.payment_view import payment_row
from guichet.refunds import proposal_repository


async def show(request: MerchantRequest) -> Response:
    catalogue = await request.ctx.catalogues.of(request.merchant.id)
    rows = [
        (row, payment_row(request, row.payment, catalogue, request.date_time(row.payment.created_at)))
        for row in await proposal_repository.open_of(request.db, *request.scope, request.now())
    ]
    return request.page("payments/proposals.html", rows=rows, most=proposal_repository.MOST)
