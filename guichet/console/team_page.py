"""The team of a merchant: who belongs to it, invitations, roles."""

from starlette.responses import Response

from guichet.accounts import mail_links, people, users
from guichet.accounts.errors import LastOwner
from guichet.accounts.invitations import InTeamAlready, Invitation, TooManyInvitations, invite_to_team, withdraw
from guichet.console.console import ROOT
from guichet.console.forms import Confirmed
from guichet.console.page_request import FormFault, MerchantRequest
from guichet.domain.accounts import UserId, normal_email, normal_name
from guichet.domain.roles import MERCHANT_ROLES, MerchantRole
from guichet.pages.fields import Fields, Lenient, RowId


class TeamForm(Fields):
    """Invites somebody (`email`, `name`, `role`), takes an invitation back, or gives a person of the team another role
    or none."""

    act: str = ""
    email: str = ""
    name: str = ""
    role: Lenient[MerchantRole] = None
    invitation: RowId = 0
    user: RowId = 0
    confirm: Confirmed = False


async def show(request: MerchantRequest) -> Response:
    team = await users.team(request.db, request.merchant.id)
    offers = await mail_links.open_offers(request.db, request.merchant.id, request.now())
    return request.page("team.html", team=team, invited=offers, roles=MERCHANT_ROLES)


async def change(request: MerchantRequest) -> Response:
    """The first form that takes somebody out of the team is answered with what will happen."""
    form = await request.form(TeamForm)
    request.require("team.change")
    try:
        match form.act:
            case "invite":
                await _invite(request, form)
            case "withdraw":
                async with request.db.transaction() as tx:
                    await withdraw(tx, request.merchant.id, form.invitation, request.actor, request.now())
            case "remove" if not form.confirm:
                return await _ask_removal(request, form)
            case _:
                await _set_role(request, form)
    except LastOwner:
        raise FormFault(request.text("team.last_owner"), 409) from None
    done = {"invite": "invited", "withdraw": "withdrawn", "remove": "member_removed"}.get(form.act, "role_set")
    return request.done(request.merchant_url("/team"), done)


async def _invite(request: MerchantRequest, form: TeamForm) -> None:
    email, name = normal_email(form.email), normal_name(form.name)
    if email is None or name is None or form.role is None:
        raise FormFault(request.name_fault(form.name, "team.incomplete"))
    invitation = Invitation(email, name, request.person.language, form.role, request.merchant)
    url, outbox = request.console.public_url + ROOT, request.console.accounts.outbox
    try:
        async with request.db.transaction() as tx:
            await invite_to_team(tx, outbox, invitation, request.actor, url, request.now())
    except InTeamAlready:
        raise FormFault(request.text("team.in_already"), 409) from None
    except TooManyInvitations:
        raise FormFault(request.text("invitations.too_many"), 429) from None


async def _ask_removal(request: MerchantRequest, form: TeamForm) -> Response:
    membership = await users.membership(request.db, UserId(form.user), request.merchant.id)
    user = await users.get(request.db, membership.user_id) if membership else None
    if membership is None or user is None:  # A colleague was faster.
        return request.redirect(request.merchant_url("/team"))
    return request.page("team_removal.html", person=user, role=membership.role)


async def _set_role(request: MerchantRequest, form: TeamForm) -> None:
    """Nothing if a colleague was faster. Raises LastOwner."""
    if form.role is None and form.act != "remove":
        raise FormFault(request.text("team.incomplete"))
    async with request.db.transaction() as tx:
        membership = await users.membership(tx, UserId(form.user), request.merchant.id)
        if membership is None:
            return
        user = await users.lock(tx, membership.user_id)
        role = None if form.act == "remove" else form.role
        await people.set_merchant_role(tx, user, request.merchant.id, role, request.actor, request.now())
