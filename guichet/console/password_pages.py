"""Choosing a password: of an invitation, by the link of a mail, or in place of the present one."""

from starlette.background import BackgroundTask
from starlette.responses import Response

from guichet.accounts import mail_links
from guichet.accounts.errors import LinkUnusable, SignInRefused
from guichet.accounts.link_acceptance import accept, count_request, join_team, mail_new_password, reset_password
from guichet.accounts.own_account import change_password
from guichet.console.cookies import DEVICE
from guichet.console.page_request import ConsoleRequest, FormFault
from guichet.domain.accounts import LinkPurpose, normal_name
from guichet.merchants import repository as merchants


async def show_request(request: ConsoleRequest) -> Response:
    return request.page("password_request.html", asked=False)


async def request_link(request: ConsoleRequest) -> Response:
    """The answer is the same whether the address has an account or not."""
    email = (await request.fields()).get("email", "")
    accounts = request.console.accounts
    await count_request(accounts, email, request.browser())
    response = request.page("password_request.html", asked=True)
    response.background = BackgroundTask(mail_new_password, accounts, email)
    return response


async def show_new(request: ConsoleRequest) -> Response:
    return await _form(request, "password")


async def show_invitation(request: ConsoleRequest) -> Response:
    return await _form(request, "invitation")


async def choose_new(request: ConsoleRequest) -> Response:
    return await _choose(request, "password", await request.fields())


async def accept_invitation(request: ConsoleRequest) -> Response:
    """A person without a password chooses one; a person who has an account only says yes."""
    form = await request.fields()
    ctx, secret = request.ctx, request.path["secret"]
    try:
        user, _ = await mail_links.find(ctx.db, secret, "invitation", ctx.clock.now())
        if user.status == "invited":
            return await _choose(request, "invitation", form)
        await join_team(request.console.accounts, secret)
    except LinkUnusable:
        return _unusable(request)
    return request.redirect(request.console_url(""))


async def _choose(request: ConsoleRequest, purpose: LinkPurpose, form: dict[str, str]) -> Response:
    accounts, secret, password = request.console.accounts, request.path["secret"], form.get("password", "")
    name = form.get("name", "")
    if purpose == "invitation" and normal_name(name) is None:
        raise FormFault(request.name_fault(name, "password.name"))
    try:
        if purpose == "invitation":
            signed = await accept(accounts, secret, normal_name(name), password, request.browser())
        else:
            signed = await reset_password(accounts, secret, password, request.browser())
    except LinkUnusable:
        return _unusable(request)
    return request.sign_in_response(signed, request.console_url(""))


async def _form(request: ConsoleRequest, purpose: LinkPurpose) -> Response:
    ctx, secret = request.ctx, request.path["secret"]
    try:
        user, offer = await mail_links.find(ctx.db, secret, purpose, ctx.clock.now())
    except LinkUnusable:
        return _unusable(request)
    if request.chosen_language is None:
        request.language = user.language
    if purpose == "invitation" and user.status == "active":
        merchant = await merchants.get(ctx.db, offer.merchant_id) if offer else None
        if offer is None or merchant is None:
            return _unusable(request)
        return request.page("team_offer.html", email=user.email, place=merchant.name, role=offer.role)
    return request.page("password_new.html", email=user.email, name=user.name, invited=purpose == "invitation")


async def show_own(request: ConsoleRequest) -> Response:
    return request.page("password_own.html", email=request.person.email)


async def change_own(request: ConsoleRequest) -> Response:
    """The present password is asked for again."""
    form = await request.fields()
    session, user = request.signed_in
    passwords = (form.get("present", ""), form.get("password", ""))
    try:
        device = await change_password(
            request.console.accounts, user, session, *passwords, request.actor, request.browser()
        )
    except SignInRefused:
        raise FormFault(request.text("password.present_wrong")) from None
    response = request.done(request.console_url("/security"), "password_changed")
    if device is not None:
        request.console.cookies.set(response, DEVICE, device)
    return response


def _unusable(request: ConsoleRequest) -> Response:
    return request.page("message.html", status=410, name="link_unusable", action=request.console_url("/password"))
