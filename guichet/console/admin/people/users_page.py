"""Finding a user of a merchant by the e-mail address."""

from typing import Final

from starlette.responses import Response

from guichet.accounts import users
from guichet.console.admin.reads import record_read
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.domain.accounts import normal_email


async def show(request: StaffRequest) -> Response:
    return request.show("admin/people/users.html", q="", fault=None)


async def find(request: StaffRequest) -> Response:
    """Leads to the person's page; those of the staff are not found here. A POST, because what is typed is personal: it
    must not stay in addresses and their logs."""
    form = await request.fields()
    request.require("merchants.view")
    typed = form.get("q", "").strip()[:254]
    if not typed:
        return await show(request)
    email = normal_email(typed)
    user = await users.by_email(request.db, email) if email else None
    found = user is not None and user.staff_role is None
    await record_read(request, "user.searched", "user", user.id if user and found else "none")
    if user is None or not found:
        return request.show("admin/people/users.html", 404, q=typed, fault=request.text("admin_people.nobody"))
    return request.redirect(request.at_admin(f"/users/{user.id}"))


PAGES: Final = (StaffPage("/users", "merchants.view", show, find, below="merchants"),)
