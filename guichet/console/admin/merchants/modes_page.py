"""The payment modes of one merchant, and what they cost its customers."""

from typing import Any, Final

from starlette.responses import Response

from guichet.back_office.payment_modes import current_catalogue
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.admin.mode_form import ModeFormFault, change_by_form, fee_text
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.merchants import Merchant


async def show(request: StaffRequest) -> Response:
    return await _page(request, await merchant_of(request))


async def change(request: StaffRequest) -> Response:
    """Opens or closes a mode for this merchant, or sets its fee, after a confirmation."""
    form = await request.form()
    request.require("merchants.change")
    merchant = await merchant_of(request)
    try:
        to_confirm = await change_by_form(request, merchant.id, form)
    except ModeFormFault as fault:
        return await _page(request, merchant, 422, fault.text, form)
    if to_confirm is not None:
        return show_file(request, merchant, "modes_confirmation", **to_confirm)
    return request.redirect(address(request, merchant, "/modes", done="saved"))


async def _page(
    request: StaffRequest,
    merchant: Merchant,
    status: int = 200,
    fault: Any = None,
    form: dict[str, str] | None = None,
) -> Response:
    ctx = request.ctx
    everybody = await current_catalogue(ctx, None)
    modes = (await current_catalogue(ctx, merchant.id)).modes
    view = {
        "rows": [(mode, fee_text(request, mode), mode != everybody.by_operator(mode.operator)) for mode in modes],
        "modes": modes,
        "may_change": request.may("merchants.change"),
        "done": request.query.get("done") == "saved",
        "typed": form or {},
    }
    return show_file(request, merchant, "modes", status, fault=fault, **view)


PAGES: Final = (StaffPage("/merchants/{merchant:row}/modes", "merchants.view", show, change),)
