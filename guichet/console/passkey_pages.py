"""Passkeys: the questions that the script passes to the browser, and the answers that come back by a form."""

from starlette.responses import Response

from guichet.accounts import passkeys
from guichet.accounts.errors import CodeRefused, SecondFactorNeeded, SignInRefused, TooManyAttempts, TooManyPasskeys
from guichet.accounts.own_factors import add_passkey, remove_passkey
from guichet.accounts.sign_in import give_passkey, sign_in_with_passkey
from guichet.console.factor_pages import code_form, renewed_response
from guichet.console.sign_in_page import next_page, sign_in_form
from guichet.console.visit import Visit
from guichet.domain.audit_log import Actor

_JSON = "application/json"


async def show(visit: Visit) -> Response:
    """A reload after an answer that was refused."""
    return visit.redirect(visit.at(""))


async def ask(visit: Visit) -> Response:
    """What the browser is asked, as JSON: to make a key (`make`), or to answer with one."""
    form = await visit.form()
    ctx = visit.console.ctx
    if form.get("act") != "make":
        return visit.respond((await passkeys.request_options(ctx, visit.user)).encode(), _JSON)
    if visit.user is None:  # The session ended while its page was open.
        return visit.redirect(visit.at("/sign-in", next=visit.at("/security")))
    session, user = visit.signed_in
    if visit.state != "open" or not user.totp_confirmed or not session.factor_is_fresh(ctx.clock.now()):
        raise SecondFactorNeeded
    try:
        return visit.respond((await passkeys.creation_options(ctx, user)).encode(), _JSON)
    except TooManyPasskeys:
        return visit.redirect(visit.at("/security", fault="too_many"))


async def answer(visit: Visit) -> Response:
    """Signs in, or gives the second factor of a session that is open already."""
    form = await visit.form()
    given, to = form.get("answer", ""), next_page(visit, form.get("next"))
    accounts = visit.console.accounts
    try:
        if visit.session is None or visit.user is None:
            return visit.sign_in_response(await sign_in_with_passkey(accounts, given, visit.browser()), to)
        secret, _ = await give_passkey(accounts, visit.session, visit.user, given)
        return renewed_response(visit, secret, to)
    except (SignInRefused, CodeRefused):
        status, fault = 422, visit.text("passkey.refused")
    except TooManyAttempts as refused:
        status, fault = 429, visit.text("sign_in.too_many", minutes=-(-refused.retry_after // 60))
    return await code_form(visit, status, fault, to) if visit.user else sign_in_form(visit, status, fault=fault, to=to)


async def change(visit: Visit, form: dict[str, str]) -> Response:
    """Adds a key that the browser made, or removes one. Raises SecondFactorNeeded."""
    session, user = visit.signed_in
    if not session.factor_is_fresh(visit.console.ctx.clock.now()):
        raise SecondFactorNeeded
    actor, accounts = Actor(user.email, "console"), visit.console.accounts
    number = form.get("passkey", "")
    try:
        if form.get("act") == "add_passkey":
            await add_passkey(accounts, user, form.get("answer", ""), form.get("name", ""), actor)
        elif number.isascii() and number.isdigit():
            await remove_passkey(accounts, user, int(number[:18]), actor)
    except (CodeRefused, TooManyPasskeys) as refused:
        key = "passkey.too_many" if isinstance(refused, TooManyPasskeys) else "passkey.refused"
        return visit.redirect(visit.at("/security", fault=key.partition(".")[2]))
    return visit.redirect(visit.at("/security"))
