"""Two people for an act that moves money or makes an approver: one asks for it, another one approves or refuses. Both
are told by mail.

The rules for people: docs/admin-guide.md, "Two people for acts that move money" and "Who may approve".

Both must have an account of the staff whose role allows the act. They must be two accounts; and whoever asked with a
command must not have run it as the operating-system user that has the approver's name. Who has had the role for less
than a day approves nothing, and no other approver in the first week: the others have that long to see an account that
one of them made for themselves. A new approver whom nobody could approve begins after three days in which nobody who
lately could approve has objected.
"""

from typing import Final

from guichet.accounts import access_acts, approval_mails, objections, users
from guichet.accounts.approvers import ASKED_AFTER, could_approve, is_named
from guichet.accounts.rights import StaffMember
from guichet.audit_log import approval_requests
from guichet.audit_log import entries as audit_log
from guichet.back_office import money_acts
from guichet.clock import DAY, Instant, earlier, later
from guichet.context import AppContext
from guichet.db.engine import Database, Reader, Transaction
from guichet.db.errors import StorageError
from guichet.domain.accounts import User
from guichet.domain.approvals import (
    ACCESS_ACTS,
    AFTER_REMOVAL,
    ASKING_RIGHTS,
    FIRST_WEEK,
    MONEY_ACTS,
    OBJECTIONS_LAST,
    RIGHT_FOR_APPROVERS,
    RIGHT_FOR_MONEY,
    RIGHTS,
    ActRequest,
    ApprovalRequest,
    ApprovedAct,
)
from guichet.domain.audit_log import Act, Actor, ActRefused, Approval, Facts
from guichet.domain.ids import ApprovalId, MerchantId
from guichet.domain.messages import Message
from guichet.domain.refusals import Refusal
from guichet.domain.roles import StaffRight, may_as_staff
from guichet.logs import log

#: Who approves what nobody objected to, in the audit log.
UNOPPOSED: Final = Actor("unopposed", "worker")
_STAFF_ACTS: Final[tuple[ApprovedAct, ...]] = ("staff.add", "staff.restore")


async def ask(ctx: AppContext, act_request: ActRequest, requester: User, os_user: str) -> ApprovalRequest:
    """A request that waits for another person. Raises ActRefused when the act cannot be done, when the person may not
    ask for it, or when nobody else could approve it; a colleague then waits for objections instead."""
    right = ASKING_RIGHTS[act_request.act]
    if not _may(requester, right):
        raise ActRefused(Refusal.NOT_ALLOWED(email=requester.email, right=right))
    act_request = await money_acts.with_present_state(ctx, act_request)
    merchant_id = await _check(ctx, act_request)
    now, actor = ctx.clock.now(), Actor(requester.email, os_user)
    async with ctx.db.transaction() as tx:
        await _expire(ctx, tx, now)  # One of them may hold the place of this request.
        others = await _others(tx, requester, act_request)
        since = earlier(now, await _right_needed(tx, act_request.act, now))
        able = [user for user in others if _approver_since(user) <= since and not is_named(user, actor)]
        objectable = not able and act_request.act in _STAFF_ACTS
        if not (others or objectable):
            raise ActRefused(Refusal.NOBODY_ELSE(email=requester.email))
        done_at = later(now, OBJECTIONS_LAST) if objectable else None
        request = await approval_requests.add(tx, act_request, merchant_id, requester.id, actor, now, done_at)
        facts: Facts = {"request": request.id, "act": act_request.act, **act_request.arguments}
        subject, reason = act_request.subject, act_request.reason
        act = Act(actor, "approval.requested", "approval", subject, merchant_id, reason, after=facts)
        await audit_log.record(tx, act, now)
        for approver in able:
            await approval_mails.add(ctx, tx, approver, "approval_requested", request, now)
        if act_request.act == "team.give_role":
            await access_acts.tell_owners(ctx, tx, act_request, actor, now)
        if objectable:
            for approver in await could_approve(tx, earlier(now, ASKED_AFTER)):
                link = objections.link(ctx.settings, request, approver)
                await approval_mails.add(ctx, tx, approver, "approval_objectable", request, now, of=done_at, link=link)
    return request


async def do_alone(ctx: AppContext, act_request: ActRequest, person: User, os_user: str) -> None:
    """Does at once what needs no second person (`money_acts.needs_two_people`). Raises ActRefused."""
    if money_acts.needs_two_people(ctx.settings, act_request):
        raise ActRefused(Refusal.NOBODY_ELSE(email=person.email))
    if not _may(person, RIGHTS[act_request.act]):
        raise ActRefused(Refusal.NOT_ALLOWED(email=person.email, right=RIGHTS[act_request.act]))
    await _check(ctx, act_request)
    await _perform(ctx, act_request, Actor(person.email, os_user))


async def approve(ctx: AppContext, request_id: ApprovalId, approver: StaffMember, reason: str) -> None:
    """Does what was asked for, in the transaction of the approval. Raises ActRefused (also when the act is not possible
    any more, and then the request still waits), Forbidden and SecondFactorNeeded."""
    now = ctx.clock.now()
    request = await _waiting(ctx.db, request_id, now)
    right = RIGHTS[request.act]
    approver.require(right, now)
    if is_same_person(request, approver.user):
        raise ActRefused(Refusal.OWN_REQUEST(email=approver.user.email))
    if now < await may_approve_from(ctx.db, request.act, approver.user, now):
        raise ActRefused(_too_new(request.act, approver.user))
    await _perform_for_requester(ctx, request, Approval(request.id, approver.actor, reason), now)
    try:
        async with ctx.db.transaction() as tx:
            await approval_mails.tell_requester(ctx, tx, request, "approval_approved", now, by=approver.user)
    except StorageError as error:  # It is done all the same, and nobody must do it again.
        log.error("approval.mail_lost", request=request.id, error=repr(error))


