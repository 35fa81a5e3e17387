"""Two people for an act that moves money: one asks for it, another one approves or refuses. Both are told by mail.

The rules for people: docs/admin-guide.md, "Two people for acts that move money".

Both must have an account of the staff whose role allows the act. They must be two accounts; and whoever asked with a
command must not have run it as the operating-system user that has the approver's name. Who has had the role for less
than a day approves nothing: the other admins have that long to see an account that one of them made for themselves.
"""

from collections.abc import Iterable
from typing import Final, Literal

from guichet.accounts import users
from guichet.accounts.rights import StaffMember
from guichet.audit_log import approval_requests
from guichet.audit_log import entries as audit_log
from guichet.back_office import money_acts
from guichet.clock import DAY, Instant, later
from guichet.context import AppContext
from guichet.db.engine import Database, Reader, Transaction
from guichet.db.errors import StorageError
from guichet.domain.accounts import User
from guichet.domain.approvals import RIGHTS, ApprovalRequest, WantedAct
from guichet.domain.audit_log import Act, Actor, ActRefused, Approval, Facts
from guichet.domain.ids import ApprovalId
from guichet.domain.refusals import Refusal
from guichet.domain.roles import StaffRight, may_as_staff
from guichet.logs import log
from guichet.mail.outbox import Outbox
from guichet.merchants.vault import Vault
from guichet.settings import Settings


async def tell_approvers(
    vault: Vault, settings: Settings, tx: Transaction, request: ApprovalRequest, approvers: Iterable[User], now: Instant
) -> None:
    """What is asked for stands in the back office: mails name no evidence, which can name customers."""
    for each in approvers:
        await _add(vault, settings, tx, each, "approval_requested", request, request.requested_by, now)


async def tell_requester(
    vault: Vault,
    settings: Settings,
    tx: Transaction,
    request: ApprovalRequest,
    requester: User,
    result: Literal["approval_approved", "approval_refused"],
    by: User,
    now: Instant,
) -> None:
    """Nothing to a person who takes their own request back."""
    if requester.id != by.id and requester.status == "active":
        await _add(vault, settings, tx, requester, result, request, by.email, now)


async def tell_expired(
    vault: Vault, settings: Settings, tx: Transaction, request: ApprovalRequest, requester: User, now: Instant
) -> None:
    """In the transaction that ends the request, so that it is told once."""
    if requester.status == "active":
        await _add(
            vault,
            settings,
            tx,
            requester,
            "approval_expired",
            request,
            request.requested_by,
            now,
            of=request.expires_at,
        )


async def _add(
    vault: Vault,
    settings: Settings,
    tx: Transaction,
    to: User,
    kind: Literal["approval_requested", "approval_approved", "approval_refused", "approval_expired"],
    request: ApprovalRequest,
    person: str,
    now: Instant,
    of: Instant | None = None,
) -> None:
    """`of`: the time that the mail speaks of, if it is another than now."""
    values = {
        "name": to.name,
        "person": person,
        "act": request.act,
        "subject": request.subject,
        "date": str(now if of is None else of),
        "link": f"{settings.public_url}/admin/approvals/{request.id}",
    }
    await Outbox(vault).add(tx, to, kind, values, now)


#: For how long somebody must have had their role in the staff before they approve.
_IN_STAFF: Final = DAY
#: The `os_user` of what is asked for in the console.
CONSOLE: Final = "console"


async def ask(ctx: AppContext, wanted: WantedAct, requester: User, os_user: str) -> ApprovalRequest:
    """A request that waits for another person. Raises ActRefused when the act cannot be done, when the person may not
    ask for it, or when nobody else could approve it."""
    right = RIGHTS[wanted.act]
    if not _may(requester, right):
        raise ActRefused(Refusal.NOT_ALLOWED(email=requester.email, right=right))
    wanted = await money_acts.with_present_state(ctx, wanted)
    merchant_id = await money_acts.check(ctx, wanted)
    now, actor = ctx.clock.now(), Actor(requester.email, os_user)
    async with ctx.db.transaction() as tx:
        await _expire(ctx.vault, ctx.settings, tx, now)  # One of them may hold the place of this request.
        others = await _others(tx, requester, right)
        request = await approval_requests.add(tx, wanted, merchant_id, requester.id, actor, now)
        facts: Facts = {"request": request.id, "act": wanted.act, **wanted.arguments}
        act = Act(actor, "approval.requested", "approval", wanted.subject, merchant_id, wanted.reason, after=facts)
        await audit_log.record(tx, act, now)
        able = [each for each in others if not (is_too_new(each, now) or is_same_person(request, each))]
        await tell_approvers(ctx.vault, ctx.settings, tx, request, able, now)
    return request


