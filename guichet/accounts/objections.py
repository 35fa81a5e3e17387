"""Objecting to a new approver whom nobody else could approve, by a form that opens from a mail.

Whoever could approve lately is mailed a link of their own. It opens without a session, also for a disabled account:
those who were just removed are the ones to ask. It is no row: the request and the person are in it, signed.
"""

import base64
import hashlib
import hmac
import re
from contextlib import suppress
from typing import Final

from guichet.accounts import approval_mails, users
from guichet.accounts.errors import LinkUnusable
from guichet.audit_log import approval_requests
from guichet.audit_log import entries as audit_log
from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import Transaction
from guichet.domain.accounts import User, UserId
from guichet.domain.approvals import ApprovalRequest
from guichet.domain.audit_log import CONSOLE, Act, Actor, ActRefused, Facts
from guichet.domain.ids import ApprovalId
from guichet.settings import Settings

_PURPOSE: Final = b"guichet objection v1"
_SHAPE: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,18})-([A-Za-z0-9_-]{43})", re.ASCII)


def link(settings: Settings, request: ApprovalRequest, user: User) -> str:
    signature = _sign(settings.secret_keys[0], request.id, user.id)
    return f"{settings.public_url}/console/objection/{request.id}-{user.id}-{signature}"


async def find(ctx: AppContext, secret: str) -> tuple[ApprovalRequest, User]:
    """The request that the link is about, while it can be objected to, and whose link it is. Raises LinkUnusable."""
    match = _SHAPE.fullmatch(secret)
    if match is None:
        raise LinkUnusable
    request_id, user_id = ApprovalId(int(match[1])), UserId(int(match[2]))
    signatures = [_sign(key, request_id, user_id) for key in ctx.settings.secret_keys]
    if not any(hmac.compare_digest(expected, match[3]) for expected in signatures):
        raise LinkUnusable
    request, user = await approval_requests.get(ctx.db, request_id), await users.get(ctx.db, user_id)
    if request is None or user is None or request.status_at(ctx.clock.now()) != "pending":
        raise LinkUnusable
    return request, user


async def object_to(ctx: AppContext, secret: str, reason: str) -> None:
    """Nothing is done of what was asked for, nor of what else the same person asked for that waits for objections: who
    asks a hundred times must not win by the hundred-and-first. They are told. Raises LinkUnusable, and ActRefused when
    somebody else decided in the same moment."""
    request, user = await find(ctx, secret)
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        await end_refused(ctx, tx, request, user, "approval.objected", reason, now)
        for other in await approval_requests.objectable_of(tx, request.user_id, now):
            with suppress(ActRefused):  # It was decided in the same moment.
                await end_refused(ctx, tx, other, user, "approval.objected", reason, now)


async def end_refused(
    ctx: AppContext, tx: Transaction, request: ApprovalRequest, user: User, action: str, reason: str, now: Instant
) -> None:
    """The user, in the console, says no; who asked is told. `action`: as the audit log names it."""
    actor = Actor(user.email, CONSOLE)
    await approval_requests.decide(tx, request.id, "refused", actor, reason, now)
    facts: Facts = {"request": request.id, "act": request.act}
    act = Act(actor, action, "approval", request.subject, request.merchant_id, reason, after=facts)
    await audit_log.record(tx, act, now)
    await approval_mails.tell_requester(ctx, tx, request, "approval_refused", now, by=user)


def _sign(key: str, request_id: ApprovalId, user_id: UserId) -> str:
    own = hmac.digest(key.encode(), _PURPOSE, hashlib.sha256)
    digest = hmac.digest(own, f"{request_id}.{user_id}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
