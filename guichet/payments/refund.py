"""Refunds: requested by the merchant, disbursed by the worker (docs/contract.md, "States"; D22, D23).

request → hold (the wallet's part is set aside) → disburse → posted, or released when the operator refuses.
"""

from typing import Final

import msgspec

from guichet import tracing
from guichet.clock import SECOND, Instant
from guichet.context import Core, reversal_of
from guichet.db.engine import Transaction, given
from guichet.domain import posting_rules as ledger
from guichet.domain.errors import Conflict
from guichet.domain.payments import DEFAULT_REASON, INCIDENT_AGE_SECONDS, Payment, Refund, ask_again_after
from guichet.domain.posting_rules import ACTIVE, HELD, Movement
from guichet.domain.references import new_reference
from guichet.ledger import postings as ledger_rows
from guichet.logs import log
from guichet.payments import incidents
from guichet.payments import refund_repository as refunds
from guichet.payments import repository as payments
from guichet.payments.integrity import confirms
from guichet.payments.polling import LEASE, within_budget
from guichet.payments.settlement import settle_refund
from guichet.providers.base import Accepted, InitiateAnswer, NotTaken, Refused, StatusAnswer, Succeeded

_RELEASED_AT_ONCE: Final = 500
_ALREADY: Final = "Ce paiement a déjà fait l'objet d'une demande de remboursement."


async def request_refund(core: Core, payment: Payment, reason: str | None) -> Refund:
    """Records the one refund of a succeeded payment; in the test environment it is executed at once.

    Raises Conflict: the payment is not `succeeded`, has a refund already, or the wallet is not `Actif`.
    """
    if payment.status == "refunded":
        raise Conflict(_ALREADY)
    if payment.status != "succeeded":
        raise Conflict("Seul un paiement réussi peut être remboursé.")
    if payment.env == "live":
        # A wallet just reopened: what waited for it must count before the one refund there can be is judged.
        await ledger_rows.release_suspended(core.db, core.clock.now(), _RELEASED_AT_ONCE)
    async with core.db.transaction() as tx:
        refund = await _record(core, tx, payment, reason)
    if payment.env == "live":
        core.wake.refunds.set()
        return refund
    return await disburse(core, refund)


async def _record(core: Core, tx: Transaction, payment: Payment, reason: str | None) -> Refund:
    now = core.clock.now()
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
    return given(await refunds.by_id(tx, refund_id))


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


async def refresh_refund(core: Core, refund: Refund) -> Refund:
    """The refund after its operator was asked, if a disbursement is in progress there; else as it is."""
    if refund.status != "pending" or refund.sent_at is None:
        return refund
    return await disburse(core, refund)


@tracing.traced("disburse refund", lambda _, refund: {tracing.PAYMENT: refund.payment_reference})
async def disburse(core: Core, refund: Refund) -> Refund:
    """One step of a pending refund: send it if it never left, else ask what became of it. One works at a time."""
    now = core.clock.now()
    leased = await refunds.lease(core.db, refund.id, now, now + LEASE)
    if leased is None:
        return given(await refunds.by_id(core.db, refund.id))
    payment = given(await payments.by_id(core.db, refund.payment_id))
    if not leased.held:
        return await settle_refund(core, leased, payment, Refused("insufficient_funds"))
    if leased.sent_at is None:
        return await _send(core, leased, payment)
    connector = core.registry.connector(given(leased.connection))
    question = connector.refund_status(reversal_of(core, leased, payment))
    answer = await within_budget(question, given(leased.connection), "refund_status")
    return await _apply(core, leased, payment, answer)


async def _send(core: Core, refund: Refund, payment: Payment) -> Refund:
    """The mark goes to disk before the first byte: a crash in between makes us ask, never send twice."""
    name = core.registry.refund_route(payment.env, payment.operator, given(payment.connection))
    if name is None:
        return await settle_refund(core, refund, payment, Refused("no_refund"))
    sending = await refunds.mark_sending(core.db, refund.id, name, core.clock.now())
    if sending is None:
        return given(await refunds.by_id(core.db, refund.id))
    disbursement = core.registry.connector(name).refund(reversal_of(core, sending, payment))
    answer = await within_budget(disbursement, name, "refund")
    return await _apply(core, sending, payment, answer)


async def _apply(core: Core, refund: Refund, payment: Payment, answer: InitiateAnswer | StatusAnswer) -> Refund:
    due_at = await _next_question(core, refund)
    match answer:
        case Succeeded():
            if await confirms(core, payment, answer, "refund", refund.reference):
                return await settle_refund(core, refund, payment, answer)
            await refunds.ask_later(core.db, refund.id, due_at)
        case Refused():
            return await settle_refund(core, refund, payment, answer)
        case NotTaken():
            log.warning("refund.not_taken", reference=refund.reference, raw=answer.raw)
            await refunds.mark_not_sent(core.db, refund.id, due_at)
        case Accepted(provider_ref=ref, memo=memo) if ref or memo:
            text = msgspec.json.encode(memo).decode() if memo else None
            await refunds.mark_taken(core.db, refund.id, ref, text, due_at)
        case _:
            await refunds.ask_later(core.db, refund.id, due_at)
    return given(await refunds.by_id(core.db, refund.id))


async def _next_question(core: Core, refund: Refund) -> Instant:
    """When to work on a pending refund again; after 72 hours a person is told as well."""
    now = core.clock.now()
    age = (now - refund.created_at) / SECOND
    if age >= INCIDENT_AGE_SECONDS:
        await incidents.report(
            core.db,
            refund.merchant_id,
            refund.env,
            incidents.STUCK,
            "refund",
            refund.reference,
            refund.connection,
            "pending for more than 72 hours",
            now,
        )
    return now + ask_again_after(refund.asked, age) * SECOND