async def _perform_for_requester(ctx: AppContext, request: ApprovalRequest, approval: Approval, now: Instant) -> None:
    """Does the act. Raises ActRefused, also when the person who asked may not ask for it any more."""
    requester = await users.get(ctx.db, request.user_id)
    if requester is None or not _may(requester, ASKING_RIGHTS[request.act]):
        raise ActRefused(Refusal.NOT_ALLOWED_ANY_MORE(email=request.requested_by))
    removed_at = requester.removed_approver_at
    if request.act in MONEY_ACTS and removed_at is not None and now < later(removed_at, AFTER_REMOVAL):
        raise ActRefused(Refusal.REMOVED_APPROVER(email=request.requested_by))
    await _perform(ctx, request.act_request, Actor(request.requested_by, request.os_user, approval))
    after = await approval_requests.get(ctx.db, request.id)
    if after is not None and after.status == "pending":
        raise ActRefused(Refusal.ENDED_ALIKE(subject=request.subject))


async def refuse(ctx: AppContext, request_id: ApprovalId, by: StaffMember, reason: str) -> None:
    """Also for the person who asked, who then takes it back."""
    now = ctx.clock.now()
    request = await _waiting(ctx.db, request_id, now)
    by.require(RIGHTS[request.act], now)
    async with ctx.db.transaction() as tx:
        await objections.end_refused(ctx, tx, request, by.user, "approval.refused", reason, now)


async def end_overdue(ctx: AppContext) -> None:
    """Does what nobody objected to in time, ends the requests that nobody decided, and mails those who asked. Two
    statements while there are none."""
    now = ctx.clock.now()
    for request in await approval_requests.unopposed(ctx.db, now):
        try:
            await _perform_for_requester(ctx, request, Approval(request.id, UNOPPOSED, ""), now)
        except ActRefused as refusal:
            log.warning("approval.not_possible", request=request.id, code=refusal.message.code)
            async with ctx.db.transaction() as tx:
                if await approval_requests.close(tx, request.id):
                    await _tell_expired(ctx, tx, request, now)
    async with ctx.db.transaction() as tx:
        await _expire(ctx, tx, now)


async def _expire(ctx: AppContext, tx: Transaction, now: Instant) -> None:
    for request in await approval_requests.expire(tx, now):
        await _tell_expired(ctx, tx, request, now)


async def _tell_expired(ctx: AppContext, tx: Transaction, request: ApprovalRequest, now: Instant) -> None:
    """In the transaction that ends the request, so that it is told once."""
    await approval_mails.tell_requester(ctx, tx, request, "approval_expired", now, of=request.expires_at)


async def _check(ctx: AppContext, act_request: ActRequest) -> MerchantId:
    """The merchant that the act is about. Raises ActRefused when it could not be done now."""
    if act_request.act in ACCESS_ACTS:
        return await access_acts.check(ctx, act_request)
    return await money_acts.check(ctx, act_request)


async def _perform(ctx: AppContext, act_request: ActRequest, actor: Actor) -> None:
    """Raises ActRefused."""
    if act_request.act in ACCESS_ACTS:
        await access_acts.perform(ctx, act_request, actor)
    else:
        await money_acts.perform(ctx, act_request, actor)


def is_same_person(request: ApprovalRequest, user: User) -> bool:
    """Whether the request is the user's own: of the same account or about it, or by a command that was run as an
    operating-system user of that name, whatever account the command named."""
    own = request.user_id == user.id or request.subject == access_acts.staff_subject(user)
    return own or is_named(user, Actor(request.requested_by, request.os_user))


async def may_approve_from(db: Reader, act: ApprovedAct, user: User, now: Instant) -> Instant:
    """When the user has had their role for long enough to approve such an act; enabling restarts that time."""
    return later(_approver_since(user), await _right_needed(db, act, now))


def _approver_since(user: User) -> Instant:
    return user.staff_since if user.staff_since is not None else user.updated_at


async def _right_needed(db: Reader, act: ApprovedAct, now: Instant) -> int:
    if act not in _STAFF_ACTS:
        return RIGHT_FOR_MONEY
    began_at = await audit_log.began_at(db)
    return RIGHT_FOR_MONEY if began_at is None or now < later(began_at, FIRST_WEEK) else RIGHT_FOR_APPROVERS


def _too_new(act: ApprovedAct, user: User) -> Message:
    if act in _STAFF_ACTS:
        return Refusal.NOT_LONG_ENOUGH(email=user.email, days=RIGHT_FOR_APPROVERS // DAY)
    return Refusal.TOO_NEW(email=user.email)


async def _waiting(db: Database, request_id: ApprovalId, now: Instant) -> ApprovalRequest:
    request = await approval_requests.get(db, request_id)
    if request is None:
        raise ActRefused(Refusal.NO_REQUEST(request=request_id))
    if (status := request.status_at(now)) != "pending":
        raise ActRefused(Refusal.DECIDED(request=request_id, decision=status))
    return request


async def _others(db: Reader, requester: User, act_request: ActRequest) -> list[User]:
    """Whose role allows the approval, without those about whom it is."""
    able = [user for user in await users.staff_in(db) if _may(user, RIGHTS[act_request.act])]
    return [user for user in able if user.id != requester.id and act_request.subject != access_acts.staff_subject(user)]


def _may(user: User, right: StaffRight) -> bool:
    return user.status == "active" and user.staff_role is not None and may_as_staff(user.staff_role, right)
