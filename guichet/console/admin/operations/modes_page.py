"""Payment modes for everybody, by country: what they cost, and how well their operators worked in the last hour."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.availability import availabilities, recent_attempts
from guichet.back_office.payment_modes import current_catalogue
from guichet.clock import HOUR, earlier
from guichet.console.admin.mode_form import ModeFormFault, change_by_form, fee_text
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.domain.availability import UP
from guichet.pages.formatting import country_name


async def show(visit: Visit, acting: StaffMember) -> Response:
    """`?operator=` leads from a mode to the form about it."""
    return await _page(visit, acting, form={"operator": visit.request.query_params.get("operator", "")})


async def change(visit: Visit, acting: StaffMember) -> Response:
    """Opens or closes a mode for everybody, or sets its general fee, after a confirmation."""
    form = await visit.form()
    acting.require("modes.change", visit.console.ctx.clock.now())
    try:
        to_confirm = await change_by_form(visit, acting, None, form)
    except ModeFormFault as fault:
        return await _page(visit, acting, 422, fault.text, form)
    if to_confirm is not None:
        return visit.show("admin/operations/modes_confirmation.html", **to_confirm)
    return visit.redirect(visit.at_admin("/modes", done="saved"))


async def _page(
    visit: Visit, acting: StaffMember, status: int = 200, fault: Any = None, form: dict[str, str] | None = None
) -> Response:
    rows = await _weather(visit)
    countries: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        mode = row["mode"]
        no_country = visit.text("operations.no_country")
        name = country_name(mode.country or no_country, mode.country_code, visit.language)
        countries.setdefault(name, []).append(row)
    view = {
        "countries": countries,
        "modes": [row["mode"] for row in rows],
        "may_change": acting.may("modes.change"),
        "done": visit.request.query_params.get("done") == "saved",
        "typed": form or {},
    }
    return visit.show("admin/operations/modes.html", status, fault=fault, **view)


async def _weather(visit: Visit) -> list[dict[str, Any]]:
    """One row for each mode: `percent` of the attempts of the last hour that did not fail technically, None without
    attempts. Reads a row for each operator and minute."""
    ctx = visit.console.ctx
    now = ctx.clock.now()
    known = {each.operator: each for each in await availabilities(ctx.db)}
    attempts = await recent_attempts(ctx.db, now)
    rows = []
    for mode in (await current_catalogue(ctx, None)).modes:
        counted = [each for each in attempts.get(mode.operator, ()) if each.minute >= earlier(now, HOUR)]
        made, failed = sum(each.attempts for each in counted), sum(each.failures for each in counted)
        state = known.get(mode.operator)
        rows.append(
            {
                "mode": mode,
                "fee": fee_text(visit, mode),
                "state": state.state if state else UP,
                "since": state.since if state else None,
                "why": state.reason if state else None,
                "attempts": made,
                "percent": None if not made else 100 * (made - failed) // made,
            }
        )
    return rows


PAGES: Final = (StaffPage("/modes", "modes.view", show, change, menu="modes"),)
