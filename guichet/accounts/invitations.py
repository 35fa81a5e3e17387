"""Invitations and new passwords: both are single-use links in mails (docs/security.md)."""

from typing import Final

from guichet.accounts import approvers, mail_links, people, sessions, users
from guichet.accounts.errors import AccountError, LinkUnusable, PasswordWeak
from guichet.accounts.passwords import weakness
from guichet.accounts.sign_in import Accounts, Browser, SignedIn, begin_session
from guichet.audit_log import entries as audit_log
from guichet.clock import DAY, Instant, earlier
from guichet.db.engine import Transaction, require
from guichet.domain.accounts import Language, LinkPurpose, TeamOffer, User, normal_email, secret_hash
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
    place = merchant.name if merchant else "Guichet"
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
    found = await mail_links.withdraw(tx, merchant_id, link_id, now)
    if found is not None:
        user_id, role = found
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


async def accept(accounts: Accounts, secret: str, name: str | None, password: str, browser: Browser) -> SignedIn:
    """Makes the account active with this password, and signs its owner in.

    Raises LinkUnusable, PasswordWeak, TooBusy.
    """
    return await _choose_password(accounts, secret, "invitation", password, browser, name)


async def join_team(accounts: Accounts, secret: str) -> None:
    """Whoever has the link of an invitation to an active account accepts it: the account is in one team more. It opens
    no session, and changes neither the password nor the name. Raises LinkUnusable."""
    ctx = accounts.ctx
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        user_id, offer = await mail_links.use(tx, secret, "invitation", now)
        user = await users.lock(tx, user_id)
        if user.status != "active" or offer is None:
            raise LinkUnusable
        await _take_offer(tx, user, offer, now)
        act = Act(Actor(user.email, "console"), "user.invitation_used", "user", str(user.id), offer.merchant_id)
        await audit_log.record(tx, act, now)


async def _take_offer(tx: Transaction, user: User, offer: TeamOffer, now: Instant) -> None:
    """Raises LinkUnusable for somebody who has joined the staff since the invitation."""
    if user.staff_role is not None:
        raise LinkUnusable
    if await users.membership(tx, user.id, offer.merchant_id) is None:
        await users.join(tx, user.id, offer.merchant_id, offer.role, now)


async def count_request(accounts: Accounts, email: str, browser: Browser) -> None:
    """Somebody asks for a link to a new password. Raises TooManyAttempts."""
    await accounts.attempt("address", browser.address)
    await accounts.attempt("mail", secret_hash(normal_email(email) or ""))


async def mail_new_password(accounts: Accounts, email: str) -> None:
    """Mails a link if the address has an account. It is done after the answer, so that neither the answer nor the time
    that it takes says whether there is one."""
    ctx, address = accounts.ctx, normal_email(email) or ""
    user = await users.by_email(ctx.db, address) if address else None
    if user is None or user.status != "active":
        return
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        secret = await mail_links.create(tx, user.id, "password", now)
        link = f"{ctx.settings.public_url}/console/password/{secret}"
        await accounts.outbox.add(tx, user, "password", {"name": user.name, "link": link}, now)


async def reset_password(accounts: Accounts, secret: str, password: str, browser: Browser) -> SignedIn:
    """A new password by the link of a mail. Every session ends; the second factor is still asked for. Raises
    LinkUnusable, PasswordWeak, TooBusy."""
    return await _choose_password(accounts, secret, "password", password, browser, None)


async def _choose_password(
    accounts: Accounts, secret: str, purpose: LinkPurpose, password: str, browser: Browser, name: str | None
) -> SignedIn:
    ctx = accounts.ctx
    user, _ = await mail_links.find(ctx.db, secret, purpose, ctx.clock.now())
    known = accounts.devices.known(user, browser.device)
    if found := weakness(password, user.email, user.name):
        raise PasswordWeak(found)
    hashed = await accounts.passwords.hash(password)
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        user_id, offer = await mail_links.use(tx, secret, purpose, now)
        if purpose == "invitation" and (await users.lock(tx, user_id)).status != "invited":
            # A team's invitation is no way to a new password of an account that exists.
            raise LinkUnusable
        changed = await users.set_password(tx, user_id, hashed, now, name)
        if changed is None:
            raise LinkUnusable
        if offer is not None:
            await _take_offer(tx, changed, offer, now)
        await sessions.end_all(tx, user_id)
        await _tell(accounts, tx, changed, purpose, offer, now)
    return await begin_session(accounts, changed, browser, "mail", known=known)


async def _tell(
    accounts: Accounts, tx: Transaction, user: User, purpose: LinkPurpose, offer: TeamOffer | None, now: Instant
) -> None:
    """The audit log, and for a new password the person: it may have been somebody else."""
    merchant_id = offer.merchant_id if offer else None
    act = Act(Actor(user.email, "console"), f"user.{purpose}_used", "user", str(user.id), merchant_id)
    await audit_log.record(tx, act, now)
    if purpose == "password":
        values = {"name": user.name, "date": str(now), "link": accounts.reset_address}
        await accounts.outbox.add(tx, user, "password_changed", values, now)
