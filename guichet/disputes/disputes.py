"""Disputes: what a bank took back, what it returned, what it kept (docs/decisions.md, "Disputes").

They are read from the provider regularly, and when a callback says that something happened to one; what the callback
says is ignored. The payment's status stays; the merchant is told by `dispute.*` events.
"""

from typing import Final, cast

from guichet.clock import DAY, Instant, earlier
from guichet.context import AppContext
from guichet.db.engine import Transaction
from guichet.db.references import new_reference, parse_reference
from guichet.disputes import repository as dispute_repository
from guichet.domain import posting_rules
from guichet.domain.disputes import Dispute, DisputeStatus
from guichet.domain.events import DISPUTE_LOST, DISPUTE_OPENED, DISPUTE_WON, EventName
from guichet.domain.ids import DisputeId, MerchantId
from guichet.domain.messages import Amount, Message
from guichet.domain.money import Currency
from guichet.domain.payments import Payment
from guichet.domain.posting_rules import Movement, Posting
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.ledger import postings, wallets
from guichet.logs import log
from guichet.merchants import repository as merchants
from guichet.payments import repository
from guichet.providers.base import Provider, Unknown
from guichet.providers.capabilities import DisputeFacts, HasDisputes
from guichet.providers.registry import call_provider
from guichet.schemas.dispute import dispute_object
from guichet.webhooks import outbox
from guichet.webhooks.outbox import Event

#: A bank decides within a few months; older disputes are not asked for any more.
_READ_BACK: Final = 200 * DAY


async def read_disputes(ctx: AppContext) -> bool:
    """Asks every account for its disputes and records what is new. False when an account did not answer. Cost: a page
    of a hundred disputes for each request, and one look-up for each dispute."""
    complete = True
    for account, provider in ctx.registry.with_disputes().items():
        answer = await _read_disputes(ctx, account, provider)
        if isinstance(answer, Unknown):
            log.warning("disputes.not_read", provider_account=account, raw=answer.raw)
            complete = False
            continue
        for facts in answer:
            await record(ctx, account, facts)
    return complete


async def _read_disputes(ctx: AppContext, account: str, provider: HasDisputes) -> list[DisputeFacts] | Unknown:
    call = provider.disputes(earlier(ctx.clock.now(), _READ_BACK))
    called: Provider = ctx.registry.provider(account)
    return await call_provider(called, call, account, "disputes")


async def record(ctx: AppContext, account: str, facts: DisputeFacts) -> None:
    """Brings our row to what the provider states; each step is applied once, whoever reads it first."""
    known = await dispute_repository.by_provider_reference(ctx.db, account, facts.provider_reference)
    if known is not None and (known.status == facts.status or known.status != "open"):
        return
    payment = await _payment(ctx, account, facts)
    if payment is None:
        await _record_unmatched(ctx, account, facts, known)
        return
    now = ctx.clock.now()
    if facts.status == "inquiry":
        if known is None:
            detail = IncidentDetail.BANK_ASKS(bank_reason=facts.reason)
            await incidents.report_about(ctx.db, payment, incidents.DISPUTED, detail, now)
        return
    async with ctx.db.transaction() as tx:
        if known is None:
            known = await _open(tx, account, facts, payment, now)
        if known is not None and known.status == "open" and facts.status != "open":
            await _close(tx, known, facts, payment, now)
    ctx.wakeups.deliveries.set()


async def _payment(ctx: AppContext, account: str, facts: DisputeFacts) -> Payment | None:
    """The payment that the dispute is about. None when there is none, or one in another currency, of which the disputed
    amount cannot be a part."""
    reference = parse_reference(facts.payment_reference or "")
    payment = await repository.by_reference_on_account(ctx.db, account, reference) if reference else None
    return payment if payment is not None and payment.currency == facts.currency else None


async def _record_unmatched(ctx: AppContext, account: str, facts: DisputeFacts, known: Dispute | None) -> None:
    """A dispute about no payment of ours is the service's own until a person finds out whose it is: the amount waits in
    its `suspense:disputes`. No merchant is told."""
    if facts.status == "inquiry":
        log.error("dispute.unknown_payment", provider_account=account, dispute=facts.provider_reference)
        return
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        if known is None:
            house = await merchants.house_merchant(tx, ctx.vault, now)
            known = await dispute_repository.insert_new(tx, _new(account, facts, None, house, now))
            if known is None:
                return
            log.error("dispute.unknown_payment", provider_account=account, dispute=facts.provider_reference)
            if known.taken:
                await post_taken(tx, known, now)
            about = {"account": account, "dispute": facts.provider_reference, "bank_reason": known.reason}
            detail = IncidentDetail.BANK_TOOK_UNMATCHED(total=Amount(known.amount, known.currency), **about)
            await _report_unmatched(tx, known, detail, now)
        if known.status == "open" and facts.status != "open":
            await _close(tx, known, facts, None, now)


