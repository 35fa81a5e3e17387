"""Providers' answers about pending payments: unknown, another amount, late."""

import asyncio
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text

from guichet.clock import DAY, HOUR, SECOND
from guichet.db.engine import require
from guichet.db.postgres.pool import STATEMENT_TIMEOUT
from guichet.domain.payments import POLL_INTERVALS
from guichet.incidents import repository as incidents
from guichet.payments import pending
from guichet.payments.polling import REQUEST_WAIT, poll_payment
from guichet.providers.base import Accepted, Charge, Succeeded, Unknown
from tests.fakes.scripted_provider import done, slow, taken
from tests.patience import PATIENCE
from tests.payments.conftest import LivePayments, stored


async def test_an_unknown_payment_stays_pending_and_is_polled_at_growing_intervals(sqlite_live: LivePayments) -> None:
    """Then daily after 72 hours, without end, with an incident for the staff."""
    live, polled_at = sqlite_live, []

    def silent(charge: Charge) -> Unknown:
        polled_at.append(live.ctx.clock.now())
        return Unknown("timeout")

    live.first.script("status", silent)
    payment = await live.merchant.pay()
    started = live.ctx.clock.now()
    while live.ctx.clock.now() - started < 6 * DAY:
        (due,) = require(await live.ctx.db.one(text("SELECT min(next_poll_at) FROM payments WHERE status = 'pending'")))
        assert due is not None, "a pending payment always has a next poll"
        assert due > live.ctx.clock.now()
        await live.service.run_worker((due - live.ctx.clock.now()) / SECOND)
    gaps = [(b - a) // SECOND for a, b in zip([started, *polled_at], polled_at, strict=False)]
    young = [gap for gap, at in zip(gaps, polled_at, strict=True) if at - started < 72 * HOUR + 1]
    old = gaps[len(young) + 1 :]
    assert young[1 : 1 + len(POLL_INTERVALS)] == [interval // SECOND for interval in POLL_INTERVALS]
    assert set(young[len(POLL_INTERVALS) :]) == {3600}
    assert old
    assert set(old) == {24 * 3600}
    assert await live.state(payment["reference"]) == "pending"
    (incident,) = await incidents.still_open(live.ctx.db)
    assert (incident.kind, incident.reference) == (incidents.STUCK, payment["reference"])
    live.first.script("status", done)
    assert (await live.merchant.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
    assert await live.balance() == 5000


async def test_frequent_reads_do_not_postpone_the_next_poll(sqlite_live: LivePayments) -> None:
    live = sqlite_live
    live.first.script("status", Accepted())
    payment = await live.merchant.pay()
    planned = (await stored(live, payment)).next_poll_at
    for _ in range(15):
        await live.merchant.get(f"/payments/{payment['reference']}")
    assert len(live.first.references_of("status")) == 15, "a read polls at once"
    assert (await stored(live, payment)).next_poll_at == planned
    live.first.script("status", done)
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "succeeded"


@pytest.mark.both_databases
@pytest.mark.timeout(PATIENCE, method="thread")  # The event loop itself would be blocked.
async def test_reads_go_on_while_another_process_asks(live: LivePayments) -> None:
    """Its lease stays when it is killed. A read that came between the end of a question and its removal used to wait
    for it without an end, and nothing else ran any more."""
    payment = await live.merchant.pay()
    row, now = await stored(live, payment), live.ctx.clock.now()
    assert await pending.lease(live.ctx.db, row.id, now, now + 30 * SECOND, now) is not None
    row = await stored(live, payment)
    reads = []
    for _ in range(500):  # One in each iteration of the event loop.
        reads.append(asyncio.create_task(poll_payment(live.ctx, row)))
        await asyncio.sleep(0)
    assert {read.status for read in await asyncio.gather(*reads)} == {"pending"}
    assert live.first.references_of("status") == []
    assert live.ctx.running_polls == {}
    live.service.clock.advance(31)
    await live.merchant.get(f"/payments/{payment['reference']}")
    assert live.first.references_of("status") == [payment["reference"]]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda charge: Succeeded(charge.amount - 100, charge.payment.currency),
        lambda charge: Succeeded(charge.amount + 100, charge.payment.currency),
        lambda charge: Succeeded(charge.amount // 100, charge.payment.currency),
        lambda charge: Succeeded(charge.amount, "XAF"),
        lambda charge: Succeeded(None, None),
    ],
)
async def test_a_success_with_another_amount_or_currency_is_never_credited(
    sqlite_live: LivePayments, wrong: Any
) -> None:
    live = sqlite_live
    live.first.script("status", wrong)
    payment = await live.merchant.pay()
    for _ in range(3):
        assert (await live.merchant.get(f"/payments/{payment['reference']}")).data["status"] == "pending"
        await live.service.run_worker(60)
    assert await live.balance() == 0
    assert await live.queued_events() == []
    (incident,) = await incidents.still_open(live.ctx.db)
    assert (incident.kind, incident.reference) == (incidents.MISMATCH, payment["reference"])
    live.first.script("status", done)
    await live.service.run_worker(3600)
    assert await live.balance() == 5000


async def test_a_success_at_initiation_is_checked_for_its_amount(live: LivePayments) -> None:
    live.first.script("initiate", lambda charge: Succeeded(charge.amount * 2, charge.payment.currency), done)
    wrong, right = await live.merchant.pay(), await live.merchant.pay()
    assert await live.state(wrong["reference"]) == "pending"
    assert await live.state(right["reference"]) == "succeeded"
    assert await live.balance() == 5000
    live.first.script("status", done)
    await live.service.run_worker(5)
    assert await live.balance() == 10_000


async def test_a_read_waits_for_a_slow_provider_for_a_short_time_only(sqlite_live: LivePayments) -> None:
    """Its answer is used all the same."""
    live = sqlite_live
    live.first.script("status", slow(done, REQUEST_WAIT + 1))
    payment = await live.merchant.pay()
    assert (await live.merchant.get(f"/payments/{payment['reference']}")).data["status"] == "pending"
    async with asyncio.timeout(PATIENCE):
        while await live.state(payment["reference"]) != "succeeded":
            await asyncio.sleep(0.05)
    assert len(live.first.references_of("status")) == 1


@pytest.mark.both_databases
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_a_read_answers_while_its_poll_cannot_write(live: LivePayments) -> None:
    live.first.script("status", done)
    live.first.script("refund", taken)
    live.first.script("refund_status", done)
    paid, pending = await live.merchant.pay(), await live.merchant.pay()
    assert (await live.merchant.get(f"/payments/{paid['reference']}")).data["status"] == "succeeded"
    refund = (await live.merchant.post(f"/payments/{paid['reference']}/refund")).data
    await live.service.run_worker()
    connection = await asyncpg.connect(live.ctx.settings.database_url)
    async with connection.transaction():
        await connection.execute("SELECT 1 FROM payments FOR UPDATE")
        await connection.execute("SELECT 1 FROM refunds FOR UPDATE")
        async with asyncio.timeout(STATEMENT_TIMEOUT):
            answers = [
                await live.merchant.get(f"/payments/{pending['reference']}"),
                await live.merchant.get(f"/refunds/{refund['reference']}"),
            ]
        assert [answer.data["status"] for answer in answers] == ["pending", "pending"]
    await connection.close()
    async with asyncio.timeout(PATIENCE):  # Both polls go on.
        while (
            await live.state(pending["reference"]) != "succeeded" or await live.state(paid["reference"]) != "refunded"
        ):
            await asyncio.sleep(0.05)


async def test_a_silent_provider_delays_no_other_polling(sqlite_live: LivePayments) -> None:
    live = sqlite_live
    live.first.script("status", slow(done, 2 * PATIENCE))
    live.second.script("status", done)
    await asyncio.gather(*(live.merchant.pay() for _ in range(150)))
    other = await live.merchant.pay(operator="moov")
    live.service.clock.advance(6)
    live.service.worker.start()
    async with asyncio.timeout(PATIENCE):
        while await live.state(other["reference"]) != "succeeded":
            await asyncio.sleep(0.02)
    await live.service.worker.stop()
    assert len(live.first.references_of("status")) <= 128
