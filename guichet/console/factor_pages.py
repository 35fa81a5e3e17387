"""The second factor: giving a code, and setting up a telephone."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import factors, passkeys
from guichet.accounts.errors import CodeRefused, SecondFactorNeeded
from guichet.accounts.own_account import add_telephone, change_telephone
from guichet.accounts.sign_in import give_factor
from guichet.clock import MINUTE, earlier
from guichet.console.page_request import ConsoleRequest
from guichet.console.sign_in_page import next_page
from guichet.pages.qr_codes import qr_code

#: Characters of a seed that are shown together, for those who type it.
_GROUP: Final = 4
#: How long after the sign-in a first telephone can be set up; it takes a while to install an application.
_SET_UP_WITHIN: Final = 15 * MINUTE


async def ask(request: ConsoleRequest) -> Response:
    _, user = request.signed_in
    if not user.totp_confirmed and request.fault is None:
        return request.redirect(request.console_url("/factor/setup", next=request.query.get("next")))
    return await code_form(request)


async def give(request: ConsoleRequest) -> Response:
    form = await request.fields()
    session, user = request.signed_in
    signed = await give_factor(request.console.accounts, session, user, form.get("code", ""), request.browser())
    return request.sign_in_response(signed, next_page(request))


async def show_setup(request: ConsoleRequest) -> Response:
    """The seed to photograph: a new one in each session, the same when the page is loaded again.

    Who has one that counts sees none: a link to this page must not take anybody's second factor away. `?next=`: the
    page that asked for the factor.
    """
    if elsewhere := _elsewhere(request, request.query.get("next")):
        return elsewhere
    session, user = request.signed_in
    ctx = request.ctx
    if request.fault:
        return _setup_form(request, None)
    if user.totp_secret is not None and user.updated_at >= session.created_at:
        return _setup_form(request, ctx.vault.decrypt(user.totp_secret))
    try:
        return _setup_form(request, await factors.begin_totp(ctx, user))
    except CodeRefused:  # Another session of the person was faster.
        return request.redirect(request.console_url("/security"))


async def set_up(request: ConsoleRequest) -> Response:
    """The first code: it proves that the telephone has the seed. The recovery codes follow, shown once."""
    form = await request.fields()
    if elsewhere := _elsewhere(request, form.get("next")):
        return elsewhere
    session, user = request.signed_in
    signed, codes = await add_telephone(
        request.console.accounts, user, session, form.get("code", ""), request.actor, request.browser()
    )
    # The forms of this page are already those of the renewed session.
    request.state, request.secret = "open", signed.secret
    response = request.page("recovery_codes.html", codes=codes, next=next_page(request))
    request.set_cookies(response, signed)
    return response


def _elsewhere(request: ConsoleRequest, to: str | None) -> Response | None:
    """Where somebody is sent who may not set up a first telephone now; nothing of the page is done or shown before.

    Whoever holds the session has two factors once a telephone is set up: the password must have been given in the last
    fifteen minutes, when the page is opened and when its form is sent."""
    session, user = request.signed_in
    if user.totp_confirmed:
        return request.redirect(request.console_url("/security"))
    if session.created_at < earlier(request.now(), _SET_UP_WITHIN):
        return request.redirect(
            request.console_url("/sign-in", again="yes", next=request.console_url("/factor/setup", next=to))
        )
    return None


async def show_new_telephone(request: ConsoleRequest) -> Response:
    """The seed for another telephone. The one before counts until the new one has proved itself."""
    session, user = request.signed_in
    ctx = request.ctx
    if request.fault:
        return _setup_form(request, None, replaces=True)
    if not user.totp_confirmed:
        return request.redirect(request.console_url("/factor/setup"))
    if not session.factor_is_fresh(ctx.clock.now()):
        raise SecondFactorNeeded
    if user.next_totp_secret is not None and user.updated_at >= session.created_at:
        return _setup_form(request, ctx.vault.decrypt(user.next_totp_secret), replaces=True)
    return _setup_form(request, await factors.prepare_new_telephone(ctx, user), replaces=True)


async def take_new_telephone(request: ConsoleRequest) -> Response:
    form = await request.fields()
    session, user = request.signed_in
    if user.next_totp_secret is None:
        return request.redirect(request.console_url("/security"))
    if not session.factor_is_fresh(request.now()):
        raise SecondFactorNeeded
    accounts, code = request.console.accounts, form.get("code", "")
    await change_telephone(accounts, user, session, code, request.actor, request.browser())
    return request.done(request.console_url("/security"), "telephone_changed")


async def code_form(request: ConsoleRequest) -> Response:
    _, user = request.signed_in
    console, ctx = request.console, request.ctx
    demo_code = None
    if console.without_password is not None and request.is_from_this_machine:
        demo_code = console.without_password.code(user, ctx.vault, ctx.clock.now())
    return request.page(
        "factor.html",
        next=next_page(request),
        has_passkeys=bool(await passkeys.of_user(request.db, user.id)),
        demo_code=demo_code,
        recovery="recovery" in request.query or "recovery" in request.form_values,
    )


def _setup_form(request: ConsoleRequest, seed: str | None, *, replaces: bool = False) -> Response:
    """`seed`: None in the answer to a wrong code, which only leads back to it. `replaces`: for a telephone that takes
    the place of another one."""
    _, user = request.signed_in
    values: dict[str, Any] = {"seed": None}
    if seed is not None:
        address = factors.totp_address(seed, user)
        groups = " ".join(seed[at : at + _GROUP] for at in range(0, len(seed), _GROUP))
        values = {"qr": qr_code(address, request.text("setup.qr").unescape()), "seed": groups, "address": address}
    return request.page("factor_setup.html", **values, next=next_page(request), replaces=replaces)
