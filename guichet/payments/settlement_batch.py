"""Writes outcomes of payments, those that come at the same time in one transaction.

The conditional UPDATE decides who applies an outcome: whatever comes second, in the same batch too, changes nothing.
Rows are written in one order (payments by id, links by id), so that two batches never wait for each other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from guichet.clock import SECOND, Instant
from guichet.db.batching import Result
from guichet.db.engine import Database, StorageError, Transaction, require
from guichet.domain import posting_rules as ledger
from guichet.domain.payments import INCIDENT_AGE_SECONDS, Payment, Refund
from guichet.domain.posting_rules import COLLECTED, Movement
from guichet.domain.settlement import Settlement
from guichet.ledger import postings as ledger_rows
from guichet.payments import incidents
from guichet.payments import link_repository as links
from guichet.payments import repository as payments
from guichet.webhooks import outbox
from guichet.webhooks.outbox import Event

#: Payments settled together; on SQLite each holds the event loop for about fifty microseconds.
AT_ONCE: Final = 32


@dataclass(frozen=True, slots=True)
class _Applied:
    """A settlement that was the first to come; `payment` as it is stored now."""

    settlement: Settlement
    payment: Payment


async def settle_all(db: Database, batch: Sequence[Settlement]) -> Sequence[Result[Payment]]:
    """Each payment as it is stored afterwards, whoever settled it. One that cannot be settled holds up no other."""
    try:
        return await _settle(db, batch)
    except StorageError as error:
        if len(batch) == 1:
            return [error]
    return [result for each in batch for result in await settle_all(db, [each])]


async def _settle(db: Database, batch: Sequence[Settlement]) -> list[Payment]:
    async with db.transaction() as tx:
        applied = await _finish(tx, batch)
        await _credit(tx, [each for each in applied if each.settlement.succeeds])
        await _end_uses(tx, applied)
        await outbox.emit(tx, _events(applied))
        for each in applied:
            await close_incident(tx, each.payment, each.settlement.now)
        stored = {each.payment.id: each.payment for each in applied}
        for settlement in batch:
            if settlement.payment.id not in stored:
                stored[settlement.payment.id] = require(await payments.by_id(tx, settlement.payment.id))
    return [stored[settlement.payment.id] for settlement in batch]


async def _finish(tx: Transaction, batch: Sequence[Settlement]) -> list[_Applied]:
    # Of two outcomes of one payment the first to come is applied.
    first = {settlement.payment.id: settlement for settlement in reversed(batch)}
    finishes = [
        payments.Finish(
            payment_id,
            require(settlement.transition.source),
            settlement.transition.target,
            settlement.now,
            settlement.failure_reason,
            settlement.provider_reference,
        )
        for payment_id, settlement in sorted(first.items())
    ]
    finished = sorted(await payments.finish(tx, finishes), key=lambda payment: payment.id)
    return [_Applied(first[payment.id], payment) for payment in finished]


async def _credit(tx: Transaction, applied: Sequence[_Applied]) -> None:
    """A frozen wallet's credit waits in suspense (D24); a test wallet is never frozen (D25)."""
    live = {each.payment.merchant_id for each in applied if each.payment.env == "live"}
    frozen = await ledger_rows.frozen_wallets(tx, live) if live else set()
    await ledger_rows.post(tx, [_collected(each, frozen) for each in applied])


def _collected(applied: _Applied, frozen: set[tuple[int, str, str]]) -> Movement:
    payment = applied.payment
    wallet = payment.merchant_id, payment.env, payment.currency
    entries = ledger.collection(
        payment.operator, payment.amount, payment.fee_amount, payment.currency, to_suspense=wallet in frozen
    )
    return Movement(*wallet, COLLECTED, payment.id, entries, applied.settlement.now)


async def _end_uses(tx: Transaction, applied: Iterable[_Applied]) -> None:
    """A link's use is completed by a success and given back by a failure."""
    for_links = [each for each in applied if each.payment.link_id is not None]
    uses = [(require(each.payment.link_id), each.settlement.succeeds) for each in for_links]
    await links.complete_uses(tx, [link for link, succeeded in uses if succeeded])
    await links.release_uses(tx, [link for link, succeeded in uses if not succeeded])


def _events(applied: Iterable[_Applied]) -> list[Event]:
    return [
        Event(require(each.settlement.transition.event), each.payment, each.settlement.catalogue, each.settlement.now)
        for each in applied
        if each.settlement.transition.event
    ]


async def close_incident(tx: Transaction, settled: Payment | Refund, now: Instant) -> None:
    """What was reported as stuck has ended by itself."""
    if now - settled.created_at >= INCIDENT_AGE_SECONDS * SECOND:
        await incidents.close_settled(tx, settled.merchant_id, settled.reference, now)
