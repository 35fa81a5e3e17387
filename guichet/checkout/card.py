"""The page of the test environment on which a tester chooses success or failure: of a card, and of an operator that
redirects (docs/contract.md, "The test environment")."""

from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response

from guichet.checkout import state_pages
from guichet.checkout.page_context import PageContext
from guichet.checkout.payments import TEMPLATES, payment_view, return_address
from guichet.domain.errors import NotFound
from guichet.domain.merchants import Merchant
from guichet.domain.money import round_to_currency
from guichet.domain.payments import Payment
from guichet.pages.forms import is_from_elsewhere, read_form
from guichet.pages.page_request import PageRequest
from guichet.payments import repository as payments
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Refused, Succeeded

_CHOICES: Final = ("succeeded", "failed")


async def show(pages: PageContext, page: PageRequest) -> Response:
    """GET: the two choices, or the state of the payment if one was chosen already."""
    payment, merchant = await _find_payment(pages, page)
    return await _payment_page(pages, page, payment, merchant)


async def choose(pages: PageContext, page: PageRequest) -> Response:
    """POST: settles a pending payment as chosen, then redirects to the merchant or to the result."""
    payment, merchant = await _find_payment(pages, page)
    if is_from_elsewhere(page.http, pages.public_url):
        return state_pages.state_page(page, "elsewhere", page.href(f"/checkout/{payment.checkout_token}"))
    choice = (await read_form(page.http)).get("outcome")
    if choice not in _CHOICES:
        return await _payment_page(pages, page, payment, merchant, status=422)
    if payment.status == "pending":
        approved = Succeeded(round_to_currency(payment.total_amount, payment.currency), payment.currency)
        refused = Refused("rejected_by_payer" if payment.redirect_url else "declined")
        outcome = approved if choice == "succeeded" else refused
        payment = await settle_payment(pages.ctx, payment, outcome)
    merchants_page = return_address(payment, payment.return_url)
    return page.redirect(merchants_page or page.href(f"/checkout/{payment.checkout_token}"))


async def _find_payment(pages: PageContext, page: PageRequest) -> tuple[Payment, Merchant]:
    token = page.path["token"]
    payment = await payments.by_token(pages.ctx.db, token) if token.isascii() else None
    if payment is None or payment.env != "test":
        raise NotFound
    return payment, await pages.merchant(page, payment.merchant_id)


async def _payment_page(
    pages: PageContext, page: PageRequest, payment: Payment, merchant: Merchant, status: int = 200
) -> Response:
    path = f"/checkout/{payment.checkout_token}"
    modes = await pages.ctx.catalogues.of(merchant.id)
    view = payment_view(page, payment, merchant, modes, now=pages.clock.now(), path=path, return_url=payment.return_url)
    if payment.status != "pending":
        return page.render(TEMPLATES[view.stage], view)
    # A browser applies form-action to where the response redirects, and to where that redirects in turn.
    forms_to = "'self'"
    if view.return_href:
        forms_to += " https: http:" if urlsplit(view.return_href).scheme == "http" else " https:"
    return page.render("checkout.html", view, status, forms_to=forms_to)
