"""The team of a merchant: who belongs to it, invitations, roles."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import mail_links, people, users
from guichet.accounts.errors import LastOwner
from guichet.accounts.invitations import InTeamAlready, Invitation, invite_to_team, withdraw
from guichet.console.forms import is_confirmed
from guichet.console.page_request import ROOT, MerchantRequest
from guichet.console.sections import MerchantPage
from guichet.db.engine import Reader
from guichet.domain.accounts import Membership, UserId, normal_email, normal_name
from guichet.domain.roles import MERCHANT_ROLES, MerchantRole


async def show(request: MerchantRequest) -> Response:
    return await _page(request)


async def change(request: MerchantRequest) -> Response:
    """Invites somebody, changes a role, or takes somebody out of the team: the first form that asks for that is
    answered with what will happen."""
    form = await request.fields()
    request.require("team.change")
    try:
        if form.get("act") == "invite":
            return await _invite(request, form)
        if form.get("act") == "withdraw":
            return await _withdraw(request, form)
        if form.get("act") == "remove" and not is_confirmed(form):
            return await _ask_removal(request, form)
        return await _set_role(request, form)
    except LastOwner:
        return await _page(request, 409, request.text("team.last_owner"))


async def _invite(request: MerchantRequest, form: dict[str, str]) -> Response:
    email, name, role = normal_email(form.get("email", "")), normal_name(form.get("name", "")), _role(form)
    if email is None or name is None or role is None:
        return await _page(request, 422, request.text("team.incomplete"), form)
    ctx, outbox = request.ctx, request.console.accounts.outbox
    wanted = Invitation(email, name, request.person.language, role, request.merchant)
    try:
        async with ctx.db.transaction() as tx:
            url = request.console.public_url + ROOT
            await invite_to_team(tx, outbox, wanted, request.actor, url, ctx.clock.now())
    except InTeamAlready:
        return await _page(request, 409, request.text("team.in_already"), form)
    return request.redirect(request.here("/team"))


async def _withdraw(request: MerchantRequest, form: dict[str, str]) -> Response:
    ctx, number = request.ctx, form.get("invitation", "")
    if number.isascii() and number.isdigit():
        async with ctx.db.transaction() as tx:
            await withdraw(tx, request.merchant.id, int(number[:18]), request.actor, ctx.clock.now())
    return request.redirect(request.here("/team"))


async def _ask_removal(request: MerchantRequest, form: dict[str, str]) -> Response:
    found = await _named(request.db, request, form)
    user = await users.get(request.db, found.user_id) if found else None
    if found is None or user is None:  # A colleague was faster.
        return request.redirect(request.here("/team"))
    shown = {"id": user.id, "name": user.name, "email": user.email, "role": found.role}
    return request.show(
        "team_removal.html", each=shown, merchant=request.merchant, is_self=user.id == request.person.id
    )


async def _named(db: Reader, request: MerchantRequest, form: dict[str, str]) -> Membership | None:
    """The member of this team that the form names."""
    number = form.get("user", "")
    if not (number.isascii() and number.isdigit()):
        return None
    return await users.membership(db, UserId(int(number[:18])), request.merchant.id)


async def _set_role(request: MerchantRequest, form: dict[str, str]) -> Response:
    ctx, role = request.ctx, _role(form)
    if role is None and form.get("act") != "remove":
        return await _page(request, 422, request.text("team.incomplete"))
    async with ctx.db.transaction() as tx:
        found = await _named(tx, request, form)
        if found is None:
            return request.redirect(request.here("/team"))
        user = await users.lock(tx, found.user_id)
        new_role = None if form.get("act") == "remove" else role
        await people.set_merchant_role(tx, user, request.merchant.id, new_role, request.actor, ctx.clock.now())
    return request.redirect(request.here("/team"))


def _role(form: dict[str, str]) -> MerchantRole | None:
    return next((role for role in MERCHANT_ROLES if role == form.get("role")), None)


async def _page(
    request: MerchantRequest, status: int = 200, fault: Any = None, form: dict[str, str] | None = None
) -> Response:
    ctx = request.ctx
    team = [
        {"id": user.id, "name": user.name, "email": user.email, "role": role, "status": user.status}
        for role, user in await users.team(ctx.db, request.merchant.id)
    ]
    # Nothing of the account but the address that was invited: it may be a stranger's.
    invited = [
        {"id": each.id, "email": each.user.email, "role": each.role}
        for each in await mail_links.open_offers(ctx.db, request.merchant.id, ctx.clock.now())
    ]
    values = {"merchant": request.merchant, "may_change": request.may("team.change"), "roles": MERCHANT_ROLES}
    typed = form or {}
    return request.show("team.html", status, team=team, invited=invited, fault=fault, typed=typed, **values)


PAGES: Final = (MerchantPage("/team", "team.view", show, change, menu="team"),)