async def _report_unmatched(tx: Transaction, dispute: Dispute, detail: Message, now: Instant) -> None:
    await incidents.report(
        tx,
        merchant_id=dispute.merchant_id,
        env=dispute.env,
        kind=incidents.DISPUTED,
        subject_type="dispute",
        reference=dispute.reference,
        provider_account=dispute.provider_account,
        detail=detail,
        now=now,
    )


async def _open(tx: Transaction, account: str, facts: DisputeFacts, payment: Payment, now: Instant) -> Dispute | None:
    """None when another process recorded it first. Of a prevented one nothing is posted or told: a person decides."""
    # No refund is asked for in the same moment.
    await wallets.lock(tx, payment.merchant_id, payment.env, payment.currency, now)
    opened = await dispute_repository.insert_new(tx, _new(account, facts, payment, payment.merchant_id, now))
    if opened is None:
        return None
    total = Amount(opened.amount, opened.currency)
    detail = IncidentDetail.BANK_PREVENTED(total=total, bank_reason=opened.reason)
    if opened.taken:
        await post_taken(tx, opened, now)
        await outbox.emit(tx, [Event(DISPUTE_OPENED, payment, dispute_object(opened), now)])
        detail = IncidentDetail.BANK_TOOK(total=total, bank_reason=opened.reason)
    await incidents.report_about(tx, payment, incidents.DISPUTED, detail, now)
    return opened


async def _close(tx: Transaction, dispute: Dispute, facts: DisputeFacts, payment: Payment | None, now: Instant) -> None:
    """The bank decided about an open dispute, or prevented it. `payment`: None of one that matches none."""
    status: DisputeStatus = "won" if facts.status == "won" else "prevented" if facts.status == "prevented" else "lost"
    closed = await dispute_repository.close(tx, dispute.id, status, now)
    if closed is None:
        return
    total = Amount(closed.amount, closed.currency)
    if status == "won":
        await post_returned(tx, closed, payment, now)
    else:
        detail = IncidentDetail.DISPUTE_LOST(total=total)
        if status == "prevented":
            detail = IncidentDetail.BANK_PREVENTED(total=total, bank_reason=closed.reason)
        if payment is None:
            await _report_unmatched(tx, closed, detail, now)
        else:
            await incidents.report_about(tx, payment, incidents.DISPUTED, detail, now)
    if payment is not None and status != "prevented":
        name: EventName = DISPUTE_WON if status == "won" else DISPUTE_LOST
        await outbox.emit(tx, [Event(name, payment, dispute_object(closed), now)])


def _new(account: str, facts: DisputeFacts, payment: Payment | None, merchant_id: MerchantId, now: Instant) -> Dispute:
    prevented = facts.status == "prevented"
    return Dispute(
        id=DisputeId(0),
        merchant_id=merchant_id,
        env="live" if payment is None else payment.env,
        currency=cast("Currency", facts.currency),
        payment_id=None if payment is None else payment.id,
        payment_reference=None if payment is None else payment.reference,
        reference=new_reference(now),
        provider_account=account,
        provider_reference=facts.provider_reference,
        status="prevented" if prevented else "open",
        amount=facts.amount,
        reason=facts.reason[:64],
        opened_at=facts.opened_at,
        evidence_due_at=facts.evidence_due_at,
        closed_at=now if prevented else None,
        borne_by=None,
        taken=not prevented,
    )


async def post_taken(tx: Transaction, dispute: Dispute, now: Instant) -> None:
    entries = posting_rules.dispute_opened(_float(dispute), dispute.amount)
    await post(tx, dispute, posting_rules.DISPUTE_OPENED, entries, now)


async def post_returned(tx: Transaction, dispute: Dispute, payment: Payment | None, now: Instant) -> None:
    """The provider returned what it had taken back."""
    entries = posting_rules.dispute_won(_float(dispute), dispute.amount)
    await post(tx, dispute, posting_rules.DISPUTE_WON, entries, now)
    await close_incidents(tx, dispute, payment, now)


async def close_incidents(tx: Transaction, dispute: Dispute, payment: Payment | None, now: Instant) -> None:
    about = dispute.reference if payment is None else payment.reference
    await incidents.close_all(tx, dispute.merchant_id, about, now)


def _float(dispute: Dispute) -> str:
    """The wallet that is debited. An account whose payers can contest a payment has only one."""
    return posting_rules.float_account(dispute.provider_account, "", dispute.currency)


async def post(tx: Transaction, dispute: Dispute, cause: str, entries: list[Posting], now: Instant) -> None:
    wallet = dispute.merchant_id, dispute.env, dispute.currency
    await postings.post(tx, [Movement(*wallet, cause, dispute.id, entries, now)])
