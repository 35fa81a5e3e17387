"""The receipt of a payment, on the page and in the PDF: what its customer may see, as the hosted page shows it."""

from typing import Final

from starlette.responses import Response

from guichet.console.page_request import MerchantRequest
from guichet.console.payments.payment_view import find_payment
from guichet.console.sections import MerchantPage
from guichet.domain.catalogue import PaymentMode
from guichet.domain.merchants import Merchant
from guichet.domain.payments import Payment
from guichet.pages.bill import bill
from guichet.pages.formatting import masked_phone
from guichet.pages.views import View
from guichet.printable import printable
from guichet.schemas.payment import payment_identifier


class Receipt(View, frozen=True):
    """Pairs of a name and a value, without escapes. The last of `amounts` is the total."""

    title: str
    text: str
    details: list[tuple[str, str]]
    amounts: list[tuple[str, str]]


def receipt_of(request: MerchantRequest, merchant: Merchant, payment: Payment, mode: PaymentMode | None) -> Receipt:
    """`payment`: succeeded or refunded. `mode`: of its operator; None when the catalogue no longer has it."""
    refunded = payment.status == "refunded"
    name = mode.name if mode else payment.operator
    phone = masked_phone(payment.phone_number, mode.dial_code if mode else None) if payment.phone_number else None

    def text(key: str) -> str:
        return request.text(key, merchant=merchant.name).unescape()

    # The change to its present status is the last that a payment sees.
    dates = [(text("receipt.refunded_at" if refunded else "receipt.paid_at"), request.date_time(payment.updated_at))]
    if refunded:
        dates.insert(0, (text("receipt.created"), request.date_time(payment.created_at)))
    shown = bill(request, payment.amount, payment.total_amount, payment.currency)
    return Receipt(
        title=text("receipt.refunded" if refunded else "receipt.title"),
        text=text("receipt.refunded_text" if refunded else "receipt.text"),
        details=[
            (text("receipt.merchant"), merchant.name),
            (text("receipt.label"), printable(payment.description)),
            *dates,
            (text("receipt.mode"), f"{name} · {phone}" if phone else name),
            (text("receipt.number"), payment_identifier(payment.id)),
            (text("receipt.reference"), payment.reference),
        ],
        amounts=[
            (text("receipt.amount"), shown.amount),
            (text("receipt.fee"), shown.fee),
            (text("receipt.total"), shown.total),
        ],
    )


class ReceiptView(View, frozen=True):
    receipt: Receipt
    refunded: bool
    number: str
    payment_href: str
    pdf_href: str


async def show(request: MerchantRequest) -> Response:
    """A payment that nobody paid has no receipt: its own page says why."""
    payment = await find_payment(request)
    mode = (await request.ctx.catalogues.of(request.merchant.id)).by_operator(payment.operator)
    href = request.here(f"/payments/{payment.reference}")
    if payment.status not in ("succeeded", "refunded"):
        return request.redirect(href)
    view = ReceiptView(
        receipt=receipt_of(request, request.merchant, payment, mode),
        refunded=payment.status == "refunded",
        number=payment_identifier(payment.id),
        payment_href=href,
        pdf_href=request.here(f"/payments/{payment.reference}/receipt.pdf"),
    )
    return request.page("payments/receipt.html", view)


PAGES: Final = (MerchantPage("/payments/{reference}/receipt", "payments.view", show),)
