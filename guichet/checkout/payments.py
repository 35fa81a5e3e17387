"""The page of a payment, under its own random token: waiting, then a receipt or a failure; and where a provider's page
sends the customer of a payment that the merchant created itself (docs/contract.md)."""

from typing import Final
from urllib.parse import urlencode, urlsplit, urlunsplit

from starlette.responses import JSONResponse, Response

from guichet import clock
from guichet.checkout.links import find_link
from guichet.checkout.page_context import PageContext
from guichet.checkout.views import initials
from guichet.domain.catalogue import Catalogue
from guichet.domain.errors import NotFound
from guichet.domain.ids import LinkId
from guichet.domain.merchants import Merchant
from guichet.domain.payments import Payment
from guichet.domain.records import Record
from guichet.pages import formatting
from guichet.pages.bill import Bill, bill
from guichet.pages.fields import or_not_found
from guichet.pages.page_request import HEADERS, PageRequest
from guichet.payments import attempts
from guichet.payments import repository as payments
from guichet.payments.polling import poll_for_page
from guichet.printable import printable, printable_label
from guichet.refunds import repository as refunds
from guichet.schemas.payment import payment_identifier

#: Seconds between two refreshes without JavaScript, by the age of the payment in seconds.
_REFRESH: Final = ((120, 4), (600, 10))
_REFRESH_LATER: Final = 30
#: After this many seconds the page tells the customer not to pay a second time.
_LONG: Final = 90

#: Stage of a payment → its template.
TEMPLATES: Final = {
    "pending": "waiting.html",
    "elsewhere": "waiting.html",
    "overdue": "waiting.html",
    "returning": "receipt.html",
    "succeeded": "receipt.html",
    "refunded": "receipt.html",
    "failed": "failure.html",
}


class CheckoutPaymentView(Record, frozen=True):
    """A payment as its pages show it. `*_href` are addresses; None if there is no such link."""

    stage: str
    merchant: str
    monogram: str
    label: str
    bill: Bill
    date: str
    mode: str
    phone: str | None
    payer: str | None
    identifier: str
    reference: str
    test: bool
    reason: str | None
    #: The customer confirmed with a code in the form, not on the phone.
    confirmed_by_code: bool
    takes_long: bool
    #: Seconds until the page loads itself again where there is no JavaScript.
    refresh: int
    page_href: str
    status_href: str
    #: The page of the provider on which the customer confirms.
    provider_page: str | None
    #: Where another number can be given.
    other_href: str | None
    simulator: str | None
    retry_href: str | None
    return_href: str | None


def stage(payment: Payment, now: clock.Instant, confirmable_until: clock.Instant | None) -> str:
    """The status; `elsewhere` while the customer confirms on the provider's page, `overdue` when nothing can be
    confirmed any more. A change reloads the page. `confirmable_until`: None where there is no other attempt."""
    if payment.status != "pending":
        return payment.status
    if confirmable_until is not None and confirmable_until <= now:
        return "overdue"
    return "elsewhere" if payment.redirect_url else "pending"


def payment_view(
    page: PageRequest,
    payment: Payment,
    merchant: Merchant,
    modes: Catalogue,
    *,
    now: clock.Instant,
    path: str,
    return_url: str | None,
    link_path: str | None = None,
    simulator_path: str | None = None,
    confirmable_until: clock.Instant | None = None,
    returns: bool = False,
) -> CheckoutPaymentView:
    """`path`: of the page itself, within the service; `link_path`: of the payment link it came from, if any;
    `return_url`: the merchant's page; `returns`: it is refunded without being asked."""
    state = stage(payment, now, confirmable_until)
    mode = modes.by_operator(payment.operator)
    name = mode.name if mode else payment.operator
    age = (now - payment.created_at) // clock.SECOND
    shown_bill = bill(page, payment.amount, payment.total_amount, payment.currency)
    failed = payment.status == "failed"
    other_href = page.href(f"{path}/other")
    retry_href = page.href(link_path, mode=payment.operator) if link_path else None
    return CheckoutPaymentView(
        stage="returning" if returns and state == "succeeded" else state,
        merchant=merchant.name,
        monogram=initials(merchant.name),
        label=printable_label(payment.description),
        bill=shown_bill,
        date=page.date_time(payment.updated_at),
        mode=name,
        phone=formatting.masked_phone(payment.phone_number, mode.dial_code if mode else None)
        if payment.phone_number
        else None,
        payer=printable(" ".join(filter(None, (payment.firstname, payment.lastname)))) or None,
        identifier=payment_identifier(payment.id),
        reference=payment.reference,
        test=payment.env == "test",
        reason=_reason(page, payment, name, shown_bill) if failed else None,
        confirmed_by_code=bool(mode and mode.requires_otp),
        takes_long=age >= _LONG,
        refresh=next((seconds for limit, seconds in _REFRESH if age < limit), _REFRESH_LATER),
        page_href=page.href(path),
        status_href=page.href(f"{path}/status"),
        provider_page=_web_address(payment.redirect_url),
        other_href=other_href if state == "overdue" else None,
        simulator=simulator_path,
        # Another attempt is still open: the next one is in its place, too.
        retry_href=retry_href if payment.attempt_of is None else other_href,
        return_href=return_address(payment, return_url),
    )


