"""Finding a user of a merchant by the e-mail address."""

from typing import Final

from starlette.responses import Response

from guichet.accounts import users
from guichet.accounts.rights import StaffMember
from guichet.console.admin.reads import record_read
from guichet.console.sections import StaffPage
from guichet.console.visit import Visit
from guichet.domain.accounts import normal_email


async def show(visit: Visit, acting: StaffMember) -> Response:
    return visit.show("admin/people/users.html", q="", fault=None)


async def find(visit: Visit, acting: StaffMember) -> Response:
    """Leads to the person's page; those of the staff are not found here. A POST, because what is typed is personal: it
    must not stay in addresses and their logs."""
    form = await visit.form()
    acting.require("merchants.view", visit.console.ctx.clock.now())
    typed = form.get("q", "").strip()[:254]
    if not typed:
        return await show(visit, acting)
    email = normal_email(typed)
    user = await users.by_email(visit.console.ctx.db, email) if email else None
    found = user is not None and user.staff_role is None
    await record_read(visit, acting, "user.searched", "user", user.id if user and found else "none")
    if user is None or not found:
        return visit.show("admin/people/users.html", 404, q=typed, fault=visit.text("admin_people.nobody"))
    return visit.redirect(visit.at_admin(f"/users/{user.id}"))


PAGES: Final = (StaffPage("/users", "merchants.view", show, find, below="merchants"),)
