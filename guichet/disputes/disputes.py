"""Disputes: what a bank took back, what it returned, and who bears what it kept (docs/decisions.md, "Disputes").

They are read from the provider regularly, and when a callback says that something happened to one; what the callback
says is ignored. The payment's status stays; the merchant is told by `dispute.*` events.
"""

from typing import Final

from guichet.audit_log import entries as audit_log
from guichet.clock import DAY, Instant, earlier
from guichet.context import AppContext
from guichet.db.engine import Transaction
from guichet.db.references import new_reference, parse_reference
from guichet.disputes import repository as dispute_repository
from guichet.domain import posting_rules
from guichet.domain.audit_log import Act, Actor, ActRefused, Facts
from guichet.domain.catalogue import Catalogue
from guichet.domain.disputes import Bearer, Dispute
from guichet.domain.events import DISPUTE_LOST, DISPUTE_OPENED, DISPUTE_WON, EventName
from guichet.domain.ids import DisputeId
from guichet.domain.messages import Amount
from guichet.domain.money import Hundredths
from guichet.domain.payments import Payment
from guichet.domain.posting_rules import Movement, Posting
from guichet.domain.refusals import Refusal
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.ledger import postings
from guichet.ledger.wallets import require_wallet
from guichet.logs import log
from guichet.payments import repository
from guichet.payments.provider_calls import call_provider
from guichet.providers.base import Provider, Unknown
from guichet.providers.capabilities import DisputeFacts, HasDisputes
from guichet.webhooks import outbox
from guichet.webhooks.outbox import Event

#: A bank decides within a few months; older disputes are not asked for any more.
_ASKED_FOR: Final = 200 * DAY


async def read_disputes(ctx: AppContext) -> bool:
    """Asks every account for its disputes and records what is new. False when an account did not answer. Cost: a page
    of a hundred disputes for each request, and one look-up for each dispute."""
    complete = True
    for account, provider in ctx.registry.with_disputes().items():
        found = await _read_disputes(ctx, account, provider)
        if isinstance(found, Unknown):
            log.warning("disputes.not_read", provider_account=account, raw=found.raw)
            complete = False
            continue
        for facts in found:
            await record(ctx, account, facts)
    return complete


async def _read_disputes(ctx: AppContext, account: str, provider: HasDisputes) -> list[DisputeFacts] | Unknown:
    call = provider.disputes(earlier(ctx.clock.now(), _ASKED_FOR))
    called: Provider = ctx.registry.provider(account)
    return await call_provider(called, call, account, "disputes")


async def record(ctx: AppContext, account: str, facts: DisputeFacts) -> None:
    """Brings our row to what the provider states; each step is applied once, whoever reads it first."""
    known = await dispute_repository.by_provider_reference(ctx.db, account, facts.provider_reference)
    if known is not None and known.status == facts.status:
        return
    payment = await _payment(ctx, account, facts)
    if payment is None or payment.currency != facts.currency:
        log.error("dispute.unknown_payment", provider_account=account, dispute=facts.provider_reference)
        return
    now = ctx.clock.now()
    if facts.status == "inquiry":
        if known is None:
            detail = IncidentDetail.BANK_ASKS(bank_reason=facts.reason)
            await incidents.report_about(ctx.db, payment, incidents.DISPUTED, detail, now)
        return
    catalogue = await ctx.catalogues.of(payment.merchant_id)
    async with ctx.db.transaction() as tx:
        if known is None:
            known = await _open(tx, account, facts, payment, catalogue, now)
        if known is not None and known.status == "open" and facts.status != "open":
            await _close(tx, known, facts, payment, catalogue, now)
    ctx.wakeups.deliveries.set()


async def _payment(ctx: AppContext, account: str, facts: DisputeFacts) -> Payment | None:
    reference = parse_reference(facts.payment_reference or "")
    return await repository.by_callback_reference(ctx.db, account, reference) if reference else None


