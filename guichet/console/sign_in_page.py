"""Signing in and out."""

from typing import Any

from starlette.responses import Response

from guichet.accounts import sessions
from guichet.accounts.errors import LinkUnusable, SignInRefused, TooBusy, TooManyAttempts
from guichet.accounts.sign_in import sign_in as check_password
from guichet.console.visit import ADMIN_ROOT, ROOT, Visit
from guichet.domain.errors import NotFound


def next_page(visit: Visit, wanted: str | None) -> str:
    """Where somebody goes on: a page of ours that they asked for before, else the first one."""
    starts = [visit.base_path + root for root in (ROOT, ADMIN_ROOT)]
    is_ours = wanted and any(wanted == start or wanted.startswith(f"{start}/") for start in starts)
    if wanted and is_ours and wanted.isprintable() and "\\" not in wanted:
        return wanted
    return visit.at("")


async def show(visit: Visit) -> Response:
    """`?again=`: somebody who is signed in proves it anew."""
    if visit.user is not None and "again" not in visit.request.query_params:
        return visit.redirect(visit.at(""))
    return sign_in_form(visit)


async def sign_in(visit: Visit) -> Response:
    form = await visit.form()
    email = form.get("email", "")
    accounts = visit.console.accounts
    try:
        signed = await check_password(accounts, email, form.get("password", ""), visit.browser())
    except SignInRefused:
        return sign_in_form(visit, 422, email=email, fault=visit.text("sign_in.refused"))
    except TooManyAttempts as refused:
        minutes = -(-refused.retry_after // 60)
        response = sign_in_form(visit, 429, email=email, fault=visit.text("sign_in.too_many", minutes=minutes))
        response.headers["Retry-After"] = str(refused.retry_after)
        return response
    except TooBusy:
        return sign_in_form(visit, 503, email=email, fault=visit.text("sign_in.busy"))
    if visit.session is not None:
        await sessions.end(accounts.ctx.db, visit.session.user_id, visit.session.id)
    return visit.sign_in_response(signed, next_page(visit, form.get("next")))


async def sign_in_by_link(visit: Visit) -> Response:
    """The link that `guichet demo` printed: from this machine only."""
    console = visit.console
    if console.without_password is None or not visit.is_from_this_machine:
        raise NotFound
    secret = visit.request.path_params["secret"]
    try:
        signed = await console.without_password.sign_in(console.accounts, secret, visit.browser())
    except LinkUnusable:
        return visit.show("message.html", 410, name="sign_in_link_unusable", action=visit.at("/sign-in"))
    return visit.sign_in_response(signed, visit.at_admin("") if signed.user.staff_role else visit.at(""))


async def leave(visit: Visit) -> Response:
    """A link to this address ends no session: another site could follow it."""
    return visit.redirect(visit.at(""))


async def sign_out(visit: Visit) -> Response:
    await visit.form()
    session, user = visit.signed_in
    await sessions.end(visit.console.ctx.db, user.id, session.id)
    response = visit.redirect(visit.at("/sign-in"))
    visit.console.cookies.forget_session(response)
    return response


def sign_in_form(
    visit: Visit, status: int = 200, email: str = "", fault: Any = None, to: str | None = None
) -> Response:
    """`to`: where to go on afterwards; by default what the address of this page says."""
    to = to or next_page(visit, visit.request.query_params.get("next"))
    return visit.show("sign_in.html", status, email=email, fault=fault, next=to)
