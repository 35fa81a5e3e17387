"""What is done to people's accounts: roles, removal, disabling, a lost second factor. Each act is kept in the audit
log, and ends the person's sessions, except one that is about a single merchant: rights are read at each request, and an
owner must not sign somebody out who is at work for another merchant.

What every admin hears of: somebody joins the staff, gets another role, or is enabled again. One admin alone could
otherwise make a second account and approve with it what the first one asked for (`accounts/approvals.py`).
"""

from typing import Final

from sqlalchemy import bindparam, select

from guichet.accounts import factors, sessions, users
from guichet.accounts.errors import LastOwner
from guichet.audit_log import entries as audit_log
from guichet.clock import Instant
from guichet.db.engine import Transaction, require
from guichet.db.sql_functions import lock_until_commit
from guichet.domain.accounts import User, UserStatus
from guichet.domain.audit_log import Act, Actor, Facts
from guichet.domain.ids import MerchantId
from guichet.domain.roles import MerchantRole, StaffRole
from guichet.mail.outbox import Outbox


async def tell_admins(tx: Transaction, outbox: Outbox, user: User, role: StaffRole, actor: Actor, now: Instant) -> None:
    """Mails every active admin but the person whose account it is. Also the one who did it: it may have been somebody
    else at their browser, and a command is run in any name."""
    for admin in await users.staff_in(tx):
        if admin.id != user.id and admin.staff_role == "admin" and admin.status == "active":
            values = {"name": admin.name, "person": user.email, "role": role, "inviter": actor.name, "date": str(now)}
            await outbox.add(tx, admin, "staff_changed", values, now)


_LOCK_ADMINS: Final = select(lock_until_commit(bindparam("locked")))


async def set_merchant_role(
    tx: Transaction, user: User, merchant_id: MerchantId, role: MerchantRole | None, actor: Actor, now: Instant
) -> None:
    """Changes the role in a merchant's team; None takes the person out of it. Raises LastOwner: a team without an owner
    could not be changed by anybody."""
    before = await users.membership(tx, user.id, merchant_id)
    if before is not None and before.role == "owner" and role != "owner" and await users.owners(tx, merchant_id) <= 1:
        raise LastOwner
    if role is None:
        await users.leave(tx, user.id, merchant_id)
    else:
        await users.join(tx, user.id, merchant_id, role, now)
    old: Facts = {"role": before.role if before else None}
    await _record(tx, user, "user.role_changed", actor, now, old, {"role": role}, merchant_id)


async def set_staff_role(
    tx: Transaction, outbox: Outbox, user: User, role: StaffRole | None, actor: Actor, now: Instant
) -> None:
    """None takes the person out of the staff. Another role is told to all admins. Raises LastOwner for the last
    admin."""
    if role == user.staff_role:
        return
    if role != "admin":
        await _refuse_last_admin(tx, user)
    await users.set_staff_role(tx, user.id, role, now)
    if role is not None:
        await tell_admins(tx, outbox, user, role, actor, now)
    await sessions.end_all(tx, user.id)
    await _record(tx, user, "user.role_changed", actor, now, {"role": user.staff_role}, {"role": role})


async def set_status(tx: Transaction, user: User, status: UserStatus, actor: Actor, now: Instant) -> User:
    """Disables an account or enables it again (`enable`). Raises LastOwner for the last admin."""
    if status == "disabled":
        await _refuse_last_admin(tx, user)
    changed = require(await users.set_status(tx, user.id, status, now))
    if status == "disabled":
        await sessions.end_all(tx, user.id)
    act = "user.disabled" if status == "disabled" else "user.enabled"
    await _record(tx, user, act, actor, now, {"status": user.status}, {"status": status})
    return changed


async def enable(tx: Transaction, outbox: Outbox, user: User, actor: Actor, now: Instant) -> User:
    """A disabled account is `active` again if it had a password, else `invited`. Of the staff's all admins hear."""
    if user.status != "disabled":
        return user
    if user.staff_role is not None:
        await tell_admins(tx, outbox, user, user.staff_role, actor, now)
    status: UserStatus = "active" if user.password_hash is not None else "invited"
    return await set_status(tx, user, status, actor, now)


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
    await tx.one(_LOCK_ADMINS, locked="the last admin")
    others = [each for each in await users.staff_in(tx) if each.staff_role == "admin" and each.id != user.id]
    if not any(each.status == "active" for each in others):
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
