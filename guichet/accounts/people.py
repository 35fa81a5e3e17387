"""What is done to people's accounts: roles, removal, disabling, a lost second factor. Each act is kept in the audit
log, and ends the person's sessions, except one that is about a single merchant: rights are read at each request, and an
owner must not sign somebody out who is at work for another merchant.

A colleague who approves, or is to, is added by two people in the console (`accounts/access_acts.py`) and removed by
one, and all who can approve hear of it (`accounts/approvers.py`). Here it is done; who may do it is decided there.
"""

from typing import Final

from sqlalchemy import bindparam, select

from guichet.accounts import approvers, factors, sessions, users
from guichet.accounts.errors import LastOwner, OnBothSides
from guichet.audit_log import entries as audit_log
from guichet.clock import Instant
from guichet.db.engine import Reader, Transaction, require
from guichet.db.sql_functions import lock_until_commit
from guichet.domain.accounts import User, UserId, UserStatus
from guichet.domain.audit_log import Act, Actor, Facts
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet.domain.roles import MerchantRole, StaffRole, may_approve, unmakes_approver
from guichet.mail.outbox import Outbox
from guichet.merchants import repository as merchants

_LOCK_STAFF: Final = select(lock_until_commit(bindparam("locked")))


async def lock(tx: Transaction, user_id: UserId) -> User:
    """The person, for an act of the staff about them. Such acts wait for one another: each may change the row of the
    colleague who does it as well, and two who remove each other would otherwise wait for ever."""
    await lock_staff(tx)
    return await users.lock(tx, user_id)


async def lock_staff(tx: Transaction) -> None:
    """Before a row of the staff is locked."""
    await tx.one(_LOCK_STAFF, locked="the staff")


async def set_merchant_role(
    tx: Transaction, user: User, merchant_id: MerchantId, role: MerchantRole | None, actor: Actor, now: Instant
) -> None:
    """Changes the role in a merchant's team; None takes the person out of it. Raises LastOwner: a team without an owner
    who can act could not be changed by anybody. `user`: locked."""
    # Against two owners who remove each other at the same moment: each would count the other.
    await merchants.lock(tx, merchant_id)
    before = await users.membership(tx, user.id, merchant_id)
    if before is not None and before.role == "owner" and role != "owner":
        others = await users.owners(tx, merchant_id) - (user.status != "disabled")
        if others < 1:
            raise LastOwner
    if role is None:
        await users.leave(tx, user.id, merchant_id)
    else:
        await users.join(tx, user.id, merchant_id, role, now)
    old: Facts = {"role": before.role if before else None}
    await _record(tx, user, "user.role_changed", actor, now, old, {"role": role}, merchant_id)


async def tell_owners(
    tx: Transaction, outbox: Outbox, merchant: Merchant, email: str, role: MerchantRole, actor: Actor, now: Instant
) -> None:
    """The staff puts somebody into the team of a merchant that has owners: these hear of it, also if their account is
    disabled."""
    for owner in await owners_of(tx, merchant.id):
        values = {"name": owner.name, "person": email, "role": role, "place": merchant.name}
        more = {"inviter": approvers.actor_text(actor), "date": str(now)}
        await outbox.add(tx, owner, "team_changed", values | more, now)


async def owners_of(db: Reader, merchant_id: MerchantId) -> list[User]:
    """Whoever is an owner, disabled or not."""
    return [user for role, user in await users.team(db, merchant_id) if role == "owner"]


async def set_staff_role(
    tx: Transaction, outbox: Outbox, user: User, role: StaffRole | None, actor: Actor, now: Instant
) -> None:
    """None takes the person out of the staff. Whoever can approve hears of it. Raises LastOwner for the last admin, and
    OnBothSides for somebody of a merchant's team. `user`: as `lock` gives it."""
    if role == user.staff_role:
        return
    if role is not None and await users.merchants_of(tx, user.id):
        raise OnBothSides
    if role != "admin":
        await _refuse_last_admin(tx, user)
    removed = unmakes_approver(user.staff_role, role)
    kept = user.staff_since if removed and may_approve(role) else None
    await users.set_staff_role(tx, user.id, role, now, since=kept)
    if removed:
        await approvers.removed(tx, outbox, user, actor, now, ends=not may_approve(role))
    elif role is not None:
        await approvers.tell_added(tx, outbox, user, role, actor, now)
    await sessions.end_all(tx, user.id)
    await _record(tx, user, "user.role_changed", actor, now, {"role": user.staff_role}, {"role": role})


async def disable(tx: Transaction, outbox: Outbox, user: User, actor: Actor, now: Instant) -> User:
    """At once and by one person: stopping waits for nobody. Raises LastOwner for the last admin."""
    if user.status == "disabled":
        return user
    await _refuse_last_admin(tx, user)
    await sessions.end_all(tx, user.id)
    if may_approve(user.staff_role):
        await approvers.removed(tx, outbox, user, actor, now, ends=True)
    return await _set_status(tx, user, "disabled", actor, now)


async def enable(tx: Transaction, outbox: Outbox, user: User, actor: Actor, now: Instant) -> User:
    """A disabled account is `active` again if it had a password, else `invited`."""
    if user.status != "disabled":
        return user
    if user.staff_role is not None:
        await approvers.tell_added(tx, outbox, user, user.staff_role, actor, now)
    return await _set_status(tx, user, "active" if user.password_hash is not None else "invited", actor, now)


async def _set_status(tx: Transaction, user: User, status: UserStatus, actor: Actor, now: Instant) -> User:
    changed = require(await users.set_status(tx, user.id, status, now))
    act = "user.disabled" if status == "disabled" else "user.enabled"
    await _record(tx, user, act, actor, now, {"status": user.status}, {"status": status})
    return changed


async def reset_factor(
    tx: Transaction, outbox: Outbox, user: User, actor: Actor, reset_address: str, now: Instant
) -> None:
    """Removes every second factor of a person who lost theirs. They set up a new one after their password; a mail tells
    them, since somebody else may have asked."""
    await factors.remove_all(tx, user.id, now)
    await sessions.end_all(tx, user.id)
    await _record(tx, user, "user.factor_reset", actor, now)
    values = {"name": user.name, "date": str(now), "link": reset_address}
    await outbox.add(tx, user, "factor_changed", values, now)


async def _refuse_last_admin(tx: Transaction, user: User) -> None:
    """Raises LastOwner if nobody else could change the staff."""
    if user.staff_role != "admin":
        return
    # Against two admins who take each other's rights at the same moment.
    await lock_staff(tx)
    admins = [person for person in await users.staff_in(tx) if person.staff_role == "admin" and person.id != user.id]
    if not any(admin.status == "active" for admin in admins):
        raise LastOwner


async def _record(
    tx: Transaction,
    user: User,
    action: str,
    actor: Actor,
    now: Instant,
    before: Facts | None = None,
    after: Facts | None = None,
    merchant_id: MerchantId | None = None,
) -> None:
    act = Act(actor, action, "user", str(user.id), merchant_id, before=before or {}, after=after or {})
    await audit_log.record(tx, act, now)
