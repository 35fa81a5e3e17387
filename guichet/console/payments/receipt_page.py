"""The receipt of a payment, to print or to show: what its customer may see."""

from starlette.responses import Response

from guichet.console.page_request import MerchantRequest
from guichet.console.payments.payment_view import find_payment
from guichet.console.payments.receipt_lines import receipt_of
from guichet.schemas.payment import payment_identifier


async def show(request: MerchantRequest) -> Response:
    """A payment that nobody paid has no receipt: its own page says why."""
    payment = await find_payment(request)
    mode = (await request.ctx.catalogues.of(request.merchant.id)).by_operator(payment.operator)
    href = request.here(f"/payments/{payment.reference}")
    if payment.status not in ("succeeded", "refunded"):
        return request.redirect(href)
    return request.show(
        "payments/receipt.html",
        receipt=receipt_of(request, request.merchant, payment, mode),
        refunded=payment.status == "refunded",
        number=payment_identifier(payment.id),
        payment_href=href,
        pdf_href=request.here(f"/payments/{payment.reference}/receipt.pdf"),
    )
