"""One person: a colleague of the staff, or a user of merchants. Disabling, enabling, a lost second factor, a role of
the staff or in a merchant's team.

A colleague's page needs `staff.view` and `staff.change`, that of a user `merchants.view` and `merchants.change`. Nobody
changes their own account here: it could be the last that may.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from starlette.responses import Response

from guichet.accounts import people, users
from guichet.accounts.errors import Forbidden, LastOwner
from guichet.console.admin.reads import record_read
from guichet.console.forms import is_confirmed
from guichet.console.page_request import StaffRequest
from guichet.console.sections import StaffPage
from guichet.db.engine import Transaction
from guichet.domain.accounts import User, UserId
from guichet.domain.errors import NotFound
from guichet.domain.ids import MerchantId
from guichet.domain.roles import MERCHANT_ROLES, STAFF_ROLES, MerchantRole, StaffRight
from guichet.pages.fields import row_id

#: Acts by which somebody loses access need a tick.
_TO_CONFIRM: Final = ("disable", "reset_factor", "remove", "team_remove")

Role = TypeVar("Role", bound=str)


async def show_colleague(request: StaffRequest) -> Response:
    return await _page(request, await _person(request, staff=True))


async def show_user(request: StaffRequest) -> Response:
    return await _page(request, await _person(request, staff=False))


async def change_colleague(request: StaffRequest) -> Response:
    return await _change(request, "staff.change", staff=True)


async def change_user(request: StaffRequest) -> Response:
    return await _change(request, "merchants.change", staff=False)


async def _change(request: StaffRequest, right: StaffRight, *, staff: bool) -> Response:
    form = await request.fields()
    ctx = request.ctx
    request.require(right)
    user = await _person(request, staff=staff)
    if user.id == request.person.id:
        raise Forbidden
    if form.get("act") in _TO_CONFIRM and not is_confirmed(form):
        return await _page(request, user, 422, request.text("admin_people.confirm_missing"))
    try:
        async with ctx.db.transaction() as tx:
            locked = await users.lock(tx, user.id)
            await _act(request, tx, locked, form, staff=staff)
    except LastOwner:
        fault = request.text("admin_people.last_admin") if staff else request.text("team.last_owner")
        return await _page(request, user, 409, fault)
    return request.redirect(
        request.at_admin("/staff") if staff and form.get("act") == "remove" else _own(request, user)
    )


async def _act(request: StaffRequest, tx: Transaction, user: User, form: dict[str, str], *, staff: bool) -> None:
    """What the form asks for; nothing if it is none of our buttons. Raises LastOwner."""
    now, actor, accounts = request.now(), request.actor, request.console.accounts
    match form.get("act"):
        case "disable":
            await people.set_status(tx, user, "disabled", actor, now)
        case "enable":
            await people.enable(tx, accounts.outbox, user, actor, now)
        case "reset_factor":
            await people.reset_factor(tx, accounts.outbox, user, actor, accounts.reset_address, now)
        case "role" if staff and (role := _chosen(STAFF_ROLES, form)):
            await people.set_staff_role(tx, accounts.outbox, user, role, actor, now)
        case "remove" if staff:
            await people.set_staff_role(tx, accounts.outbox, user, None, actor, now)
        case "team_role" if not staff and (wanted := _chosen(MERCHANT_ROLES, form)):
            await _set_team_role(request, tx, user, form, wanted)
        case "team_remove" if not staff:
            await _set_team_role(request, tx, user, form, None)


def _chosen(roles: Sequence[Role], form: dict[str, str]) -> Role | None:
    return next((each for each in roles if each == form.get("role")), None)


async def _set_team_role(
    request: StaffRequest, tx: Transaction, user: User, form: dict[str, str], role: MerchantRole | None
) -> None:
    """In the team that the form names; nothing if the person has left it meanwhile. Raises LastOwner."""
    merchant = MerchantId(row_id(form.get("merchant")) or 0)
    if await users.membership(tx, user.id, merchant) is not None:
        await people.set_merchant_role(tx, user, merchant, role, request.actor, request.now())


async def _person(request: StaffRequest, *, staff: bool) -> User:
    """The user that the address names, on the side where the page is. Raises NotFound."""
    number: int = request.path["user"]
    user = await users.get(request.db, UserId(number))
    if user is None or (user.staff_role is not None) is not staff:
        raise NotFound
    return user


def _own(request: StaffRequest, user: User) -> str:
    return request.at_admin(f"/{'staff' if user.staff_role else 'users'}/{user.id}")


async def _page(request: StaffRequest, user: User, status: int = 200, fault: Any = None) -> Response:
    await record_read(request, "user.read", "user", user.id)
    staff = user.staff_role is not None
    right: StaffRight = "staff.change" if staff else "merchants.change"
    view = {
        "person": user,
        "places": [] if staff else await users.merchants_of(request.db, user.id),
        "roles": STAFF_ROLES if staff else MERCHANT_ROLES,
        "own": user.id == request.person.id,
        "may_change": request.may(right) and user.id != request.person.id,
    }
    return request.show("admin/people/person.html", status, fault=fault, **view)


PAGES: Final = (
    StaffPage("/staff/{user:row}", "staff.view", show_colleague, change_colleague),
    StaffPage("/users/{user:row}", "merchants.view", show_user, change_user, below="merchants"),
)
