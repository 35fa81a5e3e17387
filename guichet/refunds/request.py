"""Refund requests: the one refund of a succeeded payment (docs/contract.md, "States"; D22, D23).

A request moves the merchant's part of the money to the hold account, in the transaction that records the refund. The
disbursement follows (`refunds/disbursement.py`): it posts the held money, or releases it when the provider refuses.
"""

from functools import partial
from typing import Literal

import msgspec

from guichet.audit_log import entries as audit_log
from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import Reader, require
from guichet.db.lost_answers import repeat_when_lost
from guichet.disputes import repository as disputes
from guichet.domain.audit_log import Act, Actor, Facts
from guichet.domain.disputes import RefundBarrier, refund_barrier
from guichet.domain.errors import Conflict
from guichet.domain.payments import DEFAULT_REASON, Payment, Refund
from guichet.domain.posting_rules import ACTIVE
from guichet.ledger import wallets
from guichet.merchants import idempotency
from guichet.merchants.idempotency import IdempotencyKey
from guichet.refunds import proposal_repository
from guichet.refunds import repository as refund_repository
from guichet.refunds.disbursement import process_refund
from guichet.refunds.holds import lock_wallet, post_hold

#: Why a refund cannot be asked for now. With too little in the wallet it would be recorded and would fail, and a
#: payment has one refund (D22, D23): a page must not offer that.
RefundObstacle = (
    Literal["already_refunded", "not_refundable", "wallet_not_active", "insufficient_balance"] | RefundBarrier
)


async def refund_obstacle(db: Reader, payment: Payment) -> RefundObstacle | None:
    """Why the payment cannot be refunded as things are now; None if it can. `request_refund` decides."""
    if payment.status == "refunded":
        return "already_refunded"
    if payment.status != "succeeded":
        return "not_refundable"
    if await refund_repository.of_payment(db, payment.merchant_id, payment.id) is not None:
        return "already_refunded"
    if barrier := refund_barrier(await disputes.of_payment(db, payment.id)):
        return barrier
    wallet = await wallets.wallet(db, payment.merchant_id, payment.env, payment.currency)
    if wallet is not None and wallet.status != ACTIVE and payment.env == "live":
        return "wallet_not_active"
    return None if wallet is not None and wallet.balance >= payment.amount else "insufficient_balance"


async def request_refund(
    ctx: AppContext,
    payment: Payment,
    reason: str | None,
    actor: Actor | None = None,
    key: IdempotencyKey | None = None,
) -> Refund:
    """Records the refund of a succeeded payment. In the test environment it is executed at once. `actor`: the person
    who asks for it, whom the audit log names; None for a merchant's program. `key`: that of its request.

    Raises Conflict when the payment is not `succeeded`, has a refund already or a dispute that was not won, its wallet
    is not `Actif`, or `key` is taken.
    """
    await check_succeeded(ctx.db, payment)
    now = ctx.clock.now()
    new_refund = refund_repository.new_refund(payment, DEFAULT_REASON if reason is None else reason, now)
    refund = await repeat_when_lost(ctx.db, partial(_record, ctx, payment, new_refund, actor, key, now))
    if payment.env == "live":
        ctx.wakeups.refunds.set()
        return refund
    return await process_refund(ctx, refund)


async def check_succeeded(db: Reader, payment: Payment) -> None:
    """Raises Conflict unless the payment is `succeeded`."""
    if payment.status == "refunded":
        raise await already_refunded(db, payment)
    if payment.status != "succeeded":
        raise Conflict("Seul un paiement réussi peut être remboursé.", reason="not_refundable")


async def _record(
    ctx: AppContext,
    payment: Payment,
    refund: Refund,
    actor: Actor | None,
    key: IdempotencyKey | None,
    now: Instant,
) -> Refund:
    """Stores the refund in one transaction, with `held` as the balance allows. It is not stored twice."""
    async with ctx.db.transaction() as tx:
        locked = await lock_wallet(tx, payment, now)
        covered = locked.balance >= payment.amount
        refund_id = await refund_repository.insert_new(tx, msgspec.structs.replace(refund, held=covered))
        if refund_id is None:
            existing = await refund_repository.of_payment(tx, payment.merchant_id, payment.id)
            if existing is not None and existing.reference == refund.reference:
                return existing
            raise await already_refunded(tx, payment)
        if key is not None and not await idempotency.claim(tx, key, refund.reference, now):
            raise idempotency.reused()
        await proposal_repository.close(tx, payment.id, "confirmed", now)
        if covered:
            await post_hold(tx, payment, refund_id, now)
        if actor is not None:
            await audit_log.record(tx, _act(actor, refund), now)
        return require(await refund_repository.by_id(tx, refund_id))


def _act(actor: Actor, refund: Refund) -> Act:
    facts: Facts = {"payment": refund.payment_reference, "amount": refund.amount, "currency": refund.currency}
    return Act(actor, "refund.requested", "refund", refund.reference, refund.merchant_id, refund.reason, after=facts)


async def already_refunded(db: Reader, payment: Payment) -> Conflict:
    """The error that names the payment's refund, whatever became of it."""
    refund = await refund_repository.of_payment(db, payment.merchant_id, payment.id)
    return Conflict(
        "Ce paiement a déjà fait l'objet d'une demande de remboursement.",
        reason="already_refunded",
        reference=refund.reference if refund else None,
    )
