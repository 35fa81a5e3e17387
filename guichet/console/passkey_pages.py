"""Passkeys: the challenges that the script passes to the browser, and the answers that come back by a form."""

from starlette.responses import Response

from guichet.accounts import passkeys
from guichet.accounts.errors import CodeRefused, SecondFactorNeeded, SignInRefused, TooManyAttempts, TooManyPasskeys
from guichet.accounts.sign_in import give_passkey, sign_in_with_passkey
from guichet.console import sign_in_page
from guichet.console.cookies import PASSKEY
from guichet.console.factor_pages import code_form
from guichet.console.page_request import ConsoleRequest, FormFault
from guichet.console.sign_in_page import next_page
from guichet.domain.accounts import is_secret, new_secret

_JSON = "application/json"


async def show(request: ConsoleRequest) -> Response:
    """A reload after an answer that was refused."""
    return request.redirect(request.console_url(""))


async def ask(request: ConsoleRequest) -> Response:
    """What the browser is asked, as JSON: to make a key (`make`), or to answer with one."""
    form = await request.fields()
    ctx = request.ctx
    # The same for all challenges of this browser, so that another tab does not invalidate one.
    before = request.browser().passkey or ""
    browser = before if is_secret(before) else new_secret()
    if form.get("act") != "make":
        return _challenge(request, await passkeys.request_options(ctx, request.user, browser), browser)
    if request.user is None:  # The session ended while its page was open.
        return request.redirect(request.console_url("/sign-in", next=request.console_url("/security")))
    session, user = request.signed_in
    if request.state != "open" or not user.totp_confirmed or not session.factor_is_fresh(ctx.clock.now()):
        raise SecondFactorNeeded
    try:
        return _challenge(request, await passkeys.creation_options(ctx, user, browser), browser)
    except TooManyPasskeys:
        return request.redirect(request.console_url("/security", fault="too_many"))


def _challenge(request: ConsoleRequest, options: str, browser: str) -> Response:
    response = request.respond(options.encode(), _JSON)
    request.console.cookies.set(response, PASSKEY, browser)
    return response


async def answer(request: ConsoleRequest) -> Response:
    """Signs in, or gives the second factor of a session that is open already."""
    credential = (await request.fields()).get("answer", "")
    accounts = request.console.accounts
    try:
        if request.session is None or request.user is None:
            signed = await sign_in_with_passkey(accounts, credential, request.browser())
        else:
            signed = await give_passkey(accounts, request.session, request.user, credential, request.browser())
        return request.sign_in_response(signed, next_page(request))
    except (SignInRefused, CodeRefused):
        request.fault = FormFault(request.text("passkey.refused"))
    except TooManyAttempts as refused:
        request.fault = request.fault_of(refused)
    return await (code_form(request) if request.user else sign_in_page.show(request))
