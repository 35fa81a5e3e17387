"""Signing in and out."""

from starlette.background import BackgroundTask
from starlette.responses import Response

from guichet.accounts import sessions
from guichet.accounts.errors import LinkUnusable, SignInRefused, TooManyAttempts
from guichet.accounts.sign_in import sign_in as check_password
from guichet.accounts.sign_in import tell_of_guesses
from guichet.console.console import ADMIN_ROOT, ROOT
from guichet.console.cookies import SESSION
from guichet.console.page_request import ConsoleRequest, FormFault
from guichet.domain.errors import NotFound


def next_page(request: ConsoleRequest) -> str:
    """Where somebody goes on: a page of ours that they asked for before, else the first one."""
    address = request.form_values.get("next") or request.query.get("next")
    starts = [request.base_path + root for root in (ROOT, ADMIN_ROOT)]
    is_ours = address and any(address == start or address.startswith(f"{start}/") for start in starts)
    if address and is_ours and address.isprintable() and "\\" not in address:
        return address
    return request.console_url("")


async def show(request: ConsoleRequest) -> Response:
    """`?again=`: somebody who is signed in signs in once more, to prove who they are."""
    if request.user is not None and "again" not in request.query and request.fault is None:
        return request.redirect(request.console_url(""))
    return request.page("sign_in.html", next=next_page(request))


async def sign_in(request: ConsoleRequest) -> Response:
    form = await request.fields()
    email = form.get("email", "")
    accounts = request.console.accounts
    try:
        signed = await check_password(accounts, email, form.get("password", ""), request.browser())
    except SignInRefused:
        raise FormFault(request.text("sign_in.refused")) from None
    except TooManyAttempts as refused:
        request.fault = request.fault_of(refused)
        response = await show(request)
        response.headers["Retry-After"] = str(refused.retry_after)
        if refused.kind == "account":
            response.background = BackgroundTask(tell_of_guesses, accounts, email)
        return response
    if request.session is not None:
        await sessions.end(accounts.ctx.db, request.session.user_id, request.session.id)
    return request.sign_in_response(signed, next_page(request))


async def sign_in_by_link(request: ConsoleRequest) -> Response:
    """The link that `guichet demo` printed: from this machine only."""
    console = request.console
    if console.without_password is None or not request.is_from_this_machine:
        raise NotFound
    secret = request.path["secret"]
    try:
        signed = await console.without_password.sign_in(console.accounts, secret, request.browser())
    except LinkUnusable:
        action = request.console_url("/sign-in")
        return request.page("message.html", status=410, name="sign_in_link_unusable", action=action)
    return request.sign_in_response(
        signed, request.admin_url("") if signed.user.staff_role else request.console_url("")
    )


async def leave(request: ConsoleRequest) -> Response:
    """A link to this address ends no session: another site could follow it."""
    return request.redirect(request.console_url(""))


async def sign_out(request: ConsoleRequest) -> Response:
    await request.fields()
    session, user = request.signed_in
    await sessions.end(request.db, user.id, session.id)
    response = request.redirect(request.console_url("/sign-in"))
    request.console.cookies.forget(response, SESSION)
    return response
