"""A person's own security: the second factor, recovery codes, and the sessions of all browsers."""

from typing import Final

from starlette.responses import Response

from guichet.accounts import factors, passkeys, sessions
from guichet.audit_log import entries as audit_log
from guichet.console import passkey_pages
from guichet.console.browser_names import browser_name
from guichet.console.page_request import ConsoleRequest
from guichet.domain.audit_log import Act, Actor

#: What the address of this page may say about a key that was refused.
_FAULTS: Final = {"refused": "passkey.refused", "too_many": "passkey.too_many"}


async def show(request: ConsoleRequest) -> Response:
    session, user = request.signed_in
    ctx = request.ctx
    open_sessions = [
        {
            "id": each.id,
            "own": each.id == session.id,
            "agent": browser_name(each.agent),
            "address": each.address,
            "since": request.date_time(each.created_at),
            "seen": request.date_time(each.last_seen_at),
        }
        for each in await sessions.of_user(ctx.db, user.id, ctx.clock.now())
    ]
    left = await factors.recovery_codes_left(ctx.db, user.id)
    keys = [
        {
            "id": each.id,
            "name": each.name,
            "made": request.date_time(each.created_at),
            "used": request.date_time(each.last_used_at) if each.last_used_at else None,
        }
        for each in await passkeys.of_user(ctx.db, user.id)
    ]
    fault = _FAULTS.get(request.query.get("fault", ""))
    return request.show(
        "security.html",
        sessions=open_sessions,
        codes_left=left,
        has_codes=user.totp_confirmed,
        passkeys=keys,
        fault=request.text(fault) if fault else None,
        may_add=session.factor_is_fresh(ctx.clock.now()),
    )


async def change(request: ConsoleRequest) -> Response:
    """Ends a session or all others, or makes new recovery codes."""
    form = await request.fields()
    session, user = request.signed_in
    ctx = request.ctx
    match form.get("act"):
        case "end" if form.get("session", "").isascii() and form.get("session", "").isdigit():
            await sessions.end(ctx.db, user.id, int(form["session"][:18]))
        case "end_others":
            await sessions.end_all(ctx.db, user.id, kept=session.id)
        case "add_passkey" | "remove_passkey" if user.totp_confirmed:
            return await passkey_pages.change(request, form)
        case "recovery_codes" if user.totp_confirmed:
            now = ctx.clock.now()
            if not session.factor_is_fresh(now):
                return request.redirect(request.at("/factor", next=request.http.url.path))
            async with ctx.db.transaction() as tx:
                codes = await factors.new_recovery_codes(tx, user.id, now)
                act = Act(Actor(user.email, "console"), "user.recovery_codes_made", "user", str(user.id))
                await audit_log.record(tx, act, now)
            return request.show("recovery_codes.html", codes=codes, next=request.at("/security"))
    return request.redirect(request.at("/security"))
