"""The first page: the merchants that somebody works for. Who works for one is sent on to it, the staff to the back
office."""

from typing import Final

from starlette.responses import Response

from guichet.console.visit import Visit
from guichet.domain.merchants import Environment, Merchant, MerchantStatus

#: Where a merchant's pages begin: one that may not take money yet has nothing but tests.
_FIRST: Final[dict[MerchantStatus, Environment]] = {"pending": "test"}


async def show(visit: Visit) -> Response:
    _, user = visit.signed_in
    if user.staff_role is not None:
        return visit.redirect(visit.at_admin(""))
    if len(visit.places) == 1:
        return visit.redirect(_overview(visit, visit.places[0][1]))
    places = [
        {"merchant": merchant, "role": visit.text(f"role.{role}"), "overview": _overview(visit, merchant)}
        for role, merchant in visit.places
    ]
    return visit.show("home.html", places=places)


def _overview(visit: Visit, merchant: Merchant) -> str:
    return visit.at(f"/{merchant.id}/{_FIRST.get(merchant.status, 'live')}")
