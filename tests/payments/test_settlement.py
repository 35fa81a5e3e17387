"""Results that arrive together share a transaction; each is applied on its own, once or not at all."""

import asyncio
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import delete, insert

from guichet.bootstrap import settlement_batches
from guichet.db.engine import require
from guichet.db.errors import ConstraintViolated
from guichet.db.tables import postings
from guichet.domain.money import Hundredths
from guichet.domain.payments import Payment
from guichet.domain.posting_rules import COLLECTED, WalletStatus
from guichet.payments import repository as payments
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Refused, Succeeded
from tests.fakes.recording_database import RecordingDatabase
from tests.payments.conftest import LivePayments

pytestmark = pytest.mark.both_databases


async def pending(live: LivePayments, number: int, **fields: Any) -> Payment:
    made = await live.merchant.pay(external_id=f"e{number}", **fields)
    return require(await payments.by_reference(live.ctx.db, live.merchant.id, "live", made["reference"]))


def paid(row: Payment) -> Succeeded:
    return Succeeded(Hundredths(row.total_amount), row.currency, f"tx-{row.reference}")


async def test_different_results_at_once_are_each_applied(live: LivePayments) -> None:
    rows = [await pending(live, number) for number in range(12)]
    refused = Refused("insufficient_funds")
    outcomes = [(row, refused if row.id % 3 == 0 else paid(row)) for row in rows]
    # The second outcome of a payment comes too late, whichever it is, also within one batch.
    late = [(row, paid(row) if row.id % 3 == 0 else refused) for row in reversed(rows)]
    settled = await asyncio.gather(*(settle_payment(live.ctx, *each) for each in [*outcomes, *late]))
    for (row, _), after in zip([*outcomes, *late], settled, strict=True):
        assert after.id == row.id
        assert after.status == ("failed" if row.id % 3 == 0 else "succeeded")
        assert after.failure_reason == ("insufficient_funds" if row.id % 3 == 0 else None)
    assert await live.balance() == 8 * 5000
    queued_events = await live.queued_events()
    assert (queued_events.count("payment.succeeded"), queued_events.count("payment.failed")) == (8, 4)


async def test_settling_many_at_once_costs_few_round_trips(live: LivePayments) -> None:
    """The number of round trips to PostgreSQL does not grow with the number of results."""
    statements = []
    for group in (1, 9):
        rows = [await pending(live, 10 * group + number) for number in range(group)]
        recording_db = RecordingDatabase(live.ctx.db)
        ctx = structs.replace(
            live.ctx,
            db=recording_db,
            settlements=settlement_batches(recording_db, live.ctx.settings, live.ctx.hand_over),
        )
        await ctx.catalogues.of(live.merchant.id)
        await asyncio.gather(*(settle_payment(ctx, row, paid(row)) for row in rows))
        statements.append(len(recording_db.seen))
    assert 0 < statements[0] == statements[1] <= 6


async def test_results_that_come_one_after_the_other_within_the_gathering_share_a_transaction(
    live: LivePayments,
) -> None:
    rows = [await pending(live, number) for number in range(3)]
    recording_db = RecordingDatabase(live.ctx.db)
    ctx = structs.replace(
        live.ctx,
        db=recording_db,
        settlements=settlement_batches(recording_db, live.ctx.settings, live.ctx.hand_over, gathers=0.2),
    )
    await ctx.catalogues.of(live.merchant.id)
    settling = []
    for row in rows:
        settling.append(asyncio.create_task(settle_payment(ctx, row, paid(row))))
        for _ in range(5):
            await asyncio.sleep(0)
    assert not recording_db.seen
    assert [each.status for each in await asyncio.gather(*settling)] == ["succeeded"] * 3
    assert 0 < len(recording_db.seen) <= 6, "as many statements as for one"


async def test_a_payment_that_cannot_be_settled_delays_no_other(live: LivePayments) -> None:
    """One of its postings exists already, as after tampering: that payment stays pending, with an incident."""
    rows = [await pending(live, number) for number in range(5)]
    strange = rows[2]
    spurious = {"merchant_id": live.merchant.id, "env": "live", "currency": "XOF", "cause": COLLECTED, "created_at": 1}
    spurious |= {"subject_id": strange.id, "leg": "amount", "source": "float:first::XOF", "destination": "wallet"}
    async with live.ctx.db.transaction() as tx:
        await tx.write(insert(postings).values(**spurious, amount=1))
    settling = (settle_payment(live.ctx, row, paid(row)) for row in rows)
    settled = await asyncio.gather(*settling, return_exceptions=True)
    assert isinstance(settled[2], ConstraintViolated)
    assert [each.status for each in settled if isinstance(each, Payment)] == ["succeeded"] * 4
    assert await live.state(strange.reference) == "pending"
    assert await live.balance() == 4 * 5000
    async with live.ctx.db.transaction() as tx:
        await tx.write(delete(postings).where(postings.c.subject_id == strange.id))
    assert (await settle_payment(live.ctx, strange, paid(strange))).status == "succeeded"


@pytest.mark.parametrize("status", ["Gelé", "Fermé"])
async def test_frozen_and_open_wallets_are_settled_in_one_batch(live: LivePayments, status: WalletStatus) -> None:
    frozen = [await pending(live, number) for number in range(3)]
    other = (await live.service.merchant()).live
    await other.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
    made = await other.pay()
    open_one = require(await payments.by_reference(live.ctx.db, other.id, "live", made["reference"]))
    await live.set_wallet(status)
    await asyncio.gather(*(settle_payment(live.ctx, row, paid(row)) for row in (*frozen, open_one)))
    assert await live.balance() == 0
    assert (await other.get("/balance?currency=XOF")).data["balance"] == 5000
    await live.set_wallet()
    await live.service.run_worker()
    assert await live.balance() == 3 * 5000
