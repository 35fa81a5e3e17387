"""Refunds that a program proposes and a person decides (docs/contract.md, "Proposed refunds"): nothing moves before.

A proposal is closed by whatever refunds its payment, in the same transaction (`refunds/request.py`), or by a person who
declines it.
"""

from functools import partial

from guichet.audit_log import entries as audit_log
from guichet.clock import Instant, later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.lost_answers import repeat_when_lost
from guichet.domain.audit_log import Act, Actor
from guichet.domain.errors import Conflict
from guichet.domain.merchants import Caller
from guichet.domain.payments import Payment
from guichet.domain.refund_proposals import LASTS, RefundProposal
from guichet.merchants import idempotency, key_acts
from guichet.merchants.idempotency import IdempotencyKey
from guichet.refunds import proposal_repository
from guichet.refunds import repository as refund_repository
from guichet.refunds.holds import lock_wallet
from guichet.refunds.request import already_refunded, check_succeeded


async def propose(
    ctx: AppContext, caller: Caller, payment: Payment, reason: str | None, key: IdempotencyKey | None
) -> RefundProposal:
    """The new proposal, or the one of the payment that stands. `caller`: has a key. `key`: that of its request.

    Raises Conflict as `request_refund` does, but for a balance that is too small.
    """
    now = ctx.clock.now()
    await idempotency.find(ctx.db, key)
    stored = await proposal_repository.of_payment(ctx.db, payment.id)
    if stored is not None and stored.stands_at(now):
        await ctx.db.wait_for_replication()  # The request that made it may still wait for the standby.
        return stored
    await check_succeeded(ctx.db, payment)
    return await repeat_when_lost(ctx.db, partial(_open, ctx, caller, payment, reason, key, now))


async def _open(
    ctx: AppContext, caller: Caller, payment: Payment, reason: str | None, key: IdempotencyKey | None, now: Instant
) -> RefundProposal:
    key_id = require(caller.key_id)
    new = RefundProposal(payment.id, payment.merchant_id, payment.env, key_id, "open", reason, now, later(now, LASTS))
    async with ctx.db.transaction() as tx:
        # A refund takes this lock first, too: it comes before, and is seen here, or after, and closes the proposal.
        await lock_wallet(tx, payment, now)
        if await refund_repository.of_payment(tx, payment.merchant_id, payment.id) is not None:
            raise await already_refunded(tx, payment)
        stored = await proposal_repository.insert_new(tx, new)
        if stored is None:  # Of the same request, which came twice at the same time.
            return require(await proposal_repository.of_payment(tx, payment.id))
        if not await idempotency.claim(tx, key, payment.reference, now):
            raise idempotency.reused()
        if caller.livemode:
            await key_acts.add(tx, payment.merchant_id, key_id, "refund.proposed", payment.reference, now)
    return stored


async def decline(ctx: AppContext, payment: Payment, actor: Actor) -> None:
    """Raises Conflict if there is no open proposal any more."""
    now = ctx.clock.now()
    act = Act(actor, "refund.declined", "payment", payment.reference, payment.merchant_id, after={"env": payment.env})
    async with ctx.db.transaction() as tx:
        if not await proposal_repository.close(tx, payment.id, "declined", now):
            raise Conflict
        await audit_log.record(tx, act, now)