def _reason(page: PageRequest, payment: Payment, mode: str, amounts: Bill) -> str:
    """Why it failed; the general sentence about a refusal if the reason has none of its own."""
    key = f"failure.{payment.failure_reason}"
    known = page.renderer.has(key)
    return page.text(key if known else "failure.refused", mode=mode, total=amounts.total)


def return_address(payment: Payment, return_url: str | None) -> str | None:
    """The merchant's page, with `reference` and `status` added to its query; None if there is none."""
    address = _web_address(return_url)
    if address is None:
        return None
    parts = urlsplit(address)
    added = urlencode({"reference": payment.reference, "status": payment.status})
    query = f"{parts.query}&{added}" if parts.query else added
    return urlunsplit(parts._replace(query=query))


def _web_address(url: str | None) -> str | None:
    """`url` if it is http or https: our pages link to nothing else."""
    return url if url and urlsplit(url).scheme in ("http", "https") else None


async def show(pages: PageContext, page: PageRequest) -> Response:
    """GET: polls the provider, then shows the state of the payment."""
    request = await find_link(pages, page)
    payment = await poll_for_page(pages.ctx, await find_payment(pages, page, request.link.id))
    view = payment_view(
        page,
        payment,
        request.merchant,
        await pages.ctx.catalogues.of(request.merchant.id),
        now=pages.clock.now(),
        path=f"/pay/{request.link.path}/{payment.checkout_token}",
        return_url=request.link.return_url,
        link_path=f"/pay/{request.link.path}",
        simulator_path=pages.simulator_path if payment.env == "live" else None,
        confirmable_until=attempts.confirmable_until(pages.ctx, payment),
        returns=await _is_unneeded(pages, payment),
    )
    return page.render(TEMPLATES[view.stage], view)


async def _is_unneeded(pages: PageContext, payment: Payment) -> bool:
    if payment.status != "succeeded":
        return False
    refund = await refunds.of_payment(pages.ctx.db, payment.merchant_id, payment.id)
    return refund is not None and refund.automatic is not None


async def status(pages: PageContext, page: PageRequest) -> Response:
    """GET, for the script of the waiting page: `{"stage": "pending"}`."""
    request = await find_link(pages, page)
    payment = await poll_for_page(pages.ctx, await find_payment(pages, page, request.link.id))
    state = stage(payment, pages.clock.now(), attempts.confirmable_until(pages.ctx, payment))
    return JSONResponse({"stage": state}, headers=HEADERS)


async def find_payment(pages: PageContext, page: PageRequest, link_id: LinkId) -> Payment:
    """The payment through this link that the path names. Raises NotFound."""
    token = page.path["token"]
    payment = await payments.by_token(pages.ctx.db, token) if token.isascii() else None
    if payment is None or payment.link_id != link_id:
        raise NotFound
    return payment


async def redirect(pages: PageContext, page: PageRequest) -> Response:
    """GET: polls the provider, then redirects to the merchant's page with `reference` and `status`.

    A provider's page knows neither: it only repeats the address it was given when the payment was requested.
    """
    token = page.path["token"]
    payment = await payments.by_token(pages.ctx.db, token) if token.isascii() else None
    if payment is None or payment.env != "live" or payment.link_id is not None:
        raise NotFound
    payment = await poll_for_page(pages.ctx, payment)
    merchants_page = or_not_found(return_address(payment, payment.return_url))
    return page.redirect(merchants_page)
