"""One payment: its state, what is known about it, its timeline, and the request to the API that would make it."""

import shlex
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import structs
from starlette.responses import Response

from guichet.console.page_request import MerchantRequest
from guichet.console.payments.payment_view import PaymentView, contest_of, find_payment, payment_view
from guichet.console.payments.timeline_view import Line, lines
from guichet.disputes import repository as dispute_repository
from guichet.domain.disputes import Dispute
from guichet.domain.money import DEFAULT_CURRENCY, plain
from guichet.domain.payments import DEFAULT_COUNTRY, DEFAULT_DESCRIPTION, Payment, RefundStatus
from guichet.history.payment_history import read_history
from guichet.history.timeline import timeline
from guichet.pages.formatting import stated_country
from guichet.pages.views import View
from guichet.payments.polling import poll_for_page
from guichet.printable import printable, printable_json

#: In place of the key; a shell says that the variable is not set.
KEY_PLACEHOLDER: Final = "$GUICHET_KEY"


class PaymentPageView(View, frozen=True):
    """`details`: names and values; `refund`: its status; `refundable`: by this reader; `moving`: whether something may
    change soon. `answer_by`: until when the bank takes evidence."""

    payment: PaymentView
    details: list[tuple[str, str]]
    timeline: list[Line]
    refund: RefundStatus | None
    refundable: bool
    example: str
    answer_by: str | None
    metadata: str | None
    moving: bool


async def show(request: MerchantRequest) -> Response:
    """Polls the provider of a pending payment first, as its hosted page does."""
    ctx = request.ctx
    payment = await poll_for_page(ctx, await find_payment(request))
    disputes = await dispute_repository.of_payment(ctx.db, payment.id)
    contest = contest_of(disputes)
    payment_fields = payment_view(request, payment, await ctx.catalogues.of(request.merchant.id), contest)
    history = await read_history(ctx.db, payment)
    # Its own address for webhooks is for who may see those of the merchant.
    visible = payment if request.may("webhooks.view") else structs.replace(payment, callback_url=None)
    refundable = payment.status == "succeeded" and not contest and history.refund is None
    refund = None if history.refund is None else history.refund.status
    view = PaymentPageView(
        payment=payment_fields,
        details=_details(request, visible),
        timeline=lines(request, payment, timeline(history), payment_fields.operator),
        refund=refund,
        refundable=refundable and request.may("payments.refund"),
        example=curl_example(visible, request.console.public_url),
        answer_by=_answer_by(request, disputes) if contest == "open" else None,
        metadata=printable(payment.metadata, keep="\n") if payment.metadata else None,
        moving="pending" in (payment.status, refund),
    )
    return request.page("payments/payment.html", view)


def _answer_by(request: MerchantRequest, disputes: Sequence[Dispute]) -> str | None:
    ends = [dispute.evidence_due_at for dispute in disputes if dispute.status == "open" and dispute.evidence_due_at]
    return request.date_time(min(ends)) if ends else None


def _details(request: MerchantRequest, payment: Payment) -> list[tuple[str, str]]:
    """Names and values of what the customer and the merchant stated, without what is empty."""
    of_session = payment.session_reference is not None
    source = payment.link_external_id or payment.session_reference or (payment.link_id and str(payment.link_id))
    country = stated_country(payment.country, request.language) if payment.country else None
    details = {
        "payments.field.email": payment.email,
        "payments.field.address": payment.address,
        "payments.field.country": country if payment.address or payment.email else None,
        "payments.field.link": None if of_session else source,
        "payments.field.session": source if of_session else None,
        "payments.field.return_url": payment.return_url,
        "payments.field.callback_url": payment.callback_url,
    }
    return [(str(request.text(key)), printable(value)) for key, value in details.items() if value]


def curl_example(payment: Payment, public_url: str) -> str:
    """A command in one text of several lines. A code that the customer typed was not stored, and is not in it."""
    body = printable_json(msgspec.json.format(msgspec.json.encode(_body(payment)), indent=2).decode())
    return (
        f"curl -X POST {shlex.quote(f'{public_url}/v1/payments')} \\\n"
        f'  -H "Authorization: Bearer {KEY_PLACEHOLDER}" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  -d {shlex.quote(body)}"
    )


def _body(payment: Payment) -> dict[str, Any]:
    customer = {
        "firstname": payment.firstname,
        "lastname": payment.lastname,
        "email": payment.email,
        "address": payment.address,
        "country": None if payment.country == DEFAULT_COUNTRY else payment.country,
    }
    fields = {
        "currency": None if payment.currency == DEFAULT_CURRENCY else payment.currency,
        "operator": payment.operator,
        "phone_number": payment.phone_number,
        "description": None if payment.description == DEFAULT_DESCRIPTION else payment.description,
        "external_id": payment.external_id,
        "return_url": payment.return_url,
        "callback_url": payment.callback_url,
        "metadata": msgspec.Raw(payment.metadata.encode()) if payment.metadata else None,
        "customer": {name: value for name, value in customer.items() if value} or None,
    }
    # As exact texts: JSON libraries know binary fractions only, and integers of few digits.
    amount = msgspec.Raw(plain(payment.amount).encode())
    return {"amount": amount, **{name: value for name, value in fields.items() if value is not None}}
