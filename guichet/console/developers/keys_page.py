"""The API keys of one environment: create, set an end, revoke. A key is shown once, when it is created."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import key_management
from guichet.console.days import end_of_day
from guichet.console.forms import is_confirmed
from guichet.console.page_request import MerchantRequest
from guichet.domain.audit_log import ActRefused
from guichet.domain.errors import InvalidRequest, NotFound
from guichet.domain.ids import ApiKeyId
from guichet.domain.merchants import ApiKey
from guichet.merchants import api_keys

#: Revoked keys that the page shows.
_REVOKED: Final = 20


async def show(request: MerchantRequest) -> Response:
    return await _page(request)


async def change(request: MerchantRequest) -> Response:
    """Creates a key, sets when one stops working, or revokes one for ever."""
    form = await request.form()
    request.require("keys.change")
    try:
        match form.get("act"):
            case "create":
                return await _create(request, form)
            case "expire":
                return await _expire(request, form)
            case "revoke":
                return await _revoke(request, form)
            case _:
                raise InvalidRequest
    except ActRefused:
        return await _page(request, 422, request.text("developers.refused", most=key_management.MOST_KEYS))


async def _create(request: MerchantRequest, form: dict[str, str]) -> Response:
    typed = form.get("expires", "").strip()
    expires_at = end_of_day(typed, request.time_zone)
    if typed and expires_at is None:
        return await _page(request, 422, request.text("developers.bad_date"))
    whose = (request.merchant.id, request.env)
    after = form.get("after", "")
    newest = int(after) if after.isascii() and after.isdigit() and len(after) < 20 else -1
    try:
        _, key = await key_management.create(request.db, request.ctx.clock, *whose, expires_at, request.actor, newest)
    except key_management.NewerKey:
        return await _page(request, 409, request.text("developers.sent_twice"))
    # Not redirected: the key is nowhere else. Loading the page again sends the same form, which makes no other key.
    return await _page(request, created=key)


async def _expire(request: MerchantRequest, form: dict[str, str]) -> Response:
    key = await _named(request, form)
    expires_at = end_of_day(form.get("expires", "").strip(), request.time_zone)
    if expires_at is None:
        return await _page(request, 422, request.text("developers.bad_date"))
    await key_management.expire(request.db, request.ctx.clock, key, expires_at, request.actor)
    return request.redirect(request.here("/developers", done="expiry_set"))


async def _revoke(request: MerchantRequest, form: dict[str, str]) -> Response:
    """The first form is answered with what will happen: nothing brings a key back."""
    ctx, key = request.ctx, await _named(request, form)
    if key.revoked_at is None and not is_confirmed(form):
        return request.show("developers/key_revocation.html", key=key, state=key.state(ctx.clock.now()))
    await key_management.revoke(ctx.db, ctx.clock, key.id, request.actor)
    return request.redirect(request.here("/developers", done="revoked"))


async def _named(request: MerchantRequest, form: dict[str, str]) -> ApiKey:
    """The key that the form names, of this merchant and environment. Raises NotFound."""
    number = form.get("key", "")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise NotFound
    key = await api_keys.find(request.db, request.merchant.id, request.env, ApiKeyId(int(number)))
    if key is None:
        raise NotFound
    return key


async def _page(
    request: MerchantRequest, status: int = 200, fault: Any = None, *, created: str | None = None
) -> Response:
    ctx = request.ctx
    now, whose = ctx.clock.now(), (request.merchant.id, request.env)
    keys = await api_keys.not_revoked(ctx.db, *whose, key_management.MOST_KEYS)
    revoked = await api_keys.revoked(ctx.db, *whose, _REVOKED)
    done = request.query.get("done")
    return request.show(
        "developers/keys.html",
        status,
        fault=fault,
        created=created,
        newest=await key_management.newest(ctx.db, *whose),
        done=done if done in ("revoked", "expiry_set") else None,
        keys=[{"key": key, "state": key.state(now)} for key in (*keys, *revoked)],
        may_change=request.may("keys.change"),
        may_see_requests=request.may("requests.view"),
        has_clock=request.env == "test",
        api=f"{request.console.public_url}/v1",
        docs=f"{request.base_path}/docs",
        guide=f"{request.base_path}/docs/guide",
    )
