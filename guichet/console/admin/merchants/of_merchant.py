"""What the pages about one merchant's file share."""

from typing import Any

from starlette.responses import Response

from guichet.console.page_request import StaffRequest
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet.domain.staff_jobs import RIGHT_OF
from guichet.merchants import repository as merchants
from guichet.pages.fields import or_not_found
from guichet.pages.views import View


async def merchant_of(request: StaffRequest) -> Merchant:
    """The merchant that the address names. Raises NotFound."""
    return or_not_found(await merchants.get(request.db, MerchantId(request.path["merchant"])))


def address(request: StaffRequest, merchant: Merchant, page: str = "", **query: str | None) -> str:
    """Of a page of the merchant's file."""
    return request.admin_url(f"/merchants/{merchant.id}{page}", **query)


def show_file(
    request: StaffRequest, merchant: Merchant, page: str, view: View | None = None, **values: Any
) -> Response:
    """A page of the file, with the way to the others. `page`: the name of its template and of its tab."""
    tabs = [("file", ""), ("modes", "/modes"), ("notes", "/notes")]
    if request.may("documents.view"):
        tabs.append(("documents", "/documents"))
    tabs.append(("developers", "/developers"))
    if request.may(RIGHT_OF["anonymise_customer"]):
        tabs.append(("anonymise", "/anonymise"))
    links = [(name, address(request, merchant, path), name == page) for name, path in tabs]
    return request.page(f"admin/merchants/{page}.html", view, merchant=merchant, tabs=links, **values)
