"""Two people of the staff who have been in it for long enough, and acts that one asks for and the other approves."""

from guichet.accounts import approvals, sessions, users
from guichet.accounts.rights import StaffMember, staff_member
from guichet.clock import DAY, earlier
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.accounts import User
from guichet.domain.approvals import ActRequest
from guichet.domain.ids import ApprovalId

AWA, ZOE = "awa@example.com", "zoe@example.com"


async def join_staff(ctx: AppContext, email: str) -> User:
    """The person, who has been an admin of the staff for eight days."""
    found = await users.by_email(ctx.db, email)
    if found is not None:
        return found
    since = earlier(ctx.clock.now(), 8 * DAY)
    async with ctx.db.transaction() as tx:
        created = require(await users.create(tx, email, email.partition("@")[0].title(), "fr", "admin", since))
        return require(await users.set_password(tx, created.id, "x", since, None))


async def approver(ctx: AppContext, email: str = ZOE) -> StaffMember:
    """The person with a session and a second factor that was just given."""
    user, now = await join_staff(ctx, email), ctx.clock.now()
    async with ctx.db.transaction() as tx:
        _, session = await sessions.begin(tx, user.id, now, address="127.0.0.1", agent="test", factor_at=now)
    return staff_member(session, user)


async def ask(ctx: AppContext, wanted: ActRequest) -> ApprovalId:
    """Awa asks for it."""
    await join_staff(ctx, ZOE)
    return (await approvals.ask(ctx, wanted, await join_staff(ctx, AWA), "console")).id


async def ask_and_approve(ctx: AppContext, wanted: ActRequest) -> None:
    """Awa asks for it, and Zoe approves. Raises ActRefused."""
    request = await ask(ctx, wanted)
    await approvals.approve(ctx, request, await approver(ctx), "seen")
