"""The staff: who they are, and inviting somebody."""

from typing import Any, Final

from starlette.responses import Response

from guichet.accounts import users
from guichet.accounts.invitations import Invitation, InvitationRefused, invite
from guichet.console.admin.reads import record_read
from guichet.console.page_request import ROOT, StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.accounts import normal_email, normal_name
from guichet.domain.roles import STAFF_ROLES


async def show(request: StaffRequest) -> Response:
    return await _page(request)


async def change(request: StaffRequest) -> Response:
    """Invites somebody. A person who is in the staff already is changed on their own page."""
    form = await request.fields()
    ctx = request.ctx
    request.require("staff.change")
    email, name = normal_email(form.get("email", "")), normal_name(form.get("name", ""))
    role = next((each for each in STAFF_ROLES if each == form.get("role")), None)
    if email is None or name is None or role is None:
        return await _page(request, 422, request.text("team.incomplete"), form)
    known = await users.by_email(ctx.db, email)
    if known is not None and known.staff_role is not None and known.status != "invited":
        return await _page(request, 409, request.text("admin_people.known"), form)
    wanted = Invitation(email, name, request.person.language, role, None)
    url = request.console.public_url + ROOT
    try:
        async with ctx.db.transaction() as tx:
            await invite(tx, request.console.accounts.outbox, wanted, request.actor, url, ctx.clock.now())
    except InvitationRefused:
        return await _page(request, 409, request.text("admin_people.not_possible"), form)
    return request.redirect(request.at_admin("/staff"))


async def _page(
    request: StaffRequest, status: int = 200, fault: Any = None, form: dict[str, str] | None = None
) -> Response:
    staff = await users.staff_in(request.db)
    await record_read(request, "staff.listed", "user", "staff", shown={"users": [each.id for each in staff]})
    view = {
        "staff": staff,
        "roles": STAFF_ROLES,
        "may_change": request.may("staff.change"),
        "typed": form or {},
    }
    return request.show("admin/people/staff.html", status, fault=fault, **view)


PAGES: Final = (StaffPage("/staff", "staff.view", show, change, menu="staff"),)