async def approve(ctx: AppContext, request_id: ApprovalId, approver: StaffMember, reason: str) -> None:
    """Does what was asked for, in the transaction of the approval. Raises ActRefused (also when the act is not possible
    any more, and then the request still waits), Forbidden and SecondFactorNeeded."""
    now = ctx.clock.now()
    request = await _waiting(ctx.db, request_id, now)
    right = RIGHTS[request.act]
    approver.require(right, now)
    if is_same_person(request, approver.user):
        raise ActRefused(Refusal.OWN_REQUEST(email=approver.user.email))
    if is_too_new(approver.user, now):
        raise ActRefused(Refusal.TOO_NEW(email=approver.user.email))
    requester = await users.get(ctx.db, request.user_id)
    if requester is None or not _may(requester, right):
        raise ActRefused(Refusal.NOT_ALLOWED_ANY_MORE(email=request.requested_by))
    approval = Approval(request.id, approver.actor, reason)
    await money_acts.perform(ctx, request.wanted, Actor(request.requested_by, request.os_user, approval))
    after = await approval_requests.get(ctx.db, request.id)
    if after is not None and after.status == "pending":
        raise ActRefused(Refusal.ENDED_ALIKE(subject=request.subject))
    try:
        async with ctx.db.transaction() as tx:
            await tell_requester(
                ctx.vault, ctx.settings, tx, request, requester, "approval_approved", approver.user, now
            )
    except StorageError as error:  # It is done all the same, and nobody must do it again.
        log.error("approval.mail_lost", request=request.id, error=repr(error))


async def refuse(ctx: AppContext, request_id: ApprovalId, by: StaffMember, reason: str) -> None:
    """Also for the person who asked, who then takes it back."""
    now = ctx.clock.now()
    request = await _waiting(ctx.db, request_id, now)
    by.require(RIGHTS[request.act], now)
    async with ctx.db.transaction() as tx:
        await approval_requests.decide(tx, request.id, "refused", by.actor, reason, now)
        facts: Facts = {"request": request.id, "act": request.act}
        act = Act(by.actor, "approval.refused", "approval", request.subject, request.merchant_id, reason, after=facts)
        await audit_log.record(tx, act, now)
        if (requester := await users.get(tx, request.user_id)) is not None:
            await tell_requester(ctx.vault, ctx.settings, tx, request, requester, "approval_refused", by.user, now)


async def expire_overdue(ctx: AppContext) -> None:
    """Ends the requests that nobody decided in time, and mails those who asked. One statement while there are none."""
    async with ctx.db.transaction() as tx:
        await _expire(ctx.vault, ctx.settings, tx, ctx.clock.now())


async def _expire(vault: Vault, settings: Settings, tx: Transaction, now: Instant) -> None:
    for request in await approval_requests.expire(tx, now):
        if (requester := await users.get(tx, request.user_id)) is not None:
            await tell_expired(vault, settings, tx, request, requester, now)


def is_same_person(request: ApprovalRequest, user: User) -> bool:
    """Whether the request is the user's own: of the same account, or by a command that was run as an operating-system
    user of that name, whatever account the command named."""
    names = {each.casefold() for each in (user.email, user.email.partition("@")[0], user.name)}
    return request.user_id == user.id or (request.os_user != CONSOLE and request.os_user.casefold() in names)


def is_too_new(user: User, now: Instant) -> bool:
    """Whether the user has had their role for less than a day, or was enabled again with it since."""
    return now < may_approve_from(user)


def may_approve_from(user: User) -> Instant:
    return later(user.staff_since if user.staff_since is not None else user.updated_at, _IN_STAFF)


async def _waiting(db: Database, request_id: ApprovalId, now: Instant) -> ApprovalRequest:
    request = await approval_requests.get(db, request_id)
    if request is None:
        raise ActRefused(Refusal.NO_REQUEST(request=request_id))
    if (status := request.status_at(now)) != "pending":
        raise ActRefused(Refusal.DECIDED(request=request_id, decision=status))
    return request


async def _others(db: Reader, requester: User, right: StaffRight) -> list[User]:
    """Whose role allows the approval. Raises ActRefused when nobody but the requester is left."""
    others = [each for each in await users.staff_in(db) if each.id != requester.id and _may(each, right)]
    if not others:
        raise ActRefused(Refusal.NOBODY_ELSE(email=requester.email))
    return others


def _may(user: User, right: StaffRight) -> bool:
    return user.status == "active" and user.staff_role is not None and may_as_staff(user.staff_role, right)
