"""People in the back office: the staff, finding a user of merchants, and one person with what can be done about them.

A colleague's page needs `staff.view` and `staff.change`, that of a user `merchants.view` and `merchants.change`. Nobody
changes their own account here: it could be the last that may.

Whatever makes somebody an approver, or puts them above an owner of a merchant, only asks: another person approves it
(`accounts/approvals.py`). What takes rights away is done at once.
"""

from typing import Final

from starlette.responses import Response

from guichet.accounts import access_acts, approvals, people, users
from guichet.accounts.errors import Forbidden, LastOwner
from guichet.accounts.invitations import Invitation, InvitationRefused, TooManyInvitations, invite
from guichet.clock import Instant
from guichet.console.admin.reads import record_read
from guichet.console.console import ROOT
from guichet.console.forms import Confirmed
from guichet.console.page_request import FormFault, StaffRequest
from guichet.db.engine import Transaction
from guichet.domain.accounts import User, UserId, normal_email, normal_name
from guichet.domain.approvals import ActRequest
from guichet.domain.audit_log import CONSOLE
from guichet.domain.errors import NotFound
from guichet.domain.ids import MerchantId
from guichet.domain.roles import (
    MERCHANT_ROLES,
    STAFF_ROLES,
    MerchantRole,
    StaffRight,
    StaffRole,
    makes_approver,
    may_approve,
    may_as_merchant,
)
from guichet.merchants import repository as merchants
from guichet.pages.fields import Fields, Lenient, RowId, choice

#: What is said after an act.
_DONE: Final = {
    "disable": "user_disabled",
    "enable": "user_enabled",
    "reset_factor": "factor_reset",
    "role": "role_set",
    "team_role": "role_set",
    "team_remove": "member_removed",
}
#: Acts by which somebody loses access need a tick.
_TO_CONFIRM: Final = ("disable", "reset_factor", "remove", "team_remove")
_LONGEST_EMAIL: Final = 254


class InvitationForm(Fields):
    email: str = ""
    name: str = ""
    role: Lenient[StaffRole] = None


async def show_staff(request: StaffRequest) -> Response:
    staff = await users.staff_in(request.db)
    await record_read(request, "staff.listed", "user", "staff", facts={"users": [user.id for user in staff]})
    return request.page("admin/people/staff.html", colleagues=staff, roles=STAFF_ROLES)


async def invite_colleague(request: StaffRequest) -> Response:
    """A person who is in the staff already is changed on their own page."""
    form = await request.form(InvitationForm)
    request.require("staff.change")
    email, name = normal_email(form.email), normal_name(form.name)
    if email is None or name is None or form.role is None:
        raise FormFault(request.name_fault(form.name, "team.incomplete"))
    colleague = await users.by_email(request.db, email)
    if colleague is not None and colleague.staff_role is not None and colleague.status != "invited":
        raise FormFault(request.text("admin_people.known"), 409)
    invitation = Invitation(email, name, request.person.language, form.role, None)
    url, outbox = request.console.public_url + ROOT, request.console.accounts.outbox
    try:
        async with request.db.transaction() as tx:
            # As it is now: a colleague may be taking the role away at this moment.
            locked = colleague and await people.lock(tx, colleague.id)
            if at_once := not makes_approver(locked.staff_role if locked else None, form.role):
                await invite(tx, outbox, invitation, request.actor, url, request.now())
        if not at_once:
            return await _ask_for_colleague(request, invitation)
    except TooManyInvitations:
        raise FormFault(request.text("invitations.too_many"), 429) from None
    except InvitationRefused:
        raise FormFault(request.text("admin_people.not_possible"), 409) from None
    except LastOwner:
        raise FormFault(request.text("admin_people.last_admin"), 409) from None
    return request.done(request.admin_url("/staff"), "invited")


async def _ask_for_colleague(request: StaffRequest, invitation: Invitation) -> Response:
    """Raises ActRefused."""
    person = (invitation.email, invitation.name, invitation.language)
    async with request.db.transaction() as tx:
        user = await access_acts.known_or_new(tx, *person, request.now())
    return await _ask(request, ActRequest("staff.add", access_acts.staff_subject(user), {"role": invitation.role}, ""))


async def _ask(request: StaffRequest, act_request: ActRequest) -> Response:
    """Leads to the request, which waits for another person. Raises ActRefused."""
    approval = await approvals.ask(request.ctx, act_request, request.person, CONSOLE)
    return request.done(request.admin_url(f"/approvals/{approval.id}"), "asked")


async def show_search(request: StaffRequest) -> Response:
    return request.page("admin/people/users.html", q="")


async def find(request: StaffRequest) -> Response:
    """Leads to the person's page; those of the staff are not found here. A POST, because what is typed is personal: it
    must not stay in addresses and their logs."""
    form = await request.fields()
    request.require("merchants.view")
    term = form.get("q", "").strip()[:_LONGEST_EMAIL]
    if not term:
        return await show_search(request)
    email = normal_email(term)
    user = await users.by_email(request.db, email) if email else None
    if user is not None and user.staff_role is not None:
        user = None
    await record_read(request, "user.searched", "user", user.id if user else "none")
    if user is None:
        request.fault = FormFault(request.text("admin_people.nobody"), 404)
        return request.page("admin/people/users.html", q=term)
    return request.redirect(request.admin_url(f"/users/{user.id}"))


