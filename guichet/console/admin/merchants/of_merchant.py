"""What the pages about one merchant's file share."""

from typing import Any

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.console.visit import Visit
from guichet.domain.errors import NotFound
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet.domain.staff_jobs import RIGHT_OF
from guichet.merchants import repository as merchants


async def merchant_of(visit: Visit) -> Merchant:
    """The merchant that the address names. Raises NotFound."""
    number: int = visit.request.path_params["merchant"]
    found = await merchants.get(visit.console.ctx.db, MerchantId(number))
    if found is None:
        raise NotFound
    return found


def address(visit: Visit, merchant: Merchant, page: str = "", **query: str | None) -> str:
    """Of a page of the merchant's file."""
    return visit.at_admin(f"/merchants/{merchant.id}{page}", **query)


def show_file(
    visit: Visit, acting: StaffMember, merchant: Merchant, page: str, status: int = 200, **view: Any
) -> Response:
    """A page of the file, with the way to the others. `page`: the name of its template and of its tab."""
    tabs = [("file", ""), ("modes", "/modes"), ("notes", "/notes")]
    if acting.may("documents.view"):
        tabs.append(("documents", "/documents"))
    tabs.append(("developers", "/developers"))
    if acting.may(RIGHT_OF["anonymise_customer"]):
        tabs.append(("anonymise", "/anonymise"))
    shown = [(name, address(visit, merchant, path), name == page) for name, path in tabs]
    return visit.show(f"admin/merchants/{page}.html", status, merchant=merchant, tabs=shown, **view)
