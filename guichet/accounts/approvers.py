"""Who can approve what others of the staff ask for, and that nobody becomes or ceases to be one of them unseen.

The rules for people: docs/admin-guide.md, "Who may approve".

Whoever could approve in the last days hears of each change, also those whose account was disabled: one admin alone
could otherwise remove the others and make a second account of their own.
"""

from typing import Final, Literal

from guichet.accounts import users
from guichet.clock import DAY, Instant, earlier
from guichet.db.engine import Reader, Transaction
from guichet.domain.accounts import User, UserId
from guichet.domain.audit_log import CONSOLE, Actor, os_user_names
from guichet.domain.roles import StaffRole, may_approve
from guichet.mail.outbox import Outbox

#: Who could approve within this time is told of every change.
TOLD_AFTER: Final = 7 * DAY
#: Who could approve within this time is asked whether they object to a new approver whom nobody else can approve. It is
#: longer: waiting for a week after a removal must not be a way to be alone.
ASKED_AFTER: Final = 30 * DAY


async def could_approve(db: Reader, since: Instant) -> list[User]:
    """The active accounts whose role approves, and those that lost it after `since`, whatever their state is now."""
    now = [user for user in await users.staff_in(db) if user.status == "active" and may_approve(user.staff_role)]
    lately = await users.approvers_until(db, since)
    return list({user.id: user for user in (*now, *lately)}.values())


async def tell_added(tx: Transaction, outbox: Outbox, user: User, role: StaffRole, actor: Actor, now: Instant) -> None:
    """Somebody has joined the staff, got another role or was enabled again. Told to every admin, and for a role that
    approves to whoever could approve lately; also to the one who did it: it may have been somebody else at their
    browser, and a command is run in any name."""
    recipients = await could_approve(tx, earlier(now, TOLD_AFTER))
    if not may_approve(role):
        recipients = [person for person in recipients if person.staff_role == "admin" and person.status == "active"]
    others = [person for person in recipients if person.id != user.id]
    await _tell(tx, outbox, others, "staff_changed", user, role, actor, now)


async def removed(tx: Transaction, outbox: Outbox, before: User, actor: Actor, now: Instant, *, ends: bool) -> None:
    """Somebody who could approve was disabled, taken out of the staff, or got a role with fewer rights; `before`: their
    account as it was. Everybody who could approve is told, that person included. `ends`: they approve nothing more."""
    assert before.staff_role is not None
    recipients = await could_approve(tx, earlier(now, TOLD_AFTER))
    if before.status == "active":
        await users.note_removed_approver(tx, before.id, await _accounts_of(tx, actor), now, ends=ends)
        recipients = list({person.id: person for person in (*recipients, before)}.values())
    await _tell(tx, outbox, recipients, "approver_removed", before, before.staff_role, actor, now)


async def _accounts_of(tx: Transaction, actor: Actor) -> list[UserId]:
    """The accounts of the staff that the actor is or says to be, in the console or by a command."""
    return [user.id for user in await users.staff_in(tx) if actor.name == user.email or is_named(user, actor)]


def is_named(user: User, actor: Actor) -> bool:
    """Whether a command was run in the name of this person, whatever account it named."""
    if actor.os_user == CONSOLE:
        return False
    return not names_of(user).isdisjoint({actor.name.casefold(), *os_user_names(actor.os_user)})


def names_of(user: User) -> set[str]:
    """By what a person can be called, in small letters."""
    return {name.casefold() for name in (user.email, user.email.partition("@")[0], user.name)}


def actor_text(actor: Actor) -> str:
    """As mails name who did something: of a command with the operating-system user, who cannot be chosen."""
    return actor.name if actor.os_user in (CONSOLE, actor.name) else f"{actor.name} ({actor.os_user})"


async def _tell(
    tx: Transaction,
    outbox: Outbox,
    recipients: list[User],
    kind: Literal["staff_changed", "approver_removed"],
    about: User,
    role: StaffRole,
    actor: Actor,
    now: Instant,
) -> None:
    for recipient in recipients:
        values = {"name": recipient.name, "person": about.email, "role": role, "inviter": actor_text(actor)}
        await outbox.add(tx, recipient, kind, {**values, "date": str(now)}, now)
