"""A person ends a payment or a refund that no machine may end (D85; docs/operations/runbook.md).

The provider is asked first. An explicit answer to the contrary refuses the act, unless two people override it: the one
proposes, the other approves within a day. What an override moves is posted against `manual_settlement` and not against
the operator's account, so that reconciliation shows it.
"""

from dataclasses import dataclass
from typing import Final, Literal

from guichet.back_office import override_approvals
from guichet.back_office.override_approvals import Decision
from guichet.clock import later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.audit_log import Act, ActRefused, FactName
from guichet.domain.money import plain
from guichet.domain.payments import Payment, Refund
from guichet.domain.refusals import Refusal
from guichet.payments import repository
from guichet.payments.outcomes import Mismatch, checked
from guichet.payments.provider_calls import LEASE_DURATION, payment_status, refund_status, requested_amount
from guichet.payments.settlement import settle_payment
from guichet.providers.base import (
    Accepted,
    AlreadyRefunded,
    FloatEmpty,
    RefundStatusResult,
    Refused,
    Succeeded,
)
from guichet.providers.shared.answers import ProviderAnswer
from guichet.refunds import repository as refund_repository
from guichet.refunds.settlement import settle_refund

#: What the provider says, in the terms of the decision. `other amount`: it moved another amount than was asked.
Answer = Literal["succeeded", "failed", "pending", "not sent", "other amount", "unknown"]
#: The answers that contradict that it succeeded.
_AGAINST_SUCCESS: Final[frozenset[Answer]] = frozenset({"failed", "pending", "not sent", "other amount"})
#: The answers that contradict a failure. A payment may be pending: a success that comes all the same is caught as a
#: late result. A pending refund may not: its hold would go back to the merchant while the money is on its way.
_AGAINST_FAILURE: Final[dict[type, frozenset[Answer]]] = {
    Payment: frozenset({"succeeded", "other amount"}),
    Refund: frozenset({"succeeded", "other amount", "pending"}),
}


@dataclass(frozen=True, slots=True)
class Settled:
    """`answer`: what the provider said when it was asked. `approval_needed`: nothing was settled yet, a second person
    must approve."""

    subject: Payment | Refund
    answer: Answer
    approval_needed: bool = False


async def settle_by_hand(ctx: AppContext, subject: Payment | Refund, decision: Decision) -> Settled:
    """Ends a pending live payment or refund as the person decided. Raises ActRefused."""
    check(subject)
    leased = await _lease(ctx, subject)
    try:
        return await _settle(ctx, leased, decision)
    finally:
        await _end_lease(ctx, leased)


def check(subject: Payment | Refund) -> None:
    """Raises ActRefused for what no person may end."""
    if subject.env == "test":
        raise ActRefused(Refusal.LIVE_ONLY())
    if subject.status != "pending":
        raise ActRefused(Refusal.FINAL(reference=subject.reference, status=subject.status))
    if isinstance(subject, Refund) and not subject.held:
        raise ActRefused(Refusal.NOT_COVERED())


async def _settle(ctx: AppContext, subject: Payment | Refund, decision: Decision) -> Settled:
    result = await _ask(ctx, subject)
    answer = await _read(ctx, subject, result)
    if not decision.override:
        _refuse_contrary(subject, decision, answer)
    elif decision.is_approved:
        pass
    elif (approved := await override_approvals.approved(ctx, subject, decision)) is None:
        await override_approvals.propose(ctx, _act(subject, override_approvals.PROPOSED, decision, answer))
        return Settled(subject, answer, approval_needed=True)
    else:
        decision = approved
    outcome = _outcome(subject, decision, result)
    noun = "payment" if isinstance(subject, Payment) else "refund"
    act = _act(subject, f"{noun}.settled", decision, answer)
    if isinstance(subject, Payment):
        settled: Payment | Refund = await settle_payment(ctx, subject, outcome, act=act, overrides=decision.override)
    else:
        payment = require(await repository.by_id(ctx.db, subject.payment_id))
        settled = await settle_refund(ctx, subject, payment, outcome, act=act, overrides=decision.override)
    if (settled.status == "failed") == decision.succeeded:
        raise ActRefused(Refusal.SETTLED_MEANWHILE(reference=subject.reference, status=settled.status))
    return Settled(settled, answer)


async def _lease(ctx: AppContext, subject: Payment | Refund) -> Payment | Refund:
    now = ctx.clock.now()
    until = later(now, LEASE_DURATION)
    leased: Payment | Refund | None
    if isinstance(subject, Payment):
        leased = await repository.lease(ctx.db, subject.id, now, until, asked_before=now)
    else:
        leased = await refund_repository.lease(ctx.db, subject.id, now, until, asked_before=now)
    if leased is None:
        raise ActRefused(Refusal.BEING_ASKED(reference=subject.reference))
    return leased


async def _end_lease(ctx: AppContext, subject: Payment | Refund) -> None:
    if isinstance(subject, Payment):
        await repository.end_lease(ctx.db, subject)
    else:
        await refund_repository.end_lease(ctx.db, subject.id)


async def _ask(ctx: AppContext, subject: Payment | Refund) -> RefundStatusResult | None:
    """What the provider says now; None for a refund that was not sent."""
    if isinstance(subject, Refund) and subject.sent_at is None:
        return None
    if isinstance(subject, Payment):
        return await payment_status(ctx, subject, ask_only=True)
    payment = require(await repository.by_id(ctx.db, subject.payment_id))
    return await refund_status(ctx, subject, payment, ask_only=True)


async def _read(ctx: AppContext, subject: Payment | Refund, result: RefundStatusResult | None) -> Answer:
    match await checked(ctx, subject, result):
        case None | FloatEmpty():
            return "not sent"
        case Mismatch():
            return "other amount"
        case Succeeded() | AlreadyRefunded():
            return "succeeded"
        case Refused():
            return "failed"
        case Accepted():
            return "pending"
        case _:
            return "unknown"


def _refuse_contrary(subject: Payment | Refund, decision: Decision, answer: Answer) -> None:
    contrary = _AGAINST_SUCCESS if decision.succeeded else _AGAINST_FAILURE[type(subject)]
    if answer in contrary:
        wanted = "succeeded" if decision.succeeded else "failed"
        raise ActRefused(Refusal.CONTRADICTED(reference=subject.reference, told=answer, status=wanted))


def _outcome(subject: Payment | Refund, decision: Decision, result: RefundStatusResult | None) -> Succeeded | Refused:
    """The provider's own answer where it is the same, since it holds the provider's reference and reason."""
    if decision.succeeded:
        reference = result.provider_reference if isinstance(result, Succeeded) else None
        return Succeeded(requested_amount(subject), subject.currency, reference)
    return result if isinstance(result, Refused) else Refused("refused", ProviderAnswer.SETTLED_BY_PERSON())


def _act(subject: Payment | Refund, action: str, decision: Decision, answer: Answer) -> Act:
    after: dict[FactName, object] = {
        "status": "succeeded" if decision.succeeded else "failed",
        "provider_says": answer,
        "amount": plain(subject.amount),
        "currency": subject.currency,
    }
    if decision.override:
        after["override"] = True
        if not decision.is_approved:
            after["approved_by"] = decision.approver and f"{decision.approver.name} ({decision.approver.os_user})"
    return Act(
        actor=require(decision.actor),
        action=action,
        subject_type="payment" if isinstance(subject, Payment) else "refund",
        subject=subject.reference,
        merchant_id=subject.merchant_id,
        reason=decision.evidence,
        before={"status": subject.status},
        after=after,
    )
