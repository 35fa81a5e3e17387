"""Mails about requests that another person approves. They name no evidence, which can name customers: it stands in the
back office."""

from typing import Literal

from guichet.accounts import access_acts
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
    requester: User,
    result: Literal["approval_approved", "approval_refused"],
    by: User,
    now: Instant,
) -> None:
    """Nothing to a person who takes their own request back."""
    if requester.id != by.id and requester.status == "active":
        await add(ctx, tx, requester, result, request, now, person=by.email)


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
