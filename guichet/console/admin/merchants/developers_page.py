"""A merchant's API keys, of which the staff end or revoke one with a reason, and its test clock. Keys are made by the
merchant's team, or by `guichet key create`: no page of ours shows the staff a key."""

from typing import Final

from starlette.responses import Response

from guichet.accounts import key_management
from guichet.console.admin.merchants.of_merchant import address, merchant_of, show_file
from guichet.console.clock_form import ClockForm, change_clock, clock_view
from guichet.console.developers import KeyRow, read_end
from guichet.console.forms import Reason
from guichet.console.page_request import FormFault, StaffRequest
from guichet.domain.audit_log import ActRefused
from guichet.domain.errors import NotFound
from guichet.domain.ids import ApiKeyId
from guichet.domain.merchants import ENVS, Merchant
from guichet.merchants import api_keys
from guichet.pages.fields import RowId

#: Revoked keys of one environment that the page shows.
_REVOKED: Final = 20


class DevelopersForm(ClockForm):
    """A key ends on a day or is revoked for ever, or the test clock moves."""

    key: RowId = 0
    expires: str = ""
    reason: Reason = None


async def show(request: StaffRequest) -> Response:
    merchant, now = await merchant_of(request), request.now()
    keys = [
        key
        for env in reversed(ENVS)
        for listed in (
            await api_keys.not_revoked(request.db, merchant.id, env, key_management.MOST_KEYS),
            await api_keys.revoked(request.db, merchant.id, env, _REVOKED),
        )
        for key in listed
    ]
    api_key_rows, clock = [KeyRow.of(key, now) for key in keys], await clock_view(request, merchant.id)
    return show_file(request, merchant, "developers", api_keys=api_key_rows, clock=clock)


async def change(request: StaffRequest) -> Response:
    form = await request.form(DevelopersForm)
    request.require("merchants.change")
    merchant = await merchant_of(request)
    match form.act:
        case "expire" | "revoke":
            act = await _change_key(request, merchant, form)
        case "clock_advance" | "clock_reset":
            await change_clock(request, merchant.id, form)
            act = "clock"
        case _:
            raise FormFault(request.text("admin_merchants.incomplete"))
    return request.done(address(request, merchant, "/developers"), act)


async def _change_key(request: StaffRequest, merchant: Merchant, form: DevelopersForm) -> str:
    """What was done. Raises NotFound for a key of another merchant."""
    ctx, key = request.ctx, await api_keys.by_id(request.db, ApiKeyId(form.key))
    if key is None or key.merchant_id != merchant.id:
        raise NotFound
    if form.reason is None:
        raise FormFault(request.text("operations.reason_missing"))
    if form.act == "revoke":
        await key_management.revoke(ctx.db, ctx.clock, key.id, request.actor, form.reason)
        return "revoked"
    expires_at = read_end(request, form.expires)
    try:
        await key_management.expire(ctx.db, ctx.clock, key, expires_at, request.actor, form.reason)
    except ActRefused:
        raise FormFault(request.text("developers.refused", most=key_management.MOST_KEYS)) from None
    return "expiry_set"
