"""Refunds: requested by the merchant, disbursed by the worker (docs/contract.md, "States"; D22, D23).

request → hold (the wallet's part is set aside) → disburse → posted, or released when the operator refuses.
"""

from typing import Final

import msgspec

from guichet import tracing
from guichet.clock import SECOND, Instant
from guichet.context import AppContext, reversal_for
from guichet.db.engine import Transaction, require
from guichet.domain import posting_rules as ledger
from guichet.domain.errors import Conflict
from guichet.domain.payments import DEFAULT_REASON, INCIDENT_AGE_SECONDS, Payment, Refund, poll_interval
from guichet.domain.posting_rules import ACTIVE, HELD, Movement
from guichet.domain.references import new_reference
from guichet.ledger import postings as ledger_rows
from guichet.logs import log
from guichet.payments import incidents
from guichet.payments import refund_repository as refunds
from guichet.payments import repository as payments
from guichet.payments.integrity import confirm_amount
from guichet.payments.polling import LEASE_DURATION, call_provider
from guichet.payments.settlement import settle_refund
from guichet.providers.base import Accepted, InitiationResult, NotProcessed, Refused, StatusResult, Succeeded

_RELEASED_AT_ONCE: Final = 500
_ALREADY: Final = "Ce paiement a déjà fait l'objet d'une demande de remboursement."


async def request_refund(ctx: AppContext, payment: Payment, reason: str | None) -> Refund:
    """Records the one refund of a succeeded payment; in the test environment it is executed at once.

    Raises Conflict: the payment is not `succeeded`, has a refund already, or the wallet is not `Actif`.
    """
    if payment.status == "refunded":
        raise Conflict(_ALREADY)
    if payment.status != "succeeded":
        raise Conflict("Seul un paiement réussi peut être remboursé.")
    if payment.env == "live":
        # A wallet just reopened: what waited for it must count before the one refund there can be is judged.
        await ledger_rows.release_suspended(ctx.db, ctx.clock.now(), _RELEASED_AT_ONCE)
    async with ctx.db.transaction() as tx:
        refund = await _record(ctx, tx, payment, reason)
    if payment.env == "live":
        ctx.wakeups.refunds.set()
        return refund
    return await disburse(ctx, refund)


async def _record(ctx: AppContext, tx: Transaction, payment: Payment, reason: str | None) -> Refund:
    now = ctx.clock.now()
    wallet = (payment.merchant_id, payment.env, payment.currency)
    if payment.env == "live" and await ledger_rows.wallet_status(tx, *wallet) != ACTIVE:
        raise Conflict("Le portefeuille n'accepte pas de mouvement pour le moment.")
    covered = await ledger_rows.lock_balance(tx, *wallet, now) >= payment.amount
    refund_id = await refunds.insert_new(tx, _new_refund(payment, reason, now, held=covered))
    if refund_id is None:
        raise Conflict(_ALREADY)
    if covered:
        movement = Movement(*wallet, HELD, refund_id, ledger.refund_hold(payment.amount), now)
        await ledger_rows.post(tx, [movement])
    return require(await refunds.by_id(tx, refund_id))


def _new_refund(payment: Payment, reason: str | None, now: int, *, held: bool) -> Refund:
    return Refund(
        id=0,
        merchant_id=payment.merchant_id,
        env=payment.env,
        reference=new_reference(now),
        payment_id=payment.id,
        payment_reference=payment.reference,
        amount=payment.total_amount,
        currency=payment.currency,
        status="pending",
        reason=DEFAULT_REASON if reason is None else reason,
        created_at=now,
        processed_at=None,
        held=held,
        connection=None,
        provider_ref=None,
        provider_memo=None,
        failure=None,
        sent_at=None,
        due_at=now,
        asked=0,
        leased_until=None,
    )


async def poll_refund(ctx: AppContext, refund: Refund) -> Refund:
    """The refund after its operator was asked, if a disbursement is in progress there; else as it is."""
    if refund.status != "pending" or refund.sent_at is None:
        return refund
    return await disburse(ctx, refund)


@tracing.traced("disburse refund", lambda _, refund: {tracing.PAYMENT: refund.payment_reference})
async def disburse(ctx: AppContext, refund: Refund) -> Refund:
    """One step of a pending refund: send it if it never left, else ask what became of it. One works at a time."""
    now = ctx.clock.now()
    leased = await refunds.lease(ctx.db, refund.id, now, now + LEASE_DURATION)
    if leased is None:
        return require(await refunds.by_id(ctx.db, refund.id))
    payment = require(await payments.by_id(ctx.db, refund.payment_id))
    if not leased.held:
        return await settle_refund(ctx, leased, payment, Refused("insufficient_funds"))
    if leased.sent_at is None:
        return await _send(ctx, leased, payment)
    provider = ctx.registry.provider(require(leased.connection))
    question = provider.refund_status(reversal_for(ctx, leased, payment))
    answer = await call_provider(question, require(leased.connection), "refund_status")
    return await _apply(ctx, leased, payment, answer)


async def _send(ctx: AppContext, refund: Refund, payment: Payment) -> Refund:
    """The mark goes to disk before the first byte: a crash in between makes us ask, never send twice."""
    name = ctx.registry.refund_route(payment.env, payment.operator, require(payment.connection))
    if name is None:
        return await settle_refund(ctx, refund, payment, Refused("no_refund"))
    sending = await refunds.mark_sending(ctx.db, refund.id, name, ctx.clock.now())
    if sending is None:
        return require(await refunds.by_id(ctx.db, refund.id))
    disbursement = ctx.registry.provider(name).refund(reversal_for(ctx, sending, payment))
    answer = await call_provider(disbursement, name, "refund")
    return await _apply(ctx, sending, payment, answer)


async def _apply(ctx: AppContext, refund: Refund, payment: Payment, answer: InitiationResult | StatusResult) -> Refund:
    due_at = await _next_question(ctx, refund)
    match answer:
        case Succeeded():
            if await confirm_amount(ctx, payment, answer, "refund", refund.reference):
                return await settle_refund(ctx, refund, payment, answer)
            await refunds.schedule_next_poll(ctx.db, refund.id, due_at)
        case Refused():
            return await settle_refund(ctx, refund, payment, answer)
        case NotProcessed():
            log.warning("refund.not_taken", reference=refund.reference, raw=answer.raw)
            await refunds.mark_not_sent(ctx.db, refund.id, due_at)
        case Accepted(provider_reference=ref, provider_data=memo) if ref or memo:
            text = msgspec.json.encode(memo).decode() if memo else None
            await refunds.mark_taken(ctx.db, refund.id, ref, text, due_at)
        case _:
            await refunds.schedule_next_poll(ctx.db, refund.id, due_at)
    return require(await refunds.by_id(ctx.db, refund.id))


async def _next_question(ctx: AppContext, refund: Refund) -> Instant:
    """When to work on a pending refund again; after 72 hours a person is told as well."""
    now = ctx.clock.now()
    age = (now - refund.created_at) / SECOND
    if age >= INCIDENT_AGE_SECONDS:
        await incidents.report(
            ctx.db,
            refund.merchant_id,
            refund.env,
            incidents.STUCK,
            "refund",
            refund.reference,
            refund.connection,
            "pending for more than 72 hours",
            now,
        )
    return now + poll_interval(refund.asked, age) * SECOND
