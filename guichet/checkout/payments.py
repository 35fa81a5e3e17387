"""The page of a payment made through a link, under its own random token: waiting, then a receipt or a failure."""

from starlette.responses import JSONResponse, Response

from guichet.checkout import links, outcomes
from guichet.checkout.page_context import Desk
from guichet.checkout.page_request import HEADERS, Visit
from guichet.domain.errors import NotFound
from guichet.domain.payments import Payment
from guichet.payments import repository as rows

#: Stage of a payment → its template.
TEMPLATES = {
    "pending": "waiting.html",
    "elsewhere": "waiting.html",
    "succeeded": "receipt.html",
    "refunded": "receipt.html",
    "failed": "failure.html",
}


async def show(desk: Desk, visit: Visit) -> Response:
    """GET: asks the operator, then says where the payment stands."""
    link, merchant = await links.find(desk, visit)
    payment = await desk.asker.ask(await _find(desk, visit, link.id))
    view = outcomes.view(
        visit,
        payment,
        merchant,
        await desk.ctx.catalogues.of(merchant.id),
        desk.clock.now(),
        f"/pay/{link.path}/{payment.checkout_token}",
        link_path=f"/pay/{link.path}",
        simulator=desk.simulator,
    )
    return visit.page(TEMPLATES[view.stage], view)


async def status(desk: Desk, visit: Visit) -> Response:
    """GET, for the script: `{"stage": "pending"}`, a few bytes."""
    link, _ = await links.find(desk, visit)
    payment = await desk.asker.ask(await _find(desk, visit, link.id))
    return JSONResponse({"stage": outcomes.stage(payment)}, headers=HEADERS)


async def _find(desk: Desk, visit: Visit, link_id: int) -> Payment:
    token = visit.request.path_params["token"]
    payment = await rows.by_token(desk.ctx.db, token) if token.isascii() else None
    if payment is None or payment.link_id != link_id:
        raise NotFound
    return payment
