"""A merchant's API keys, of which the staff end or revoke one with a reason, and its test clock. Keys are made by the
merchant's team, or by `guichet key create`: no page of ours shows the staff a key."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import key_management
from guichet.console.admin.fields import reason_of, row_number
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.clock_form import ClockFormWrong, ClockMoved, change_clock, clock_view
from guichet.console.days import end_of_day
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.audit_log import ActRefused
from guichet.domain.errors import NotFound
from guichet.domain.ids import ApiKeyId
from guichet.domain.merchants import ENVS, ApiKey, Merchant
from guichet.merchants import api_keys

#: Revoked keys of one environment that the page shows.
_REVOKED: Final = 20
_DONE: Final = ("clock", "expiry_set", "revoked")


async def show(request: StaffRequest) -> Response:
    return await _page(request, await merchant_of(request))


async def change(request: StaffRequest) -> Response:
    form = await request.form()
    request.require("merchants.change")
    merchant = await merchant_of(request)
    match form.get("act"):
        case "expire" | "revoke":
            return await _change_key(request, merchant, form)
        case "clock_advance" | "clock_reset":
            return await _change_clock(request, merchant, form)
        case _:
            return await _page(request, merchant, 422, request.text("admin_merchants.incomplete"))


async def _change_key(request: StaffRequest, merchant: Merchant, form: dict[str, str]) -> Response:
    ctx, key, reason = request.ctx, await _named(request, merchant, form), reason_of(form)
    if reason is None:
        return await _page(request, merchant, 422, request.text("operations.reason_missing"))
    if form.get("act") == "revoke":
        await key_management.revoke(ctx.db, ctx.clock, key.id, request.actor, reason)
        return request.redirect(address(request, merchant, "/developers", done="revoked"))
    expires_at = end_of_day(form.get("expires", "").strip(), request.time_zone)
    if expires_at is None:
        return await _page(request, merchant, 422, request.text("developers.bad_date"))
    try:
        await key_management.expire(ctx.db, ctx.clock, key, expires_at, request.actor, reason)
    except ActRefused:
        fault = request.text("developers.refused", most=key_management.MOST_KEYS)
        return await _page(request, merchant, 422, fault)
    return request.redirect(address(request, merchant, "/developers", done="expiry_set"))


async def _change_clock(request: StaffRequest, merchant: Merchant, form: dict[str, str]) -> Response:
    try:
        await change_clock(request, merchant.id, form, request.actor)
    except ClockFormWrong:
        return await _page(request, merchant, 422, request.text("clock.wrong"), form)
    except ClockMoved:
        return await _page(request, merchant, 409, request.text("clock.moved"), form)
    return request.redirect(address(request, merchant, "/developers", done="clock"))


async def _named(request: StaffRequest, merchant: Merchant, form: dict[str, str]) -> ApiKey:
    """The key that the form names, of this merchant. Raises NotFound."""
    number = row_number(form.get("key"))
    key = None if number is None else await api_keys.by_id(request.db, ApiKeyId(number))
    if key is None or key.merchant_id != merchant.id:
        raise NotFound
    return key


async def _page(
    request: StaffRequest,
    merchant: Merchant,
    status: int = 200,
    fault: Any = None,
    form: dict[str, str] | None = None,
) -> Response:
    db, now = request.db, request.now()
    keys = [
        key
        for env in ENVS[::-1]
        for found in (
            await api_keys.not_revoked(db, merchant.id, env, key_management.MOST_KEYS),
            await api_keys.revoked(db, merchant.id, env, _REVOKED),
        )
        for key in found
    ]
    view = {
        "api_keys": [(key, key.state(now)) for key in keys],
        "clock": await clock_view(request, merchant.id),
        "may_change": request.may("merchants.change"),
        "done": next((each for each in _DONE if each == request.query.get("done")), None),
        "typed": form or {},
    }
    return show_file(request, merchant, "developers", status, fault=fault, **view)


PAGES: Final = (StaffPage("/merchants/{merchant:row}/developers", "merchants.view", show, change),)
