"""The test clock: time passes for what waits in the merchant's test environment."""

from typing import Any

from starlette.responses import Response

from guichet.console.clock_form import ClockFormWrong, ClockMoved, change_clock, clock_view
from guichet.console.page_request import MerchantRequest


async def show(request: MerchantRequest) -> Response:
    return await _page(request)


async def change(request: MerchantRequest) -> Response:
    """Only in the test environment: no clock of live money can be moved."""
    form = await request.form()
    request.require("keys.change")
    if request.env != "test":
        return await _page(request, 422, request.text("clock.only_test"))
    try:
        await change_clock(request, request.merchant.id, form, request.actor)
    except ClockFormWrong:
        return await _page(request, 422, request.text("clock.wrong"), form)
    except ClockMoved:
        return await _page(request, 409, request.text("clock.moved"), form)
    return request.redirect(request.here("/developers/clock", done="yes"))


async def _page(
    request: MerchantRequest, status: int = 200, fault: Any = None, form: dict[str, str] | None = None
) -> Response:
    return request.show(
        "developers/clock.html",
        status,
        fault=fault,
        clock=await clock_view(request, request.merchant.id) if request.env == "test" else None,
        may_change=request.may("keys.change"),
        typed=form or {},
        done=request.query.get("done") == "yes",
        in_test=request.here("/developers/clock", "test"),
    )
