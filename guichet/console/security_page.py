"""A person's own security: the second factor, passkeys, recovery codes, and the sessions of all browsers."""

from typing import Final

from starlette.responses import Response

from guichet.accounts import factors, passkeys, sessions
from guichet.accounts.errors import CodeRefused, SecondFactorNeeded, TooManyPasskeys
from guichet.accounts.own_account import add_passkey, make_recovery_codes, remove_passkey
from guichet.console.page_request import ConsoleRequest, FormFault
from guichet.pages.fields import Fields, RowId

#: What is looked for, in this order: browsers name their ancestors too.
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("Chrome", "Chrome"),
    ("CriOS", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "Mac"),
    ("Linux", "Linux"),
)
_LONGEST: Final = 60


#: What is said about a key that was refused.
_FAULTS: Final = {"refused": "passkey.refused", "too_many": "passkey.too_many"}


class SecurityForm(Fields):
    """Ends a session or all others, makes new recovery codes, adds a passkey (`answer`, `name`) or removes one."""

    act: str = ""
    session: RowId = 0
    passkey: RowId = 0
    answer: str = ""
    name: str = ""


async def show(request: ConsoleRequest) -> Response:
    session, user = request.signed_in
    now = request.now()
    if fault := _FAULTS.get(request.query.get("fault", "")):
        request.fault = FormFault(request.text(fault), 200)
    return request.page(
        "security.html",
        sessions=[(other, browser_name(other.agent)) for other in await sessions.of_user(request.db, user.id, now)],
        codes_left=await factors.recovery_codes_left(request.db, user.id),
        passkeys=await passkeys.of_user(request.db, user.id),
        may_add=session.factor_is_fresh(now),
    )


async def change(request: ConsoleRequest) -> Response:
    form = await request.form(SecurityForm)
    session, user = request.signed_in
    match form.act:
        case "end":
            await sessions.end(request.db, user.id, form.session)
            return request.done(request.console_url("/security"), "session_ended")
        case "end_others":
            await sessions.end_all(request.db, user.id, kept=session.id)
            return request.done(request.console_url("/security"), "sessions_ended")
        case "add_passkey" | "remove_passkey" if user.totp_confirmed:
            return await _change_passkeys(request, form)
        case "recovery_codes" if user.totp_confirmed:
            if not session.factor_is_fresh(request.now()):
                return request.redirect(request.console_url("/factor", next=request.http.url.path))
            codes = await make_recovery_codes(request.console.accounts, user, request.actor)
            return request.page("recovery_codes.html", codes=codes, next=request.console_url("/security"))
    return request.redirect(request.console_url("/security"))


async def _change_passkeys(request: ConsoleRequest, form: SecurityForm) -> Response:
    """Adds a key that the browser made, or removes one. Raises SecondFactorNeeded."""
    session, user = request.signed_in
    if not session.factor_is_fresh(request.now()):
        raise SecondFactorNeeded
    accounts = request.console.accounts
    try:
        if form.act == "add_passkey":
            await add_passkey(accounts, user, form.answer, form.name, request.actor, request.browser())
        else:
            await remove_passkey(accounts, user, form.passkey, request.actor)
    except CodeRefused:
        return request.redirect(request.console_url("/security", fault="refused"))
    except TooManyPasskeys:
        return request.redirect(request.console_url("/security", fault="too_many"))
    return request.done(
        request.console_url("/security"), "passkey_added" if form.act == "add_passkey" else "passkey_removed"
    )


def browser_name(agent: str) -> str:
    """The known names in a `User-Agent`, else its beginning."""
    names = [next((name for mark, name in known if mark in agent), None) for known in (_BROWSERS, _SYSTEMS)]
    return " · ".join(name for name in names if name) or agent[:_LONGEST] or "–"
