"""Mails about requests that another person approves. They name no evidence, which can name customers: it stands in the
back office."""

from typing import Literal

from guichet.accounts import access_acts, users
from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import Transaction
from guichet.domain.accounts import User
from guichet.domain.approvals import ApprovalRequest
from guichet.mail.outbox import Outbox

Kind = Literal["approval_requested", "approval_objectable", "approval_approved", "approval_refused", "approval_expired"]


async def tell_requester(
    ctx: AppContext,
    tx: Transaction,
    request: ApprovalRequest,
    kind: Kind,
    now: Instant,
    *,
    by: User | None = None,
    of: Instant | None = None,
) -> None:
    """Nothing to a person who takes their own request back."""
    requester = await users.get(tx, request.user_id)
    if requester is not None and requester.status == "active" and (by is None or by.id != requester.id):
        await add(ctx, tx, requester, kind, request, now, person=by.email if by else None, of=of)


async def add(
    ctx: AppContext,
    tx: Transaction,
    to: User,
    kind: Kind,
    request: ApprovalRequest,
    now: Instant,
    *,
    person: str | None = None,
    of: Instant | None = None,
    link: str | None = None,
) -> None:
    """`person`: who did it, if it is not the requester. `of`: the time that the mail speaks of, if it is another than
    now. `link`: an address of the reader's own."""
    values = {
        "name": to.name,
        "person": person or request.requested_by,
        "act": request.act,
        "subject": await access_acts.subject_text(tx, request.subject),
        "date": str(now if of is None else of),
        "link": link or f"{ctx.settings.public_url}/admin/approvals/{request.id}",
    }
    await Outbox(ctx.vault).add(tx, to, kind, values, now)
