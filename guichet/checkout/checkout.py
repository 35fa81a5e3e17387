"""The card page of the test environment (docs/contract.md, "The test environment"): two choices, once."""

from dataclasses import asdict
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response

from guichet.checkout import forms, outcomes, states
from guichet.checkout.page_context import Desk
from guichet.checkout.page_request import Visit
from guichet.checkout.payments import TEMPLATES
from guichet.db.engine import require
from guichet.domain.errors import NotFound
from guichet.domain.merchants import Merchant
from guichet.domain.money import Hundredths
from guichet.domain.payments import Payment
from guichet.merchants import repository as merchants
from guichet.payments import repository as rows
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Refused, Succeeded

_CHOICES: Final = ("succeeded", "failed")


async def show(desk: Desk, visit: Visit) -> Response:
    """GET: the two choices, or what became of the payment."""
    payment, merchant = await _find(desk, visit)
    return await _page(desk, visit, payment, merchant)


async def choose(desk: Desk, visit: Visit) -> Response:
    """POST: applies the choice if none was made before, then leads back to the merchant, or to the result."""
    payment, merchant = await _find(desk, visit)
    if forms.from_elsewhere(visit.request, desk.public_url):
        return states.message(visit, "elsewhere", visit.href(f"/checkout/{payment.checkout_token}"))
    choice = (await forms.read(visit.request)).get("outcome")
    if choice not in _CHOICES:
        return await _page(desk, visit, payment, merchant, status=422)
    if payment.status == "pending":
        approved = Succeeded(Hundredths(payment.total_amount), payment.currency)
        outcome = approved if choice == "succeeded" else Refused("declined")
        payment = await settle_payment(desk.ctx, payment, outcome)
    return visit.redirect(outcomes.return_address(payment) or visit.href(f"/checkout/{payment.checkout_token}"))


async def _find(desk: Desk, visit: Visit) -> tuple[Payment, Merchant]:
    token = visit.request.path_params["token"]
    payment = await rows.by_token(desk.ctx.db, token) if token.isascii() else None
    if payment is None or payment.env != "test" or payment.link_id is not None:
        raise NotFound
    return payment, require(await merchants.get(desk.ctx.db, payment.merchant_id))


async def _page(desk: Desk, visit: Visit, payment: Payment, merchant: Merchant, status: int = 200) -> Response:
    path = f"/checkout/{payment.checkout_token}"
    modes = await desk.ctx.catalogues.of(merchant.id)
    view = outcomes.view(visit, payment, merchant, modes, desk.clock.now(), path)
    if payment.status != "pending":
        return visit.page(TEMPLATES[view.stage], view)
    # The browser applies form-action to where the form's answer redirects, and to where that redirects in turn.
    forms_to = "'self'"
    if view.return_href:
        forms_to += " https: http:" if urlsplit(view.return_href).scheme == "http" else " https:"
    return visit.page("checkout.html", asdict(view) | {"action": view.here}, status, forms_to=forms_to)
