"""The staff: who they are, and inviting somebody."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import users
from guichet.accounts.invitations import Invitation, InvitationRefused, invite
from guichet.accounts.rights import StaffMember
from guichet.console.admin.reads import record_read
from guichet.console.sections import StaffPage
from guichet.console.visit import ROOT, Visit
from guichet.domain.accounts import normal_email, normal_name
from guichet.domain.roles import STAFF_ROLES


async def show(visit: Visit, acting: StaffMember) -> Response:
    return await _page(visit, acting)


async def change(visit: Visit, acting: StaffMember) -> Response:
    """Invites somebody. A person who is in the staff already is changed on their own page."""
    form = await visit.form()
    ctx = visit.console.ctx
    acting.require("staff.change", ctx.clock.now())
    email, name = normal_email(form.get("email", "")), normal_name(form.get("name", ""))
    role = next((each for each in STAFF_ROLES if each == form.get("role")), None)
    if email is None or name is None or role is None:
        return await _page(visit, acting, 422, visit.text("team.incomplete"), form)
    known = await users.by_email(ctx.db, email)
    if known is not None and known.staff_role is not None and known.status != "invited":
        return await _page(visit, acting, 409, visit.text("admin_people.known"), form)
    wanted = Invitation(email, name, acting.user.language, role, None)
    url = visit.console.public_url + ROOT
    try:
        async with ctx.db.transaction() as tx:
            await invite(tx, visit.console.accounts.outbox, wanted, acting.actor, url, ctx.clock.now())
    except InvitationRefused:
        return await _page(visit, acting, 409, visit.text("admin_people.not_possible"), form)
    return visit.redirect(visit.at_admin("/staff"))


async def _page(
    visit: Visit, acting: StaffMember, status: int = 200, fault: Any = None, form: dict[str, str] | None = None
) -> Response:
    staff = await users.staff_in(visit.console.ctx.db)
    await record_read(visit, acting, "staff.listed", "user", "staff", shown={"users": [each.id for each in staff]})
    view = {
        "staff": staff,
        "roles": STAFF_ROLES,
        "may_change": acting.may("staff.change"),
        "typed": form or {},
    }
    return visit.show("admin/people/staff.html", status, fault=fault, **view)


PAGES: Final = (StaffPage("/staff", "staff.view", show, change, menu="staff"),)