class PersonForm(Fields):
    """One act: `role` for one of the staff or, in the team of `merchant`, for a user."""

    act: str = ""
    role: str = ""
    merchant: RowId = 0
    confirm: Confirmed = False


async def show_colleague(request: StaffRequest) -> Response:
    return await _show(request, staff=True)


async def show_user(request: StaffRequest) -> Response:
    return await _show(request, staff=False)


async def _show(request: StaffRequest, *, staff: bool) -> Response:
    user = await _person(request, staff=staff)
    await record_read(request, "user.read", "user", user.id)
    teams = [] if staff else await users.merchants_of(request.db, user.id)
    roles = STAFF_ROLES if staff else MERCHANT_ROLES
    return request.page("admin/people/person.html", person=user, teams=teams, roles=roles)


async def change_colleague(request: StaffRequest) -> Response:
    return await _change(request, "staff.change", staff=True)


async def change_user(request: StaffRequest) -> Response:
    return await _change(request, "merchants.change", staff=False)


async def _change(request: StaffRequest, right: StaffRight, *, staff: bool) -> Response:
    form = await request.form(PersonForm)
    request.require(right)
    user = await _person(request, staff=staff)
    if user.id == request.person.id:
        raise Forbidden
    if form.act in _TO_CONFIRM and not form.confirm:
        raise FormFault(request.text("admin_people.confirm_missing"))
    try:
        async with request.db.transaction() as tx:
            locked = await people.lock(tx, user.id)
            act_request = await _to_approve(tx, locked, form, request.person.email, request.now(), staff=staff)
            if act_request is None:
                await _act(request, tx, locked, form, staff=staff)
        if act_request is not None:
            return await _ask(request, act_request)
    except LastOwner:
        last = request.text("admin_people.last_admin" if staff else "team.last_owner")
        raise FormFault(last, 409) from None
    if staff and form.act == "remove":
        return request.done(request.admin_url("/staff"), "staff_removed")
    page = request.admin_url(f"/{'staff' if user.staff_role else 'users'}/{user.id}")
    return request.done(page, _DONE[form.act]) if form.act in _DONE else request.redirect(page)


async def _to_approve(
    tx: Transaction, user: User, form: PersonForm, by: str, now: Instant, *, staff: bool
) -> ActRequest | None:
    """What another person must approve before `by` has it done."""
    match form.act:
        case "enable" if user.status == "disabled" and may_approve(user.staff_role):
            return ActRequest("staff.restore", access_acts.staff_subject(user), {"role": str(user.staff_role)}, "")
        case "role" if staff and makes_approver(user.staff_role, role := choice(form.role, STAFF_ROLES)):
            return ActRequest("staff.add", access_acts.staff_subject(user), {"role": str(role)}, "")
        case "team_role" if not staff and (team_role := choice(form.role, MERCHANT_ROLES)):
            merchant = await merchants.get(tx, MerchantId(form.merchant))
            before = await users.membership(tx, user.id, MerchantId(form.merchant))
            if (
                merchant is None
                or before is None
                or before.role in ("owner", team_role)
                or not may_as_merchant(team_role, "payments.refund", "live")
                or not await access_acts.has_owner(tx, merchant, user.email, by, now)
            ):
                return None
            return ActRequest("team.give_role", access_acts.team_subject(user, merchant), {"role": team_role}, "")
    return None


async def _act(request: StaffRequest, tx: Transaction, user: User, form: PersonForm, *, staff: bool) -> None:
    """What the form asks for; nothing if it is none of our buttons. Raises LastOwner."""
    now, actor, accounts = request.now(), request.actor, request.console.accounts
    match form.act:
        case "disable":
            await people.disable(tx, accounts.outbox, user, actor, now)
        case "enable":
            await people.enable(tx, accounts.outbox, user, actor, now)
        case "reset_factor":
            await people.reset_factor(tx, accounts.outbox, user, actor, accounts.reset_address, now)
        case "role" if staff and (role := choice(form.role, STAFF_ROLES)):
            await people.set_staff_role(tx, accounts.outbox, user, role, actor, now)
        case "remove" if staff:
            await people.set_staff_role(tx, accounts.outbox, user, None, actor, now)
        case "team_role" if not staff and (team_role := choice(form.role, MERCHANT_ROLES)):
            await _set_team_role(request, tx, user, MerchantId(form.merchant), team_role)
        case "team_remove" if not staff:
            await _set_team_role(request, tx, user, MerchantId(form.merchant), None)


async def _set_team_role(
    request: StaffRequest, tx: Transaction, user: User, merchant: MerchantId, role: MerchantRole | None
) -> None:
    """Nothing if the person has left this team meanwhile. Raises LastOwner."""
    if await users.membership(tx, user.id, merchant) is not None:
        await people.set_merchant_role(tx, user, merchant, role, request.actor, request.now())


async def _person(request: StaffRequest, *, staff: bool) -> User:
    """The user that the address names, on the side where the page is. Raises NotFound."""
    user = await users.get(request.db, UserId(request.path["user"]))
    if user is None or (user.staff_role is not None) is not staff:
        raise NotFound
    return user
