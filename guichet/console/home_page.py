"""The first page: the merchants that somebody works for. Who works for one is sent on to it, the staff to the back
office."""

from typing import Final

from starlette.responses import Response

from guichet.console.page_request import ConsoleRequest
from guichet.domain.merchants import Environment, Merchant, MerchantStatus

#: Where a merchant's pages begin: one that may not take money yet has nothing but tests.
_FIRST: Final[dict[MerchantStatus, Environment]] = {"pending": "test"}


async def show(request: ConsoleRequest) -> Response:
    _, user = request.signed_in
    if user.staff_role is not None:
        return request.redirect(request.at_admin(""))
    if len(request.places) == 1:
        return request.redirect(_overview(request, request.places[0][1]))
    places = [
        {"merchant": merchant, "role": request.text(f"role.{role}"), "overview": _overview(request, merchant)}
        for role, merchant in request.places
    ]
    return request.show("home.html", places=places)


def _overview(request: ConsoleRequest, merchant: Merchant) -> str:
    return request.at(f"/{merchant.id}/{_FIRST.get(merchant.status, 'live')}")
