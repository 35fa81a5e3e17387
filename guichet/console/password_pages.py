"""Choosing a password: of an invitation, by the link of a mail, or in place of the present one."""

from typing import Any

from starlette.background import BackgroundTask
from starlette.responses import Response

from guichet.accounts import mail_links
from guichet.accounts.errors import LinkUnusable, PasswordWeak, SignInRefused, TooBusy, TooManyAttempts
from guichet.accounts.invitations import accept, count_request, join_team, mail_new_password, reset_password
from guichet.accounts.own_password import change_password
from guichet.console.visit import Visit
from guichet.domain.accounts import LinkPurpose, normal_name
from guichet.domain.audit_log import Actor
from guichet.merchants import repository as merchants


async def show_request(visit: Visit) -> Response:
    return visit.show("password_request.html", asked=False, email="", fault=None)


async def request_link(visit: Visit) -> Response:
    """The answer is the same whether the address has an account or not."""
    form = await visit.form()
    email = form.get("email", "")
    accounts = visit.console.accounts
    try:
        await count_request(accounts, email, visit.browser())
    except TooManyAttempts as refused:
        fault = visit.text("sign_in.too_many", minutes=-(-refused.retry_after // 60))
        return visit.show("password_request.html", 429, asked=False, email=email, fault=fault)
    response = visit.show("password_request.html", asked=True, email="", fault=None)
    response.background = BackgroundTask(mail_new_password, accounts, email)
    return response


async def show_new(visit: Visit) -> Response:
    return await _form(visit, "password")


async def show_invitation(visit: Visit) -> Response:
    return await _form(visit, "invitation")


async def choose_new(visit: Visit) -> Response:
    return await _choose(visit, "password", await visit.form())


async def accept_invitation(visit: Visit) -> Response:
    """A person without a password chooses one; a person who has an account only says yes."""
    form = await visit.form()
    ctx, secret = visit.console.ctx, visit.request.path_params["secret"]
    try:
        user, _ = await mail_links.find(ctx.db, secret, "invitation", ctx.clock.now())
        if user.status == "invited":
            return await _choose(visit, "invitation", form)
        await join_team(visit.console.accounts, secret)
    except LinkUnusable:
        return _unusable(visit)
    return visit.redirect(visit.at(""))


async def _choose(visit: Visit, purpose: LinkPurpose, form: dict[str, str]) -> Response:
    accounts, secret, password = visit.console.accounts, visit.request.path_params["secret"], form.get("password", "")
    name = form.get("name", "")
    if purpose == "invitation" and normal_name(name) is None:
        return await _form(visit, purpose, 422, visit.text("password.name"), name)
    try:
        if purpose == "invitation":
            signed = await accept(accounts, secret, normal_name(name), password, visit.browser())
        else:
            signed = await reset_password(accounts, secret, password, visit.browser())
    except PasswordWeak as refused:
        return await _form(visit, purpose, 422, visit.text(f"password.weak.{refused.weakness}"), name)
    except TooBusy:
        return await _form(visit, purpose, 503, visit.text("sign_in.busy"), name)
    except LinkUnusable:
        return _unusable(visit)
    return visit.sign_in_response(signed, visit.at(""))


async def _form(
    visit: Visit, purpose: LinkPurpose, status: int = 200, fault: Any = None, name: str | None = None
) -> Response:
    ctx, secret = visit.console.ctx, visit.request.path_params["secret"]
    try:
        user, offer = await mail_links.find(ctx.db, secret, purpose, ctx.clock.now())
    except LinkUnusable:
        return _unusable(visit)
    if visit.chosen_language is None:
        visit.language = user.language
    if purpose == "invitation" and user.status == "active":
        merchant = await merchants.get(ctx.db, offer.merchant_id) if offer else None
        if offer is None or merchant is None:
            return _unusable(visit)
        return visit.show("team_offer.html", email=user.email, place=merchant.name, role=offer.role)
    values = {"email": user.email, "name": user.name if name is None else name, "invited": purpose == "invitation"}
    return visit.show("password_new.html", status, fault=fault, **values)


async def show_own(visit: Visit) -> Response:
    return _own_form(visit)


async def change_own(visit: Visit) -> Response:
    """The present password is asked for again."""
    form = await visit.form()
    session, user = visit.signed_in
    given = (form.get("present", ""), form.get("password", ""))
    try:
        await change_password(visit.console.accounts, user, session, *given, Actor(user.email, "console"))
    except SignInRefused:
        return _own_form(visit, 422, visit.text("password.present_wrong"))
    except PasswordWeak as refused:
        return _own_form(visit, 422, visit.text(f"password.weak.{refused.weakness}"))
    except TooManyAttempts as refused:
        return _own_form(visit, 429, visit.text("sign_in.too_many", minutes=-(-refused.retry_after // 60)))
    except TooBusy:
        return _own_form(visit, 503, visit.text("sign_in.busy"))
    return visit.redirect(visit.at("/security"))


def _own_form(visit: Visit, status: int = 200, fault: Any = None) -> Response:
    _, user = visit.signed_in
    return visit.show("password_own.html", status, email=user.email, fault=fault)


def _unusable(visit: Visit) -> Response:
    return visit.show("message.html", 410, name="link_unusable", action=visit.at("/password"))
