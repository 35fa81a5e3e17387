"""Requests for acts that a second person approves: SQL and row mapping.

A request is used up by the audit log's entry of its act, in the transaction of the act (`entries.py`), so that what was
approved is done once.
"""

from typing import Final

import msgspec
from sqlalchemy import bindparam, select, update

from guichet.clock import Instant, later
from guichet.db.engine import Database, Reader, Transaction
from guichet.db.sql_functions import upsert
from guichet.db.tables import approval_requests
from guichet.domain.accounts import UserId
from guichet.domain.approvals import APPROVAL_LASTS, ActRequest, ApprovalRequest, ApprovalStatus
from guichet.domain.audit_log import Actor, ActRefused, Approval
from guichet.domain.ids import ApprovalId, MerchantId
from guichet.domain.refusals import Refusal

#: Requests that one list shows.
_MOST: Final = 200

_rows: Final = approval_requests.c
_PENDING: Final = _rows.status == "pending"
_DECISION: Final = ("id", "decided_by", "decided_at", "decision_reason")
_INSERT: Final = (
    upsert(approval_requests)
    .values({column.name: bindparam(column.name) for column in _rows if column.name not in _DECISION})
    .on_conflict_do_nothing()
    .returning(*_rows)
)
_OVERDUE: Final = (_PENDING, _rows.expires_at <= bindparam("now"))
#: The index of what is pending is small, whatever became of the others.
_EXPIRE: Final = (
    update(approval_requests)
    .where(_rows.id.in_(select(_rows.id).where(*_OVERDUE).limit(bindparam("most"))), *_OVERDUE)
    .values(status="expired")
    .returning(*_rows)
)
_UNOPPOSED: Final = (
    select(approval_requests)
    .where(_PENDING, _rows.effective_at <= bindparam("now"), _rows.expires_at > bindparam("now"))
    .order_by(_rows.id)
    .limit(_MOST)
)
_OBJECTABLE_OF: Final = (
    select(approval_requests)
    .where(
        _PENDING,
        _rows.effective_at.is_not(None),
        _rows.expires_at > bindparam("now"),
        _rows.user_id == bindparam("requester"),
    )
    .order_by(_rows.id)
    .limit(_MOST)
)
_CLOSE: Final = (
    update(approval_requests)
    .where(_rows.id == bindparam("request"), _PENDING)
    .values(status="expired")
    .returning(*_rows)
)
_DECIDE: Final = (
    update(approval_requests)
    .where(_rows.id == bindparam("request"), _PENDING, _rows.expires_at > bindparam("now"))
    .values(
        status=bindparam("new_status"),
        decided_by=bindparam("by"),
        decided_at=bindparam("now"),
        decision_reason=bindparam("why"),
    )
    .returning(*_rows)
)
_GET: Final = select(approval_requests).where(_rows.id == bindparam("request"))
_WAITING: Final = select(approval_requests).where(_PENDING, _rows.expires_at > bindparam("now")).limit(_MOST)
_LATEST: Final = select(approval_requests).order_by(_rows.id.desc()).limit(bindparam("most"))
_ABOUT: Final = select(approval_requests).where(
    _rows.subject == bindparam("about"), _PENDING, _rows.expires_at > bindparam("now")
)


async def add(
    tx: Transaction,
    act: ActRequest,
    merchant_id: MerchantId,
    user_id: UserId,
    actor: Actor,
    now: Instant,
    effective_at: Instant | None = None,
) -> ApprovalRequest:
    """A new request; one that is done without an objection can be decided for a day more, so that a worker that stood
    still does it late. Raises ActRefused while another about the same subject is pending: `expire` first."""
    row = await tx.write(
        _INSERT,
        act=act.act,
        subject=act.subject,
        merchant_id=merchant_id,
        arguments=msgspec.json.encode(dict(act.arguments), order="sorted").decode(),
        reason=act.reason,
        status="pending",
        requested_by=actor.name,
        user_id=user_id,
        os_user=actor.os_user,
        created_at=now,
        expires_at=later(now if effective_at is None else effective_at, APPROVAL_LASTS),
        effective_at=effective_at,
    )
    if row is None:
        raise ActRefused(Refusal.WAITS_ALREADY(subject=act.subject))
    return ApprovalRequest(*row)


async def expire(tx: Transaction, now: Instant) -> list[ApprovalRequest]:
    """Those that nobody decided in time, at most 200, expired from here on. Each is returned once, whoever asks."""
    return [ApprovalRequest(*row) for row in await tx.write_all(_EXPIRE, now=now, most=_MOST)]


async def unopposed(db: Reader, now: Instant) -> list[ApprovalRequest]:
    """Those against which nobody objected in time, at most 200, oldest first. Reads what was not decided."""
    return [ApprovalRequest(*row) for row in await db.all(_UNOPPOSED, now=now)]


async def objectable_of(db: Reader, requester: UserId, now: Instant) -> list[ApprovalRequest]:
    """What this person asked for and is done unless somebody objects, oldest first, at most 200."""
    return [ApprovalRequest(*row) for row in await db.all(_OBJECTABLE_OF, requester=requester, now=now)]


async def close(tx: Transaction, request: ApprovalId) -> bool:
    """Ends a request whose act is not possible any more; False when it was decided meanwhile."""
    return await tx.write(_CLOSE, request=request) is not None


async def use(tx: Transaction, approval: Approval, now: Instant) -> ApprovalRequest:
    """Marks the request as approved. Raises ActRefused when it does not wait any more."""
    return await decide(tx, approval.request_id, "approved", approval.approver, approval.reason, now)


async def decide(
    tx: Transaction, request: ApprovalId, status: ApprovalStatus, by: Actor, why: str, now: Instant
) -> ApprovalRequest:
    """Raises ActRefused when the request does not wait any more."""
    row = await tx.write(_DECIDE, request=request, new_status=status, by=by.name, why=why, now=now)
    if row is None:
        raise ActRefused(Refusal.NOT_WAITING(request=request))
    return ApprovalRequest(*row)


async def get(db: Reader, request: ApprovalId) -> ApprovalRequest | None:
    return await db.one_as(ApprovalRequest, _GET, request=request)


async def waiting(db: Database, now: Instant) -> list[ApprovalRequest]:
    """Those that can still be approved, at most 200, oldest first. Reads what was not decided: a few rows."""
    requests = [ApprovalRequest(*row) for row in await db.scan(_WAITING, now=now)]
    return sorted(requests, key=lambda request: request.id)


async def latest(db: Database, most: int = _MOST) -> list[ApprovalRequest]:
    """The newest requests, whatever became of them."""
    return [ApprovalRequest(*row) for row in await db.scan(_LATEST, most=most)]


async def about(db: Reader, subject: str, now: Instant) -> ApprovalRequest | None:
    """The request about this subject that waits."""
    return await db.one_as(ApprovalRequest, _ABOUT, about=subject, now=now)
