"""Mails about requests that another person approves. They name no evidence, which can name customers: it stands in the
back office."""

from collections.abc import Iterable
from typing import Literal

from guichet.accounts import access_acts
from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import Transaction
from guichet.domain.accounts import User
from guichet.domain.approvals import ApprovalRequest
from guichet.mail.outbox import Outbox

Kind = Literal["approval_requested", "approval_objectable", "approval_approved", "approval_refused", "approval_expired"]


async def tell_approvers(
    ctx: AppContext, tx: Transaction, request: ApprovalRequest, approvers: Iterable[User], now: Instant
) -> None:
    for each in approvers:
        await _add(ctx, tx, each, "approval_requested", request, request.requested_by, now)


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
        await _add(ctx, tx, requester, result, request, by.email, now)


async def tell_expired(
    ctx: AppContext, tx: Transaction, request: ApprovalRequest, requester: User, now: Instant
) -> None:
    """In the transaction that ends the request, so that it is told once."""
    if requester.status == "active":
        at = request.expires_at
        await _add(ctx, tx, requester, "approval_expired", request, request.requested_by, now, of=at)


async def ask_for_objections(
    ctx: AppContext, tx: Transaction, request: ApprovalRequest, asked: Iterable[tuple[User, str]], now: Instant
) -> None:
    """`asked`: each with the address of their form."""
    for each, link in asked:
        at = request.effective_at
        await _add(ctx, tx, each, "approval_objectable", request, request.requested_by, now, of=at, link=link)


async def _add(
    ctx: AppContext,
    tx: Transaction,
    to: User,
    kind: Kind,
    request: ApprovalRequest,
    person: str,
    now: Instant,
    *,
    of: Instant | None = None,
    link: str | None = None,
) -> None:
    """`of`: the time that the mail speaks of, if it is another than now."""
    values = {
        "name": to.name,
        "person": person,
        "act": request.act,
        "subject": await access_acts.subject_text(tx, request.subject),
        "date": str(now if of is None else of),
        "link": link or f"{ctx.settings.public_url}/admin/approvals/{request.id}",
    }
    await Outbox(ctx.vault).add(tx, to, kind, values, now)
