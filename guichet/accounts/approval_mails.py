"""Mails about money acts that wait for a second person: to those who may approve, and to whoever asked."""

from collections.abc import Iterable
from typing import Literal

from guichet.clock import Instant
from guichet.db.engine import Transaction
from guichet.domain.accounts import User
from guichet.domain.approvals import ApprovalRequest
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
