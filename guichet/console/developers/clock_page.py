"""The test clock: time passes for what waits in the merchant's test environment."""

from typing import Any

from starlette.responses import Response

from guichet.accounts.rights import Member
from guichet.console.clock_form import ClockFormWrong, ClockMoved, change_clock, clock_view
from guichet.console.visit import Visit


async def show(visit: Visit, acting: Member) -> Response:
    return await _page(visit, acting)


async def change(visit: Visit, acting: Member) -> Response:
    """Only in the test environment: no clock of live money can be moved."""
    form = await visit.form()
    acting.require("keys.change", visit.console.ctx.clock.now())
    if acting.env != "test":
        return await _page(visit, acting, 422, visit.text("clock.only_test"))
    try:
        await change_clock(visit, acting.merchant.id, form, acting.actor)
    except ClockFormWrong:
        return await _page(visit, acting, 422, visit.text("clock.wrong"), form)
    except ClockMoved:
        return await _page(visit, acting, 409, visit.text("clock.moved"), form)
    return visit.redirect(visit.here("/developers/clock", done="yes"))


async def _page(
    visit: Visit, acting: Member, status: int = 200, fault: Any = None, form: dict[str, str] | None = None
) -> Response:
    return visit.show(
        "developers/clock.html",
        status,
        fault=fault,
        clock=await clock_view(visit, acting.merchant.id) if acting.env == "test" else None,
        may_change=acting.may("keys.change"),
        typed=form or {},
        done=visit.request.query_params.get("done") == "yes",
        in_test=visit.here("/developers/clock", "test"),
    )
