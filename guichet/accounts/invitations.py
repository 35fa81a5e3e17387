"""Invitations: single-use links in mails (docs/security.md). What their holders do: `link_acceptance.py`."""

from typing import Final

from guichet.accounts import approvers, mail_links, people, sessions, users
from guichet.accounts.errors import AccountError
from guichet.audit_log import entries as audit_log
from guichet.clock import DAY, Instant, earlier
from guichet.db.engine import Transaction, require
from guichet.domain.accounts import Language, TeamOffer, User, normal_email
from guichet.domain.audit_log import Act, Actor
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet.domain.records import Record
from guichet.domain.roles import MerchantRole, StaffRole
from guichet.mail.outbox import Outbox

#: Invitations within a day: of one merchant, of one merchant to one address, and to one address by anybody. They are
#: mails to strangers in our name.
FROM_MERCHANT_A_DAY: Final = 30
FROM_MERCHANT_TO_ADDRESS_A_DAY: Final = 3
TO_ADDRESS_A_DAY: Final = 10


class InvitationRefused(AccountError):
    """The message is one sentence for the staff who invites: staff cannot be in a merchant's team, nor the other way
    round. Owners are told nothing about an address (`invite_to_team`)."""


class InTeamAlready(InvitationRefused):
    """A role in the team is changed, not offered."""


class TooManyInvitations(InvitationRefused):
    """Of the merchant or to the address, within a day."""


class Invitation(Record, frozen=True):
    """Whom to invite: to a merchant's team with a role, or to the staff (`merchant` is None)."""

    email: str
    name: str
    language: Language
    role: MerchantRole | StaffRole
    merchant: Merchant | None


class Invited(Record, frozen=True):
    """`secret`: of the link that was mailed; None for an active account that was given a staff role at once."""

    user: User
    secret: str | None


async def invite(
    tx: Transaction, outbox: Outbox, invitation: Invitation, actor: Actor, console_url: str, now: Instant
) -> Invited:
    """Offers a person a place in a team, in the caller's transaction: a link is mailed, and who accepts it is a member.
    A role of the staff is given at once; a person without a password is mailed a link to choose one.

    Raises InvitationRefused, of which TooManyInvitations.
    """
    merchant, role = invitation.merchant, invitation.role
    email = normal_email(invitation.email)
    if email is None:
        raise InvitationRefused(f"{invitation.email} is not an e-mail address.")
    staff_role = role if merchant is None else None
    if staff_role is not None:
        await people.lock_staff(tx)
    new = await users.create(tx, email, invitation.name, invitation.language, staff_role, now)  # type: ignore[arg-type]
    user = new or await users.lock(tx, require(await users.by_email(tx, email)).id)
    # First: whether an address may join at all must not show in what is counted.
    await _refuse_too_many(tx, user, merchant, now)
    if new is None:
        await _refuse_both_sides(tx, user, merchant)
    offer = None
    if merchant is not None:
        offer = TeamOffer(merchant.id, role)  # type: ignore[arg-type]
    elif user.staff_role is not None and user.staff_role != role:
        await people.set_staff_role(tx, outbox, user, role, actor, now)  # type: ignore[arg-type]
    else:
        if user.staff_role is None:
            user = require(await users.set_staff_role(tx, user.id, role, now))  # type: ignore[arg-type]
            await sessions.end_all(tx, user.id)
        await approvers.tell_added(tx, outbox, user, role, actor, now)  # type: ignore[arg-type]
    await _record_invited(tx, user, invitation, actor, now)
    if offer is None and user.status == "active":
        return Invited(user, None)
    secret = await mail_links.create(tx, user.id, "invitation", now, offer)
    place = merchant.name if merchant else ""
    values = {"name": user.name, "inviter": actor.name, "place": place, "role": role}
    await outbox.add(tx, user, "invitation", values | {"link": f"{console_url}/invitation/{secret}"}, now)
    return Invited(user, secret)


async def invite_to_team(
    tx: Transaction, outbox: Outbox, invitation: Invitation, actor: Actor, console_url: str, now: Instant
) -> None:
    """As an owner invites: the team waits for an answer in the same way whoever has the address. One that may not join
    (the staff, a disabled account) is sent nothing, and its link is known to nobody. Raises InTeamAlready,
    TooManyInvitations."""
    try:
        await invite(tx, outbox, invitation, actor, console_url, now)
    except (InTeamAlready, TooManyInvitations):
        raise
    except InvitationRefused:
        # Nothing has been written: the address had an account already.
        user = require(await users.by_email(tx, require(normal_email(invitation.email))))
        offer = TeamOffer(require(invitation.merchant).id, invitation.role)  # type: ignore[arg-type]
        await mail_links.create(tx, user.id, "invitation", now, offer)
        await _record_invited(tx, user, invitation, actor, now)


async def withdraw(tx: Transaction, merchant_id: MerchantId, link_id: int, actor: Actor, now: Instant) -> None:
    """Takes an invitation to a team back; nothing happens if it was answered meanwhile."""
    offer = await mail_links.withdraw(tx, merchant_id, link_id, now)
    if offer is not None:
        user_id, role = offer
        act = Act(actor, "user.invitation_withdrawn", "user", str(user_id), merchant_id, before={"role": role})
        await audit_log.record(tx, act, now)


async def _record_invited(tx: Transaction, user: User, invitation: Invitation, actor: Actor, now: Instant) -> None:
    merchant_id = invitation.merchant.id if invitation.merchant else None
    act = Act(actor, "user.invited", "user", str(user.id), merchant_id, after={"role": invitation.role})
    await audit_log.record(tx, act, now)


async def _refuse_too_many(tx: Transaction, user: User, merchant: Merchant | None, now: Instant) -> None:
    """`user` is locked or new, so that nobody else invites the person at this moment. Raises TooManyInvitations."""
    by_all, by_merchant, of_merchant = await mail_links.invitations_since(
        tx, user.id, merchant.id if merchant else None, earlier(now, DAY)
    )
    if by_all >= TO_ADDRESS_A_DAY or by_merchant >= FROM_MERCHANT_TO_ADDRESS_A_DAY:
        raise TooManyInvitations(f"{user.email} was invited too often today: try again tomorrow.")
    if of_merchant >= FROM_MERCHANT_A_DAY:
        raise TooManyInvitations(f"This merchant has invited {FROM_MERCHANT_A_DAY} people today: try again tomorrow.")


async def _refuse_both_sides(tx: Transaction, user: User, merchant: Merchant | None) -> None:
    if user.status == "disabled":
        raise InvitationRefused(f"The account of {user.email} is disabled: `guichet user enable` comes first.")
    if merchant is not None and user.staff_role is not None:
        raise InvitationRefused(f"{user.email} belongs to the staff, who cannot be in a merchant's team.")
    active = user.status == "active"
    if merchant is not None and active and await users.membership(tx, user.id, merchant.id) is not None:
        raise InTeamAlready(f"{user.email} is in this team already: `guichet user role` changes the role.")
    if merchant is None and await users.merchants_of(tx, user.id):
        raise InvitationRefused(f"{user.email} is in a merchant's team: staff need an address of their own.")
