"""Applies an outcome: transition, postings, link use and webhook rows, in one transaction.

The conditional UPDATE decides who applies it. A second success, a late failure, a repeated callback change nothing.
"""

from guichet.clock import SECOND, Instant
from guichet.domain import ledger
from guichet.domain.catalogue import Catalogue
from guichet.domain.ledger import ACTIVE, COLLECTED, DISBURSED, RELEASED
from guichet.domain.payments import INCIDENT_AGE_SECONDS, PAYMENT_TRANSITIONS, REFUND_TRANSITIONS, Payment, Refund
from guichet.flows.core import Core
from guichet.operators.base import Refused, Succeeded
from guichet.storage import incidents, links, payments, refunds
from guichet.storage import ledger as ledger_rows
from guichet.storage.engine import Transaction, given
from guichet.webhooks import outbox


async def settle_payment(
    core: Core, payment: Payment, outcome: Succeeded | Refused, *, at_initiation: bool = False
) -> Payment:
    """The payment as stored afterwards, whoever settled it. `at_initiation`: the caller is told by a 402 (D20)."""
    succeeded = isinstance(outcome, Succeeded)
    name = "confirmed" if succeeded else "refused_at_initiation" if at_initiation else "refused"
    transition = PAYMENT_TRANSITIONS[name]
    catalogue = await core.catalogues.of(payment.merchant_id)
    now = core.clock.now()
    async with core.db.transaction() as tx:
        settled = await payments.finish(
            tx,
            payment.id,
            given(transition.source),
            transition.target,
            now,
            failure=None if isinstance(outcome, Succeeded) else outcome.reason,
            provider_ref=outcome.provider_ref if isinstance(outcome, Succeeded) else None,
        )
        if settled is None:
            return given(await payments.by_id(tx, payment.id))
        await (_credit(tx, settled, now) if succeeded else _give_use_back(tx, settled))
        if transition.event:
            await outbox.emit(tx, transition.event, settled, catalogue, now)
        await _close_incident(tx, settled, now)
    core.wake.deliveries.set()
    return settled


async def _credit(tx: Transaction, payment: Payment, now: Instant) -> None:
    """A frozen wallet's credit waits in suspense (D24); a test wallet is never frozen (D25)."""
    status = ACTIVE
    if payment.env == "live":
        status = await ledger_rows.wallet_status(tx, payment.merchant_id, payment.env, payment.currency)
    entries = ledger.collection(
        payment.operator, payment.amount, payment.fee_amount, payment.currency, to_suspense=status != ACTIVE
    )
    await _post(tx, payment, COLLECTED, payment.id, entries, now)
    if payment.link_id is not None:
        await links.complete_use(tx, payment.link_id)


async def _give_use_back(tx: Transaction, payment: Payment) -> None:
    if payment.link_id is not None:
        await links.release_use(tx, payment.link_id)


async def settle_refund(core: Core, refund: Refund, payment: Payment, outcome: Succeeded | Refused) -> Refund:
    """The refund as it is stored afterwards. Success also refunds the payment and says both, in that order (D35)."""
    catalogue = await core.catalogues.of(refund.merchant_id)
    now = core.clock.now()
    async with core.db.transaction() as tx:
        if isinstance(outcome, Succeeded):
            settled = await _disburse(tx, refund, payment, catalogue, now)
        else:
            settled = await _release(tx, refund, payment, catalogue, outcome.reason, now)
        if settled is None:
            return given(await refunds.by_id(tx, refund.id))
        await _close_incident(tx, settled, now)
    core.wake.deliveries.set()
    return settled


async def _disburse(
    tx: Transaction, refund: Refund, payment: Payment, catalogue: Catalogue, now: Instant
) -> Refund | None:
    told, followed = REFUND_TRANSITIONS["disbursed"], PAYMENT_TRANSITIONS["refunded"]
    settled = await refunds.finish(tx, refund.id, told.target, now)
    if settled is None:
        return None
    entries = ledger.refund_disbursed(payment.operator, payment.amount, payment.fee_amount, payment.currency)
    await _post(tx, payment, DISBURSED, refund.id, entries, now)
    await outbox.emit(tx, given(told.event), payment, catalogue, now, settled)
    refunded = given(await payments.finish(tx, payment.id, given(followed.source), followed.target, now))
    await outbox.emit(tx, given(followed.event), refunded, catalogue, now)
    return settled


async def _release(
    tx: Transaction, refund: Refund, payment: Payment, catalogue: Catalogue, reason: str, now: Instant
) -> Refund | None:
    transition = REFUND_TRANSITIONS["refused"]
    settled = await refunds.finish(tx, refund.id, transition.target, now, reason)
    if settled is None:
        return None
    if settled.held:
        await _post(tx, payment, RELEASED, refund.id, ledger.refund_release(payment.amount), now)
    await outbox.emit(tx, given(transition.event), payment, catalogue, now, settled)
    return settled


async def _close_incident(tx: Transaction, settled: Payment | Refund, now: Instant) -> None:
    """What was reported as stuck has ended by itself."""
    if now - settled.created_at >= INCIDENT_AGE_SECONDS * SECOND:
        await incidents.close_settled(tx, settled.merchant_id, settled.reference, now)


async def _post(
    tx: Transaction, payment: Payment, cause: str, subject_id: int, entries: list[ledger.Posting], now: Instant
) -> None:
    await ledger_rows.post(tx, payment.merchant_id, payment.env, payment.currency, cause, subject_id, entries, now)
