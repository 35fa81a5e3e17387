"""The receipt of a payment, on the page, in the PDF and in a message to its customer: what they may see, as the hosted
page shows it."""

from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import Response

from guichet.console.page_request import MerchantRequest
from guichet.console.payments.payment_view import find_payment
from guichet.domain.catalogue import PaymentMode
from guichet.domain.merchants import Merchant
from guichet.domain.payments import Payment
from guichet.links import repository as link_repository
from guichet.pages.bill import bill
from guichet.pages.formatting import masked_phone, short_date_time
from guichet.pages.qr_codes import qr_code
from guichet.pages.sms import ONE_PART, gsm_text
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
    payer = " ".join(filter(None, (payment.firstname, payment.lastname)))
    amounts = bill(request, payment.amount, payment.total_amount, payment.currency)
    return Receipt(
        title=text("receipt.refunded" if refunded else "receipt.title"),
        text=text("receipt.refunded_text" if refunded else "receipt.text"),
        details=[
            (text("receipt.merchant"), merchant.name),
            (text("receipt.label"), printable(payment.description)),
            *dates,
            *([(text("receipt.payer"), printable(payer))] if payer else []),
            (text("receipt.mode"), f"{name} · {phone}" if phone else name),
            (text("receipt.number"), payment_identifier(payment.id)),
            (text("receipt.reference"), payment.reference),
        ],
        amounts=[
            (text("receipt.amount"), amounts.amount),
            (text("receipt.fee"), amounts.fee),
            (text("receipt.total"), amounts.total),
        ],
    )


class ReceiptView(View, frozen=True):
    """`qr`: leads to the customer's own page of the payment; None for one that has no such page."""

    receipt: Receipt
    number: str
    qr: Markup | None
    whatsapp: str
    sms: str
    payment_href: str
    pdf_href: str


async def show(request: MerchantRequest) -> Response:
    """A payment that nobody paid has no receipt: its own page says why."""
    payment = await find_payment(request)
    mode = (await request.ctx.catalogues.of(request.merchant.id)).by_operator(payment.operator)
    href = request.merchant_url(f"/payments/{payment.reference}")
    if payment.status not in ("succeeded", "refunded"):
        return request.redirect(href)
    address = await _hosted_page(request, payment)
    line = _one_line(request, payment, mode)
    view = ReceiptView(
        receipt=receipt_of(request, request.merchant, payment, mode),
        number=payment_identifier(payment.id),
        qr=qr_code(address, request.text("receipt.qr_alt").unescape()) if address else None,
        whatsapp=f"https://wa.me/?text={quote(' '.join(filter(None, (line, address))), safe='')}",
        sms=f"sms:?body={quote(_one_message(line), safe='')}",
        payment_href=href,
        pdf_href=request.merchant_url(f"/payments/{payment.reference}/receipt.pdf"),
    )
    return request.page("payments/receipt.html", view)


async def _hosted_page(request: MerchantRequest, payment: Payment) -> str | None:
    """The address of the customer's page, for a payment through a link."""
    if payment.link_id is None or payment.checkout_token is None:
        return None
    link = await link_repository.any_by_id(request.db, *request.scope, payment.link_id)
    return None if link is None else f"{request.console.public_url}/pay/{link.path}/{payment.checkout_token}"


def _one_line(request: MerchantRequest, payment: Payment, mode: PaymentMode | None) -> str:
    """What a receipt must hold, as one sentence; the merchant's name, which may be long, comes last."""
    amounts = bill(request, payment.amount, payment.total_amount, payment.currency)
    return request.text(
        "receipt.line" if payment.status == "succeeded" else "receipt.line_refunded",
        total=amounts.total,
        fee=amounts.fee,
        mode=mode.name if mode else payment.operator,
        moment=short_date_time(payment.updated_at, request.time_zone),
        reference=payment.reference,
        merchant=printable(request.merchant.name),
    ).unescape()


def _one_message(line: str) -> str:
    """The sentence as a text message of one part."""
    return gsm_text(line)[:ONE_PART]
