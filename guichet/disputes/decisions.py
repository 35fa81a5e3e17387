"""What a person decides about a dispute (`guichet dispute resolve`)."""

from msgspec import structs

from guichet.audit_log import entries as audit_log
from guichet.context import AppContext
from guichet.disputes import repository as dispute_repository
from guichet.disputes.disputes import close_incidents, post, post_returned, post_taken
from guichet.domain import posting_rules
from guichet.domain.audit_log import Act, Actor, ActRefused, Facts
from guichet.domain.disputes import Bearer, Dispute
from guichet.domain.events import DISPUTE_LOST, DISPUTE_OPENED, DISPUTE_WON, EventName
from guichet.domain.money import Hundredths
from guichet.domain.refusals import Refusal
from guichet.ledger.wallets import require_wallet
from guichet.payments import repository
from guichet.schemas.dispute import dispute_object
from guichet.webhooks import outbox
from guichet.webhooks.outbox import Event


def check(dispute: Dispute, bearer: Bearer) -> None:
    """Raises ActRefused for a dispute about which nothing is to be decided, or not this."""
    if not dispute.bearers:
        raise ActRefused(Refusal.NOT_LOST(reference=dispute.reference))
    if bearer not in dispute.bearers:
        raise ActRefused(Refusal.BEAR_ONE(bearers=", ".join(dispute.bearers)))


async def resolve(ctx: AppContext, dispute: Dispute, bearer: Bearer, actor: Actor, evidence: str) -> Dispute:
    """A person says who bears a lost or prevented dispute, or that nothing was taken by a prevented one. The merchant
    bears at most its own part of the payment, and never more than its wallet holds. Raises ActRefused."""
    check(dispute, bearer)
    payment = None if dispute.payment_id is None else await repository.by_id(ctx.db, dispute.payment_id)
    now = ctx.clock.now()
    part_of_payment = min(dispute.amount, payment.amount) if payment is not None and bearer == "merchant" else 0
    merchant_part = Hundredths(part_of_payment)
    facts: Facts = {"borne_by": bearer, "amount": dispute.amount, "merchant_part": merchant_part}
    act = Act(actor, "dispute.resolved", "dispute", dispute.reference, dispute.merchant_id, evidence, after=facts)
    async with ctx.db.transaction() as tx:
        if bearer == "nobody":
            decided = await dispute_repository.clear(tx, dispute.id)
        else:
            decided = await dispute_repository.charge(tx, dispute.id, bearer)
        if decided is None:
            raise ActRefused(Refusal.NOT_LOST(reference=dispute.reference))
        if bearer == "nobody":
            if dispute.taken:
                await post_returned(tx, decided, payment, now)
        else:
            if payment is not None and merchant_part:
                await require_wallet(tx, payment, merchant_part, now)
            if not dispute.taken:
                await post_taken(tx, decided, now)
            entries = posting_rules.dispute_charged(merchant_part, Hundredths(dispute.amount - merchant_part))
            await post(tx, decided, posting_rules.DISPUTE_CHARGED, entries, now)
        if payment is not None:
            events = _events(dispute, decided)
            await outbox.emit(tx, [Event(name, payment, dispute_object(stage), now) for name, stage in events])
        await close_incidents(tx, dispute, payment, now)
        await audit_log.record(tx, act, now)
    ctx.wakeups.deliveries.set()
    return decided


def _events(dispute: Dispute, decided: Dispute) -> list[tuple[EventName, Dispute]]:
    """What the merchant learns of the decision about a prevented dispute: nothing, if nothing was ever taken. Of a lost
    one it was told before."""
    if dispute.status != "prevented" or (decided.status == "won" and not dispute.taken):
        return []
    end: EventName = DISPUTE_WON if decided.status == "won" else DISPUTE_LOST
    opened = structs.replace(decided, status="open", closed_at=None)
    return [(end, decided)] if dispute.taken else [(DISPUTE_OPENED, opened), (end, decided)]
