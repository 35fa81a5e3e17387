"""One payment: its state, everything that is known about it, and its story."""

from msgspec import structs
from starlette.responses import Response

from guichet.console.page_request import MerchantRequest
from guichet.console.payments.payment_view import find_payment, payment_view
from guichet.console.payments.request_example import curl_example
from guichet.console.payments.timeline_view import lines
from guichet.domain.payments import Payment
from guichet.history.payment_history import read_story
from guichet.history.timeline import timeline
from guichet.payments.polling import poll_for_page
from guichet.printable import printable


async def show(request: MerchantRequest) -> Response:
    """Polls the provider of a pending payment first, as its hosted page does."""
    ctx = request.ctx
    payment = await poll_for_page(ctx, await find_payment(request))
    catalogue = await ctx.catalogues.of(request.merchant.id)
    mode = catalogue.by_operator(payment.operator)
    story = await read_story(ctx.db, payment)
    shown = payment_view(request, payment, mode)
    # Its own address for webhooks is for who may see those of the merchant.
    seen = payment if request.may("webhooks.view") else structs.replace(payment, callback_url=None)
    refundable = payment.status == "succeeded" and story.refund is None and request.may("payments.refund")
    return request.show(
        "payments/payment.html",
        payment=shown,
        details=_details(request, seen),
        timeline=lines(request, payment, timeline(story), shown.operator),
        refund=None if story.refund is None else story.refund.status,
        refund_href=request.here(f"/payments/{payment.reference}/refund") if refundable else None,
        receipt_href=_receipt(request, payment, ""),
        pdf_href=_receipt(request, payment, ".pdf"),
        list_href=request.here("/payments"),
        example=curl_example(seen, request.console.public_url),
        metadata=printable(payment.metadata, keep="\n") if payment.metadata else None,
        moving=payment.status == "pending" or (story.refund is not None and story.refund.status == "pending"),
    )


def _receipt(request: MerchantRequest, payment: Payment, kind: str) -> str | None:
    if payment.status not in ("succeeded", "refunded"):
        return None
    return request.here(f"/payments/{payment.reference}/receipt{kind}")


def _details(request: MerchantRequest, payment: Payment) -> list[tuple[str, str]]:
    """Names and values of what the customer and the merchant stated, without what is empty."""
    link = payment.link_external_id or (None if payment.link_id is None else str(payment.link_id))
    stated = {
        "payments.field.email": payment.email,
        "payments.field.address": payment.address,
        "payments.field.country": payment.country if payment.address or payment.email else None,
        "payments.field.link": link,
        "payments.field.return_url": payment.return_url,
        "payments.field.callback_url": payment.callback_url,
    }
    return [(str(request.text(key)), printable(value)) for key, value in stated.items() if value]
