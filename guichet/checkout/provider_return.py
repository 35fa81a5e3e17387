"""Where a provider's page sends the customer of a live payment that the merchant created itself (docs/contract.md)."""

from starlette.responses import Response

from guichet.checkout.page_context import PageContext
from guichet.checkout.payment_view import return_address
from guichet.domain.errors import NotFound
from guichet.pages.page_request import PageRequest
from guichet.payments import repository as payments
from guichet.payments.polling import poll_for_page


async def redirect(pages: PageContext, page: PageRequest) -> Response:
    """GET: polls the provider, then redirects to the merchant's page with `reference` and `status`.

    A provider's page knows neither: it only repeats the address it was given when the payment was requested.
    """
    token = page.path["token"]
    payment = await payments.by_token(pages.ctx.db, token) if token.isascii() else None
    if payment is None or payment.env != "live" or payment.link_id is not None:
        raise NotFound
    payment = await poll_for_page(pages.ctx, payment)
    merchants_page = return_address(payment, payment.return_url)
    if merchants_page is None:
        raise NotFound
    return page.redirect(merchants_page)
