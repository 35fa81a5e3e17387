"""The API keys of one environment: create, set an end, revoke. A key is shown once, when it is created."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import key_management
from guichet.accounts.rights import Member
from guichet.console.days import end_of_day
from guichet.console.forms import is_confirmed
from guichet.console.visit import Visit
from guichet.domain.audit_log import ActRefused
from guichet.domain.errors import InvalidRequest, NotFound
from guichet.domain.ids import ApiKeyId
from guichet.domain.merchants import ApiKey
from guichet.merchants import api_keys

#: Revoked keys that the page shows.
_REVOKED: Final = 20


async def show(visit: Visit, acting: Member) -> Response:
    return await _page(visit, acting)


async def change(visit: Visit, acting: Member) -> Response:
    """Creates a key, sets when one stops working, or revokes one for ever."""
    form = await visit.form()
    acting.require("keys.change", visit.console.ctx.clock.now())
    try:
        match form.get("act"):
            case "create":
                return await _create(visit, acting, form)
            case "expire":
                return await _expire(visit, acting, form)
            case "revoke":
                return await _revoke(visit, acting, form)
            case _:
                raise InvalidRequest
    except ActRefused:
        return await _page(visit, acting, 422, visit.text("developers.refused", most=key_management.MOST_KEYS))


async def _create(visit: Visit, acting: Member, form: dict[str, str]) -> Response:
    typed = form.get("expires", "").strip()
    expires_at = end_of_day(typed, visit.time_zone)
    if typed and expires_at is None:
        return await _page(visit, acting, 422, visit.text("developers.bad_date"))
    whose = (acting.merchant.id, acting.env)
    after = form.get("after", "")
    newest = int(after) if after.isascii() and after.isdigit() and len(after) < 20 else -1
    try:
        _, key = await key_management.create(
            visit.console.ctx.db, visit.console.ctx.clock, *whose, expires_at, acting.actor, newest
        )
    except key_management.NewerKey:
        return await _page(visit, acting, 409, visit.text("developers.sent_twice"))
    # Not redirected: the key is nowhere else. Loading the page again sends the same form, which makes no other key.
    return await _page(visit, acting, created=key)


async def _expire(visit: Visit, acting: Member, form: dict[str, str]) -> Response:
    key = await _named(visit, acting, form)
    expires_at = end_of_day(form.get("expires", "").strip(), visit.time_zone)
    if expires_at is None:
        return await _page(visit, acting, 422, visit.text("developers.bad_date"))
    await key_management.expire(visit.console.ctx.db, visit.console.ctx.clock, key, expires_at, acting.actor)
    return visit.redirect(visit.here("/developers", done="expiry_set"))


async def _revoke(visit: Visit, acting: Member, form: dict[str, str]) -> Response:
    """The first form is answered with what will happen: nothing brings a key back."""
    ctx, key = visit.console.ctx, await _named(visit, acting, form)
    if key.revoked_at is None and not is_confirmed(form):
        return visit.show("developers/key_revocation.html", key=key, state=key.state(ctx.clock.now()))
    await key_management.revoke(ctx.db, ctx.clock, key.id, acting.actor)
    return visit.redirect(visit.here("/developers", done="revoked"))


async def _named(visit: Visit, acting: Member, form: dict[str, str]) -> ApiKey:
    """The key that the form names, of this merchant and environment. Raises NotFound."""
    number = form.get("key", "")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise NotFound
    key = await api_keys.find(visit.console.ctx.db, acting.merchant.id, acting.env, ApiKeyId(int(number)))
    if key is None:
        raise NotFound
    return key


async def _page(
    visit: Visit, acting: Member, status: int = 200, fault: Any = None, *, created: str | None = None
) -> Response:
    ctx = visit.console.ctx
    now, whose = ctx.clock.now(), (acting.merchant.id, acting.env)
    keys = await api_keys.not_revoked(ctx.db, *whose, key_management.MOST_KEYS)
    revoked = await api_keys.revoked(ctx.db, *whose, _REVOKED)
    done = visit.request.query_params.get("done")
    return visit.show(
        "developers/keys.html",
        status,
        fault=fault,
        created=created,
        newest=await key_management.newest(ctx.db, *whose),
        done=done if done in ("revoked", "expiry_set") else None,
        keys=[{"key": key, "state": key.state(now)} for key in (*keys, *revoked)],
        may_change=acting.may("keys.change"),
        may_see_requests=acting.may("requests.view"),
        has_clock=acting.env == "test",
        api=f"{visit.console.public_url}/v1",
        docs=f"{visit.base_path}/docs",
        guide=f"{visit.base_path}/docs/guide",
    )
