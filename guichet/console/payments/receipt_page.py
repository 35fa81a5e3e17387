"""The receipt of a payment, to print or to show: what its customer may see."""

from starlette.responses import Response

from guichet.accounts.rights import Member
from guichet.console.payments.payment_view import find_payment
from guichet.console.payments.receipt_lines import receipt_of
from guichet.console.visit import Visit
from guichet.schemas.payment import payment_identifier


async def show(visit: Visit, acting: Member) -> Response:
    """A payment that nobody paid has no receipt: its own page says why."""
    payment = await find_payment(visit, acting)
    mode = (await visit.console.ctx.catalogues.of(acting.merchant.id)).by_operator(payment.operator)
    href = visit.here(f"/payments/{payment.reference}")
    if payment.status not in ("succeeded", "refunded"):
        return visit.redirect(href)
    return visit.show(
        "payments/receipt.html",
        receipt=receipt_of(visit, acting.merchant, payment, mode),
        refunded=payment.status == "refunded",
        number=payment_identifier(payment.id),
        payment_href=href,
        pdf_href=visit.here(f"/payments/{payment.reference}/receipt.pdf"),
    )