async def _open(
    tx: Transaction, account: str, facts: DisputeFacts, payment: Payment, catalogue: Catalogue, now: Instant
) -> Dispute | None:
    """None when another process recorded it first."""
    opened = await dispute_repository.insert_new(tx, _new(account, facts, payment, now))
    if opened is not None:
        entries = posting_rules.dispute_opened(posting_rules.operator_account(payment.operator), opened.amount)
        await _post(tx, opened, posting_rules.DISPUTE_OPENED, entries, now)
        await outbox.emit(tx, [Event(DISPUTE_OPENED, payment, catalogue, now, dispute=opened)])
        total = Amount(opened.amount, opened.currency)
        detail = IncidentDetail.BANK_TOOK(total=total, bank_reason=opened.reason)
        await incidents.report_about(tx, payment, incidents.DISPUTED, detail, now)
    return opened


async def _close(
    tx: Transaction, dispute: Dispute, facts: DisputeFacts, payment: Payment, catalogue: Catalogue, now: Instant
) -> None:
    won = facts.status == "won"
    closed = await dispute_repository.close(tx, dispute.id, "won" if won else "lost", now)
    if closed is None:
        return
    if won:
        entries = posting_rules.dispute_won(posting_rules.operator_account(payment.operator), closed.amount)
        await _post(tx, closed, posting_rules.DISPUTE_WON, entries, now)
        await incidents.close_all(tx, payment.merchant_id, payment.reference, now)
    else:
        detail = IncidentDetail.DISPUTE_LOST(total=Amount(closed.amount, closed.currency))
        await incidents.report_about(tx, payment, incidents.DISPUTED, detail, now)
    name: EventName = DISPUTE_WON if won else DISPUTE_LOST
    await outbox.emit(tx, [Event(name, payment, catalogue, now, dispute=closed)])


def _new(account: str, facts: DisputeFacts, payment: Payment, now: Instant) -> Dispute:
    return Dispute(
        id=DisputeId(0),
        merchant_id=payment.merchant_id,
        env=payment.env,
        currency=payment.currency,
        payment_id=payment.id,
        payment_reference=payment.reference,
        reference=new_reference(now),
        provider_account=account,
        provider_reference=facts.provider_reference,
        status="open",
        amount=facts.amount,
        reason=facts.reason[:64],
        opened_at=facts.opened_at,
        evidence_due_at=facts.evidence_due_at,
        closed_at=None,
        borne_by=None,
    )


def check(dispute: Dispute) -> None:
    """Raises ActRefused for a dispute about which nothing is to be decided."""
    if dispute.status != "lost" or dispute.borne_by is not None:
        raise ActRefused(Refusal.NOT_LOST(reference=dispute.reference))


async def resolve(ctx: AppContext, dispute: Dispute, bearer: Bearer, actor: Actor, evidence: str) -> Dispute:
    """A person says who bears a lost dispute. The merchant bears at most its own part of the payment, and never more
    than its wallet holds. Raises ActRefused."""
    payment = await repository.by_id(ctx.db, dispute.payment_id)
    assert payment is not None
    now = ctx.clock.now()
    merchant_part = Hundredths(min(dispute.amount, payment.amount) if bearer == "merchant" else 0)
    facts: Facts = {"borne_by": bearer, "amount": dispute.amount, "merchant_part": merchant_part}
    act = Act(actor, "dispute.resolved", "dispute", dispute.reference, dispute.merchant_id, evidence, after=facts)
    async with ctx.db.transaction() as tx:
        charged = await dispute_repository.charge(tx, dispute.id, bearer)
        if charged is None:
            raise ActRefused(Refusal.NOT_LOST(reference=dispute.reference))
        if merchant_part:
            await require_wallet(tx, payment, merchant_part, now)
        entries = posting_rules.dispute_charged(merchant_part, Hundredths(dispute.amount - merchant_part))
        await _post(tx, charged, posting_rules.DISPUTE_CHARGED, entries, now)
        await incidents.close_all(tx, payment.merchant_id, payment.reference, now)
        await audit_log.record(tx, act, now)
    return charged


async def _post(tx: Transaction, dispute: Dispute, cause: str, entries: list[Posting], now: Instant) -> None:
    wallet = dispute.merchant_id, dispute.env, dispute.currency
    await postings.post(tx, [Movement(*wallet, cause, dispute.id, entries, now)])
