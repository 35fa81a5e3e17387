"""The payment modes of one merchant, and what they cost its customers."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.back_office.payment_modes import current_catalogue
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.admin.mode_form import ModeFormFault, change_by_form, fee_text
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.domain.merchants import Merchant


async def show(visit: Visit, acting: StaffMember) -> Response:
    return await _page(visit, acting, await merchant_of(visit))


async def change(visit: Visit, acting: StaffMember) -> Response:
    """Opens or closes a mode for this merchant, or sets its fee, after a confirmation."""
    form = await visit.form()
    acting.require("merchants.change", visit.console.ctx.clock.now())
    merchant = await merchant_of(visit)
    try:
        to_confirm = await change_by_form(visit, acting, merchant.id, form)
    except ModeFormFault as fault:
        return await _page(visit, acting, merchant, 422, fault.text, form)
    if to_confirm is not None:
        return show_file(visit, acting, merchant, "modes_confirmation", **to_confirm)
    return visit.redirect(address(visit, merchant, "/modes", done="saved"))


async def _page(
    visit: Visit,
    acting: StaffMember,
    merchant: Merchant,
    status: int = 200,
    fault: Any = None,
    form: dict[str, str] | None = None,
) -> Response:
    ctx = visit.console.ctx
    everybody = await current_catalogue(ctx, None)
    modes = (await current_catalogue(ctx, merchant.id)).modes
    view = {
        "rows": [(mode, fee_text(visit, mode), mode != everybody.by_operator(mode.operator)) for mode in modes],
        "modes": modes,
        "may_change": acting.may("merchants.change"),
        "done": visit.request.query_params.get("done") == "saved",
        "typed": form or {},
    }
    return show_file(visit, acting, merchant, "modes", status, fault=fault, **view)


PAGES: Final = (StaffPage("/merchants/{merchant:row}/modes", "merchants.view", show, change),)
