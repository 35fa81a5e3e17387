"""The page of a payment made through a link, under its own random token: waiting, then a receipt or a failure."""

from starlette.responses import JSONResponse, Response

from guichet.checkout.links import find_link
from guichet.checkout.page_context import PageContext
from guichet.checkout.payment_view import TEMPLATES, payment_view, stage
from guichet.domain.errors import NotFound
from guichet.domain.ids import LinkId
from guichet.domain.payments import Payment
from guichet.pages.page_request import HEADERS, PageRequest
from guichet.payments import repository as payments
from guichet.payments.polling import poll_for_page


async def show(pages: PageContext, page: PageRequest) -> Response:
    """GET: polls the provider, then shows the state of the payment."""
    request = await find_link(pages, page)
    payment = await poll_for_page(pages.ctx, await _find_payment(pages, page, request.link.id))
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
    )
    return page.render(TEMPLATES[view.stage], view)


async def status(pages: PageContext, page: PageRequest) -> Response:
    """GET, for the script of the waiting page: `{"stage": "pending"}`."""
    request = await find_link(pages, page)
    payment = await poll_for_page(pages.ctx, await _find_payment(pages, page, request.link.id))
    return JSONResponse({"stage": stage(payment)}, headers=HEADERS)


async def _find_payment(pages: PageContext, page: PageRequest, link_id: LinkId) -> Payment:
    token = page.path["token"]
    payment = await payments.by_token(pages.ctx.db, token) if token.isascii() else None
    if payment is None or payment.link_id != link_id:
        raise NotFound
    return payment
