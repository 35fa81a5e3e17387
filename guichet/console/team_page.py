"""The team of a merchant: who belongs to it, invitations, roles."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import mail_links, people, users
from guichet.accounts.errors import LastOwner
from guichet.accounts.invitations import InTeamAlready, Invitation, invite_to_team, withdraw
from guichet.accounts.rights import Member
from guichet.console.forms import is_confirmed
from guichet.console.sections import MerchantPage
from guichet.console.visit import ROOT, Visit
from guichet.db.engine import Reader
from guichet.domain.accounts import Membership, UserId, normal_email, normal_name
from guichet.domain.roles import MERCHANT_ROLES, MerchantRole


async def show(visit: Visit, acting: Member) -> Response:
    return await _page(visit, acting)


async def change(visit: Visit, acting: Member) -> Response:
    """Invites somebody, changes a role, or takes somebody out of the team: the first form that asks for that is
    answered with what will happen."""
    form = await visit.form()
    acting.require("team.change", visit.console.ctx.clock.now())
    try:
        if form.get("act") == "invite":
            return await _invite(visit, acting, form)
        if form.get("act") == "withdraw":
            return await _withdraw(visit, acting, form)
        if form.get("act") == "remove" and not is_confirmed(form):
            return await _ask_removal(visit, acting, form)
        return await _set_role(visit, acting, form)
    except LastOwner:
        return await _page(visit, acting, 409, visit.text("team.last_owner"))


async def _invite(visit: Visit, acting: Member, form: dict[str, str]) -> Response:
    email, name, role = normal_email(form.get("email", "")), normal_name(form.get("name", "")), _role(form)
    if email is None or name is None or role is None:
        return await _page(visit, acting, 422, visit.text("team.incomplete"), form)
    ctx, outbox = visit.console.ctx, visit.console.accounts.outbox
    wanted = Invitation(email, name, acting.user.language, role, acting.merchant)
    try:
        async with ctx.db.transaction() as tx:
            url = visit.console.public_url + ROOT
            await invite_to_team(tx, outbox, wanted, acting.actor, url, ctx.clock.now())
    except InTeamAlready:
        return await _page(visit, acting, 409, visit.text("team.in_already"), form)
    return visit.redirect(visit.here("/team"))


async def _withdraw(visit: Visit, acting: Member, form: dict[str, str]) -> Response:
    ctx, number = visit.console.ctx, form.get("invitation", "")
    if number.isascii() and number.isdigit():
        async with ctx.db.transaction() as tx:
            await withdraw(tx, acting.merchant.id, int(number[:18]), acting.actor, ctx.clock.now())
    return visit.redirect(visit.here("/team"))


async def _ask_removal(visit: Visit, acting: Member, form: dict[str, str]) -> Response:
    found = await _named(visit.console.ctx.db, acting, form)
    user = await users.get(visit.console.ctx.db, found.user_id) if found else None
    if found is None or user is None:  # A colleague was faster.
        return visit.redirect(visit.here("/team"))
    shown = {"id": user.id, "name": user.name, "email": user.email, "role": found.role}
    return visit.show("team_removal.html", each=shown, merchant=acting.merchant, is_self=user.id == acting.user.id)


async def _named(db: Reader, acting: Member, form: dict[str, str]) -> Membership | None:
    """The member of this team that the form names."""
    number = form.get("user", "")
    if not (number.isascii() and number.isdigit()):
        return None
    return await users.membership(db, UserId(int(number[:18])), acting.merchant.id)


async def _set_role(visit: Visit, acting: Member, form: dict[str, str]) -> Response:
    ctx, role = visit.console.ctx, _role(form)
    if role is None and form.get("act") != "remove":
        return await _page(visit, acting, 422, visit.text("team.incomplete"))
    async with ctx.db.transaction() as tx:
        found = await _named(tx, acting, form)
        if found is None:
            return visit.redirect(visit.here("/team"))
        user = await users.lock(tx, found.user_id)
        new_role = None if form.get("act") == "remove" else role
        await people.set_merchant_role(tx, user, acting.merchant.id, new_role, acting.actor, ctx.clock.now())
    return visit.redirect(visit.here("/team"))


def _role(form: dict[str, str]) -> MerchantRole | None:
    return next((role for role in MERCHANT_ROLES if role == form.get("role")), None)


async def _page(
    visit: Visit, acting: Member, status: int = 200, fault: Any = None, form: dict[str, str] | None = None
) -> Response:
    ctx = visit.console.ctx
    team = [
        {"id": user.id, "name": user.name, "email": user.email, "role": role, "status": user.status}
        for role, user in await users.team(ctx.db, acting.merchant.id)
    ]
    # Nothing of the account but the address that was invited: it may be a stranger's.
    invited = [
        {"id": each.id, "email": each.user.email, "role": each.role}
        for each in await mail_links.open_offers(ctx.db, acting.merchant.id, ctx.clock.now())
    ]
    values = {"merchant": acting.merchant, "may_change": acting.may("team.change"), "roles": MERCHANT_ROLES}
    typed = form or {}
    return visit.show("team.html", status, team=team, invited=invited, fault=fault, typed=typed, **values)


PAGES: Final = (MerchantPage("/team", "team.view", show, change, menu="team"),)
