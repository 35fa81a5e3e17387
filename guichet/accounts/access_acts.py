"""Acts that give somebody access, as a request of one person of the staff describes them (`domain/approvals.py`):
whether one is possible, and how it is done once another one approves it, or once nobody objected."""

import re
from typing import Final

from guichet.accounts import mail_links, people, users
from guichet.accounts.errors import LastOwner, OnBothSides
from guichet.accounts.invitations import Invitation, InvitationRefused, invite
from guichet.audit_log import entries as audit_log
from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import Reader, Transaction, require
from guichet.domain.accounts import Language, User, UserId
from guichet.domain.approvals import ActRequest
from guichet.domain.audit_log import Actor, ActRefused
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet.domain.refusals import Refusal
from guichet.domain.roles import MERCHANT_ROLES, STAFF_ROLES, MerchantRole, StaffRole, makes_approver, may_approve
from guichet.mail.outbox import Outbox
from guichet.merchants import repository as merchants

_SUBJECT: Final = re.compile(r"user/([0-9]{1,18})(?:/([0-9]{1,18}))?", re.ASCII)


def staff_subject(user: User) -> str:
    """How a request names a colleague."""
    return f"user/{user.id}"


def team_subject(user: User, merchant: Merchant) -> str:
    """How a request names somebody for a merchant's team."""
    return f"user/{user.id}/{merchant.id}"


def person_of(subject: str) -> UserId | None:
    """Whom a request is about; None if it is about something else."""
    match = _SUBJECT.fullmatch(subject)
    return None if match is None else UserId(int(match[1]))


async def subject_text(db: Reader, subject: str) -> str:
    """The address of the person whom a request is about; any other subject as it is."""
    user = await _user(db, subject)
    return subject if user is None else user.email


async def known_or_new(tx: Transaction, email: str, name: str, language: Language, now: Instant) -> User:
    """The person with this address: a new account has no role and no password, and its address is not mailed yet."""
    created = await users.create(tx, email, name, language, None, now)
    return created or require(await users.by_email(tx, email))


async def check(ctx: AppContext, act_request: ActRequest) -> MerchantId:
    """The merchant that the act is about, for a colleague the service itself. Raises ActRefused when the act could not
    be done now."""
    user = require(await _user(ctx.db, act_request.subject))
    refused = ActRefused(Refusal.NOT_THIS_PERSON(email=user.email))
    if act_request.act == "team.give_role":
        merchant_id = _merchant_id(act_request)
        if _merchant_role(act_request) is None or user.status == "disabled" or user.staff_role is not None:
            raise refused
        return merchant_id
    if act_request.act == "staff.add" and (
        user.status == "disabled"
        or not makes_approver(user.staff_role, _staff_role(act_request))
        or await users.merchants_of(ctx.db, user.id)
    ):
        raise refused
    if act_request.act == "staff.restore" and not (user.status == "disabled" and may_approve(user.staff_role)):
        raise refused
    async with ctx.db.transaction() as tx:
        return await merchants.house_merchant(tx, ctx.vault, ctx.clock.now())


async def perform(ctx: AppContext, act_request: ActRequest, actor: Actor) -> None:
    """Does it. `actor` carries the approval, which the transaction of the act uses up. Raises ActRefused."""
    await check(ctx, act_request)
    now, outbox = ctx.clock.now(), Outbox(ctx.vault)
    email = await subject_text(ctx.db, act_request.subject)
    try:
        async with ctx.db.transaction() as tx:
            user = await people.lock(tx, require(await _user(tx, act_request.subject)).id)
            if act_request.act == "staff.restore":
                await people.enable(tx, outbox, user, actor, now)
            elif act_request.act == "team.give_role":
                await _give_team_role(ctx, tx, user, act_request, actor)
            elif user.staff_role is not None:
                await people.set_staff_role(tx, outbox, user, _staff_role(act_request), actor, now)
            else:
                await _invite(ctx, tx, user, require(_staff_role(act_request)), None, actor)
    except (InvitationRefused, LastOwner, OnBothSides):
        raise ActRefused(Refusal.NOT_THIS_PERSON(email=email)) from None


async def tell_owners(ctx: AppContext, tx: Transaction, act_request: ActRequest, actor: Actor, now: Instant) -> None:
    """When it is asked for, so that they can say no before it is done."""
    merchant, role = require(await merchants.get(tx, _merchant_id(act_request))), _merchant_role(act_request)
    assert role is not None
    email = await subject_text(tx, act_request.subject)
    await people.tell_owners(tx, Outbox(ctx.vault), merchant, email, role, actor, now)


async def has_owner(db: Reader, merchant: Merchant, but: str, by: str, now: Instant) -> bool:
    """Whether the team has an owner, disabled or not, or an open invitation of somebody else as one. One that was taken
    back counts for as long as it would have been open, unless `by` made it: they may have mistyped the address, but
    nobody makes room for an owner of their own by taking back a colleague's."""
    offers = await mail_links.open_offers(db, merchant.id, now)
    if any(offer.role == "owner" and offer.user.email != but for offer in offers):
        return True
    if await people.owners_of(db, merchant.id):
        return True
    ended = await mail_links.ended_owner_offers(db, merchant.id, now)
    return any([email != but and not await _invited_by(db, user, merchant, by) for user, email in ended])


async def _invited_by(db: Reader, user_id: UserId, merchant: Merchant, by: str) -> bool:
    """Whether everybody who lately invited the person to this team is `by`."""
    entries = await audit_log.about(db, str(user_id))
    inviters = {
        entry.actor
        for entry in entries
        if (entry.action, entry.subject_type, entry.merchant_id) == ("user.invited", "user", merchant.id)
    }
    return inviters == {by}


async def _give_team_role(ctx: AppContext, tx: Transaction, user: User, act_request: ActRequest, actor: Actor) -> None:
    merchant_id, role = _merchant_id(act_request), _merchant_role(act_request)
    assert role is not None
    if await users.membership(tx, user.id, merchant_id) is not None:
        await people.set_merchant_role(tx, user, merchant_id, role, actor, ctx.clock.now())
    else:
        await _invite(ctx, tx, user, role, require(await merchants.get(tx, merchant_id)), actor)


async def _invite(
    ctx: AppContext,
    tx: Transaction,
    user: User,
    role: StaffRole | MerchantRole,
    merchant: Merchant | None,
    actor: Actor,
) -> None:
    invitation = Invitation(user.email, user.name, user.language, role, merchant)
    await invite(tx, Outbox(ctx.vault), invitation, actor, f"{ctx.settings.public_url}/console", ctx.clock.now())


async def _user(db: Reader, subject: str) -> User | None:
    person = person_of(subject)
    return None if person is None else await users.get(db, person)


def _merchant_id(act_request: ActRequest) -> MerchantId:
    return MerchantId(int(require(_SUBJECT.fullmatch(act_request.subject))[2]))


def _merchant_role(act_request: ActRequest) -> MerchantRole | None:
    return next((role for role in MERCHANT_ROLES if role == act_request.arguments.get("role")), None)


def _staff_role(act_request: ActRequest) -> StaffRole | None:
    return next((role for role in STAFF_ROLES if role == act_request.arguments.get("role")), None)
