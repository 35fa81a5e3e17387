"""Applies an outcome: transition, postings, link use and webhook rows, in one transaction (`settling.py` writes those
of payments). A second success, a late failure, a repeated callback change nothing.
"""

from guichet import tracing
from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import Transaction, require
from guichet.domain import posting_rules as ledger
from guichet.domain.catalogue import Catalogue
from guichet.domain.payments import PAYMENT_TRANSITIONS, REFUND_TRANSITIONS, Payment, Refund
from guichet.domain.posting_rules import DISBURSED, RELEASED, Movement
from guichet.domain.settlement import Settlement
from guichet.ledger import postings as ledger_rows
from guichet.payments import refund_repository as refunds
from guichet.payments import repository as payments
from guichet.payments.settlement_batch import close_incident
from guichet.providers.base import Refused, Succeeded
from guichet.webhooks import outbox
from guichet.webhooks.outbox import Event


def _said(reference: str, outcome: Succeeded | Refused) -> tracing.Attributes:
    return {tracing.PAYMENT: reference, "guichet.outcome": type(outcome).__name__.lower()}


@tracing.traced("settle payment", lambda _, payment, outcome, **__: _said(payment.reference, outcome))
async def settle_payment(
    ctx: AppContext, payment: Payment, outcome: Succeeded | Refused, *, at_initiation: bool = False
) -> Payment:
    """The payment as stored afterwards, whoever settled it. `at_initiation`: the caller is told by a 402 (D20)."""
    succeeded = isinstance(outcome, Succeeded)
    name = "confirmed" if succeeded else "refused_at_initiation" if at_initiation else "refused"
    settlement = Settlement(
        payment,
        PAYMENT_TRANSITIONS[name],
        await ctx.catalogues.of(payment.merchant_id),
        ctx.clock.now(),
        failure=None if isinstance(outcome, Succeeded) else outcome.reason,
        provider_ref=outcome.provider_reference if isinstance(outcome, Succeeded) else None,
    )
    settled = await ctx.settlements.add(settlement)
    ctx.wakeups.deliveries.set()
    return settled


@tracing.traced("settle refund", lambda _, refund, __, outcome: _said(refund.payment_reference, outcome))
async def settle_refund(ctx: AppContext, refund: Refund, payment: Payment, outcome: Succeeded | Refused) -> Refund:
    """The refund as it is stored afterwards. Success also refunds the payment and says both, in that order (D35)."""
    catalogue = await ctx.catalogues.of(refund.merchant_id)
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        if isinstance(outcome, Succeeded):
            settled = await _disburse(tx, refund, payment, catalogue, now)
        else:
            settled = await _release(tx, refund, payment, catalogue, outcome.reason, now)
        if settled is None:
            return require(await refunds.by_id(tx, refund.id))
        await close_incident(tx, settled, now)
    ctx.wakeups.deliveries.set()
    return settled


async def _disburse(
    tx: Transaction, refund: Refund, payment: Payment, catalogue: Catalogue, now: Instant
) -> Refund | None:
    told, followed = REFUND_TRANSITIONS["disbursed"], PAYMENT_TRANSITIONS["refunded"]
    settled = await refunds.finish(tx, refund.id, told.target, now)
    if settled is None:
        return None
    entries = ledger.refund_disbursed(payment.operator, payment.amount, payment.fee_amount, payment.currency)
    await _post(tx, refund, DISBURSED, entries, now)
    finish = payments.Finish(payment.id, require(followed.source), followed.target, now)
    (refunded,) = await payments.finish(tx, [finish])
    await outbox.emit(
        tx,
        [
            Event(require(told.event), payment, catalogue, now, settled),
            Event(require(followed.event), refunded, catalogue, now),
        ],
    )
    return settled


async def _release(
    tx: Transaction, refund: Refund, payment: Payment, catalogue: Catalogue, reason: str, now: Instant
) -> Refund | None:
    transition = REFUND_TRANSITIONS["refused"]
    settled = await refunds.finish(tx, refund.id, transition.target, now, reason)
    if settled is None:
        return None
    if settled.held:
        await _post(tx, refund, RELEASED, ledger.refund_release(payment.amount), now)
    await outbox.emit(tx, [Event(require(transition.event), payment, catalogue, now, settled)])
    return settled


async def _post(tx: Transaction, refund: Refund, cause: str, entries: list[ledger.Posting], now: Instant) -> None:
    movement = Movement(refund.merchant_id, refund.env, refund.currency, cause, refund.id, entries, now)
    await ledger_rows.post(tx, [movement])
