"""Everything that a person needs to decide about one payment or refund."""

from msgspec import field

from guichet.audit_log import approval_requests
from guichet.back_office import manual_settlement
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.references import parse_reference
from guichet.disputes import repository as dispute_repository
from guichet.domain.approvals import ApprovalRequest
from guichet.domain.audit_log import ActRefused
from guichet.domain.disputes import Dispute
from guichet.domain.late_results import LateResult
from guichet.domain.payments import Payment, Refund
from guichet.domain.records import Record
from guichet.incidents import repository as incidents
from guichet.incidents.repository import Incident
from guichet.late_money import decisions as late_decisions
from guichet.late_money.decisions import Decision
from guichet.merchants import repository as merchants
from guichet.payments import repository
from guichet.refunds import repository as refund_repository


class Case(Record, frozen=True):
    """`merchant`: the name. `refund`: the one that is decided about, or None when it is the payment. `decisions`: what
    may be decided about the late money. `waiting`: the request about the subject, or about one of its disputes, that a
    second person has to decide first."""

    payment: Payment
    merchant: str
    refund: Refund | None
    incidents: list[Incident]
    late: LateResult | None
    decisions: tuple[Decision, ...]
    paid_again: list[Payment]
    disputes: list[Dispute]
    may_settle: bool
    waiting: list[ApprovalRequest] = field(default_factory=list)

    @property
    def subject(self) -> Payment | Refund:
        return self.refund or self.payment

    @property
    def needs_payee(self) -> bool:
        return any(incident.kind == incidents.PAYEE_UNCONFIRMED for incident in self.incidents)

    @property
    def needs_account(self) -> bool:
        return any(incident.kind == incidents.ACCOUNT_CHANGED for incident in self.incidents)


async def case_of(ctx: AppContext, text: str) -> Case | None:
    """By the reference of a payment, a refund or a dispute; None when there is none. Reads a few rows by their indexes,
    and the open incidents, which are at most 500."""
    reference = parse_reference(text)
    if reference is None:
        return None
    dispute = await dispute_repository.find(ctx.db, reference)
    subject_reference = (dispute.payment_reference if dispute else None) or reference
    payment = await repository.find(ctx.db, subject_reference)
    refund = None
    if payment is None:
        refund = await refund_repository.find(ctx.db, subject_reference)
        if refund is None:
            return None
        payment = require(await repository.by_id(ctx.db, refund.payment_id))
    return await _case(ctx, payment, refund, await dispute_repository.of_payment(ctx.db, payment.id))


async def _case(ctx: AppContext, payment: Payment, refund: Refund | None, disputes: list[Dispute]) -> Case:
    subject = refund or payment
    late = await late_decisions.about(ctx.db, subject)
    decisions = late_decisions.fitting(late) if late else ()
    waiting = [
        await approval_requests.about(ctx.db, reference, ctx.clock.now())
        for reference in (subject.reference, *(dispute.reference for dispute in disputes))
    ]
    return Case(
        payment=payment,
        merchant=require(await merchants.get(ctx.db, payment.merchant_id)).name,
        refund=refund,
        incidents=[row for row in await incidents.still_open(ctx.db) if row.reference == subject.reference],
        late=late,
        decisions=decisions,
        paid_again=await late_decisions.paid_again(ctx.db, payment) if "wallet" in decisions else [],
        disputes=disputes,
        may_settle=_may_settle(subject),
        waiting=[request for request in waiting if request is not None],
    )


def _may_settle(subject: Payment | Refund) -> bool:
    try:
        manual_settlement.check(subject)
    except ActRefused:
        return False
    return True
