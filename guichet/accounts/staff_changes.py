"""What every admin hears of: somebody joins the staff, gets another role, or is enabled again. One admin alone could
otherwise make a second account and approve with it what the first one asked for (`accounts/approvals.py`)."""

from guichet.accounts import users
from guichet.clock import Instant
from guichet.db.engine import Transaction
from guichet.domain.accounts import User
from guichet.domain.audit_log import Actor
from guichet.domain.roles import StaffRole
from guichet.mail.outbox import Outbox


async def tell_admins(tx: Transaction, outbox: Outbox, user: User, role: StaffRole, actor: Actor, now: Instant) -> None:
    """Mails every active admin but the person whose account it is. Also the one who did it: it may have been somebody
    else at their browser, and a command is run in any name."""
    for admin in await users.staff_in(tx):
        if admin.id != user.id and admin.staff_role == "admin" and admin.status == "active":
            values = {"name": admin.name, "person": user.email, "role": role, "inviter": actor.name, "date": str(now)}
            await outbox.add(tx, admin, "staff_changed", values, now)
