"""The first owner of a merchant's team is invited by the staff, as by `guichet user invite`; who else belongs to it is
the owner's business (docs/decisions.md, D175)."""

from collections.abc import Iterable

from guichet.accounts import users
from guichet.accounts.invitations import Invitation, InvitationRefused, invite
from guichet.console.page_request import ROOT, StaffRequest
from guichet.domain.accounts import User, normal_email, normal_name
from guichet.domain.merchants import Merchant
from guichet.domain.roles import MerchantRole


def has_owner(team: Iterable[tuple[MerchantRole, User]]) -> bool:
    """Whether somebody in this team can still invite others."""
    return any(role == "owner" and user.status != "disabled" for role, user in team)


async def invite_owner(request: StaffRequest, merchant: Merchant, form: dict[str, str]) -> str | None:
    """What is wrong with the form; None when the invitation is on its way."""
    email, name = normal_email(form.get("email", "")), normal_name(form.get("person", ""))
    if email is None or name is None:
        return request.text("admin_merchants.owner_incomplete")
    ctx, url = request.ctx, request.console.public_url + ROOT
    wanted = Invitation(email, name, request.person.language, "owner", merchant)
    try:
        async with ctx.db.transaction() as tx:
            if has_owner(await users.team(tx, merchant.id)):
                return request.text("admin_merchants.owner_there")
            await invite(tx, request.console.accounts.outbox, wanted, request.actor, url, ctx.clock.now())
    except InvitationRefused:
        return request.text("admin_merchants.owner_not_possible")
    return None
