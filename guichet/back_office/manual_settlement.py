"""A person ends a payment or a refund that no machine may end (docs/decisions.md, "Person decides";
docs/operations/runbook.md).

One person asks for it and another one approves (`accounts/approvals.py`). The provider is asked first: an explicit
answer to the contrary refuses the act, unless they override it. What an override moves is posted against
`manual_settlement` and not against the operator's account, so that reconciliation shows it.
"""

from typing import Final, Literal

from guichet.clock import Clock, later
from guichet.context import AppContext
from guichet.db.engine import Database, require
from guichet.db.queues.work_queue import LEASE_DURATION
from guichet.domain.audit_log import Act, Actor, ActRefused, FactName
from guichet.domain.money import plain
from guichet.domain.payments import Payment, Refund
from guichet.domain.records import Record
from guichet.domain.refusals import Refusal
from guichet.payments import pending, repository
from guichet.payments.outcomes import Mismatch, check_and_report_amount, payment_status, refund_status
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Accepted, AlreadyRefunded, FloatEmpty, RefundStatusResult, Refused, Succeeded
from guichet.providers.registry import requested_amount
from guichet.providers.shared.answers import ProviderAnswer
from guichet.refunds import pending as pending_refunds
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


class Decision(Record, frozen=True):
    """`override`: settle even against the provider's answer."""

    succeeded: bool
    evidence: str
    actor: Actor
    override: bool = False


async def settle_by_hand(ctx: AppContext, subject: Payment | Refund, decision: Decision) -> Payment | Refund:
    """Ends a pending live payment or refund as the person decided. Raises ActRefused."""
    check(subject)
    leased = await _lease(ctx.db, ctx.clock, subject)
    try:
        return await _settle(ctx, leased, decision)
    finally:
        await _end_lease(ctx.db, leased)


def check(subject: Payment | Refund) -> None:
    """Raises ActRefused for what no person may end."""
    if subject.env == "test":
        raise ActRefused(Refusal.LIVE_ONLY())
    if subject.status != "pending":
        raise ActRefused(Refusal.FINAL(reference=subject.reference, status=subject.status))
    if isinstance(subject, Refund) and not subject.held and subject.automatic is None:
        raise ActRefused(Refusal.NOT_COVERED())


async def _settle(ctx: AppContext, subject: Payment | Refund, decision: Decision) -> Payment | Refund:
    if isinstance(subject, Refund) and decision.succeeded and not subject.held:
        raise ActRefused(Refusal.NOT_COVERED())  # It waits for the wallet, so there is nothing to post.
    result = await _ask(ctx, subject)
    answer = await _read(ctx, subject, result)
    if not decision.override:
        _refuse_contrary(subject, decision, answer)
    outcome = _outcome(subject, decision, result)
    act = _act(subject, decision, answer)
    if isinstance(subject, Payment):
        settled: Payment | Refund = await settle_payment(ctx, subject, outcome, act=act, overrides=decision.override)
    else:
        payment = require(await repository.by_id(ctx.db, subject.payment_id))
        settled = await settle_refund(ctx, subject, payment, outcome, act=act, overrides=decision.override)
    if (settled.status == "failed") == decision.succeeded:
        raise ActRefused(Refusal.SETTLED_MEANWHILE(reference=subject.reference, status=settled.status))
    return settled


async def _lease(db: Database, clock: Clock, subject: Payment | Refund) -> Payment | Refund:
    now = clock.now()
    until = later(now, LEASE_DURATION)
    leased: Payment | Refund | None
    if isinstance(subject, Payment):
        leased = await pending.lease(db, subject.id, now, until, asked_before=now)
    else:
        leased = await pending_refunds.lease(db, subject.id, now, until, asked_before=now)
    if leased is None:
        raise ActRefused(Refusal.BEING_ASKED(reference=subject.reference))
    return leased


async def _end_lease(db: Database, subject: Payment | Refund) -> None:
    if isinstance(subject, Payment):
        await pending.end_lease(db, subject)
    else:
        await pending_refunds.end_lease(db, subject.id)


async def _ask(ctx: AppContext, subject: Payment | Refund) -> RefundStatusResult | None:
    """What the provider says now; None for a refund that was not sent."""
    if isinstance(subject, Refund) and subject.sent_at is None:
        return None
    if isinstance(subject, Payment):
        return await payment_status(ctx, subject, ask_only=True)
    payment = require(await repository.by_id(ctx.db, subject.payment_id))
    return await refund_status(ctx, subject, payment, ask_only=True)


async def _read(ctx: AppContext, subject: Payment | Refund, result: RefundStatusResult | None) -> Answer:
    match await check_and_report_amount(ctx, subject, result):
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
        status = "succeeded" if decision.succeeded else "failed"
        raise ActRefused(Refusal.CONTRADICTED(reference=subject.reference, told=answer, status=status))


def _outcome(subject: Payment | Refund, decision: Decision, result: RefundStatusResult | None) -> Succeeded | Refused:
    """The provider's own answer where it is the same, since it holds the provider's reference and reason."""
    if decision.succeeded:
        reference = result.provider_reference if isinstance(result, Succeeded) else None
        return Succeeded(requested_amount(subject), subject.currency, reference)
    return (
        result if isinstance(result, Refused) else Refused("refused", ProviderAnswer.SETTLED_BY_PERSON(), stated=False)
    )


def _act(subject: Payment | Refund, decision: Decision, answer: Answer) -> Act:
    after: dict[FactName, object] = {
        "status": "succeeded" if decision.succeeded else "failed",
        "provider_says": answer,
        "amount": plain(subject.amount),
        "currency": subject.currency,
    }
    if decision.override:
        after["override"] = True
    return Act(
        actor=decision.actor,
        action=f"{subject.subject_type}.settled",
        subject_type=subject.subject_type,
        subject=subject.reference,
        merchant_id=subject.merchant_id,
        reason=decision.evidence,
        before={"status": subject.status},
        after=after,
    )
