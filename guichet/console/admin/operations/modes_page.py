"""Payment modes for everybody, and how well their operators work: by country, with the figures of the last hour."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts.rights import StaffMember
from guichet.administration.errors import UnknownOperator
from guichet.administration.payment_modes import change_mode, current_catalogue
from guichet.availability.attempts import recent_attempts
from guichet.availability.states import availabilities
from guichet.clock import HOUR, earlier
from guichet.console.admin.fields import reason_of
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.context import AppContext
from guichet.domain.availability import UP
from guichet.domain.catalogue import ModeOverride
from guichet.pages.formatting import country_name


async def show(visit: Visit, acting: StaffMember) -> Response:
    return await _page(visit, acting)


async def change(visit: Visit, acting: StaffMember) -> Response:
    """Opens or closes a mode for everybody, as `guichet mode` does."""
    form = await visit.form()
    ctx = visit.console.ctx
    acting.require("modes.change", ctx.clock.now())
    active = {"open": True, "close": False}.get(form.get("act", ""))
    reason = reason_of(form)
    if active is None or reason is None:
        return await _page(visit, acting, 422, visit.text("operations.reason_missing"))
    try:
        await change_mode(ctx, ModeOverride(None, form.get("operator", ""), active, None, None), acting.actor, reason)
    except UnknownOperator:
        return await _page(visit, acting, 422, visit.text("operations.incomplete"))
    return visit.redirect(visit.at_admin("/modes"))


async def _page(visit: Visit, acting: StaffMember, status: int = 200, fault: Any = None) -> Response:
    ctx = visit.console.ctx
    rows = await _weather(ctx)
    countries: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        mode = row["mode"]
        no_country = visit.text("operations.no_country")
        name = country_name(mode.country or no_country, mode.country_code, visit.language)
        countries.setdefault(name, []).append(row)
    may_change = acting.may("modes.change")
    return visit.show("admin/operations/modes.html", status, fault=fault, countries=countries, may_change=may_change)


async def _weather(ctx: AppContext) -> list[dict[str, Any]]:
    """One row for each mode: `percent` of the attempts of the last hour that did not fail technically, None without
    attempts. Reads a row for each operator and minute."""
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
                "state": state.state if state else UP,
                "since": state.since if state else None,
                "why": state.reason if state else "",
                "attempts": made,
                "percent": None if not made else 100 * (made - failed) // made,
            }
        )
    return rows


PAGES: Final = (StaffPage("/modes", "modes.view", show, change, menu="modes"),)
