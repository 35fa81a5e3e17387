"""Several processes settle or poll one payment at once: it is settled once and polled by one at a time."""

import asyncio

import pytest
from sqlalchemy import Update, update

from guichet.clock import SECOND
from guichet.db.tables import payments
from guichet.domain.money import Hundredths
from guichet.payments import pending
from guichet.payments.repository import CHANGED_WHILE_PENDING
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Refused, Succeeded
from tests.db.module_statements import module_statements
from tests.fakes.scripted_provider import done, slow
from tests.invariants import check_books
from tests.payments.conftest import LivePayments, stored


@pytest.mark.both_databases
async def test_a_success_settled_sixteen_times_is_credited_once(live: LivePayments) -> None:
    row = await stored(live, await live.merchant.pay())
    success = Succeeded(Hundredths(row.total_amount), row.currency, "tx")
    settled = await asyncio.gather(*(settle_payment(live.ctx, row, success) for _ in range(16)))
    assert {each.status for each in settled} == {"succeeded"}
    assert await live.balance() == 5000
    assert await live.queued_events() == ["payment.succeeded"]


@pytest.mark.both_databases
async def test_a_settlement_returns_what_others_changed_meanwhile(live: LivePayments) -> None:
    row = await stored(live, await live.merchant.pay())
    other = await stored(live, await live.merchant.pay())
    texts = {"provider_account", "provider_reference", "redirect_url", "account_fingerprint", "payer_number"}
    changed: dict[str, object] = {
        **{name: name for name in texts},
        **dict.fromkeys(set(CHANGED_WHILE_PENDING) - texts, 7),
        **{"provider_data": '{"a": "b"}', "answered_pending": True, "attempt_of": other.id},
    }
    await live.ctx.db.write(update(payments).where(payments.c.id == row.id).values(**changed))
    settled = await settle_payment(live.ctx, row, Refused("expired"))
    assert settled == await stored(live, {"reference": row.reference})
    assert {name: getattr(settled, name) for name in changed} == changed


def test_nothing_else_of_a_pending_payment_is_changed() -> None:
    """A settlement does not read it back. Anonymising passes over pending payments (`test_anonymisation.py`)."""
    ended = {"status", "updated_at", "failure_reason", "refused_at_initiation", "next_poll_at", "lease_expires_at"}
    names = {
        name: {getattr(column, "name", column) for column in statement._values or ()}
        for name, statement in module_statements()
        if isinstance(statement, Update) and statement.table is payments and "anonymisation" not in name
    }
    assert len(names) > 8
    assert set().union(*names.values()) == ended | {*CHANGED_WHILE_PENDING}


@pytest.mark.parametrize("late", [Refused("expired"), Succeeded(Hundredths(1), "XOF")])
async def test_a_result_after_a_success_changes_nothing(live: LivePayments, late: Refused | Succeeded) -> None:
    row = await stored(live, await live.merchant.pay())
    await settle_payment(live.ctx, row, Succeeded(Hundredths(row.total_amount), row.currency))
    after = await stored(live, {"reference": row.reference})
    live.service.clock.advance(60)
    assert (await settle_payment(live.ctx, row, late)).status == "succeeded"
    assert await stored(live, {"reference": row.reference}) == after
    assert await live.balance() == 5000
    assert await live.queued_events() == ["payment.succeeded"]


async def test_a_success_after_a_failure_changes_nothing(live: LivePayments) -> None:
    row = await stored(live, await live.merchant.pay())
    await settle_payment(live.ctx, row, Refused("rejected_by_payer"))
    success = Succeeded(Hundredths(row.total_amount), row.currency)
    assert (await settle_payment(live.ctx, row, success)).status == "failed"
    assert await live.balance() == 0
    assert await live.queued_events() == ["payment.failed"]


@pytest.mark.both_databases
async def test_a_simultaneous_success_and_failure_settle_once(live: LivePayments) -> None:
    rows = [await stored(live, await live.merchant.pay()) for _ in range(8)]
    both = [(Succeeded(Hundredths(row.total_amount), row.currency), Refused("expired")) for row in rows]
    await asyncio.gather(
        *(settle_payment(live.ctx, row, end) for row, ends in zip(rows, both, strict=True) for end in ends)
    )
    await check_books(live.ctx.db, events_queued=True)
    succeeded = [row for row in rows if await live.state(row.reference) == "succeeded"]
    assert await live.balance() == 5000 * len(succeeded)


@pytest.mark.both_databases
async def test_simultaneous_reads_send_one_status_query(live: LivePayments) -> None:
    """Twenty reads at once send one status query, and all of them answer what it brought."""
    live.first.script("status", slow(done, 0.2))
    payment = await live.merchant.pay()
    answers = await asyncio.gather(*(live.merchant.get(f"/payments/{payment['reference']}") for _ in range(20)))
    assert len(live.first.references_of("status")) == 1
    assert {answer.status for answer in answers} == {200}
    assert {answer.data["status"] for answer in answers} == {"succeeded"}
    assert (await live.merchant.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
    assert len(live.first.references_of("status")) == 1


@pytest.mark.both_databases
async def test_a_status_query_of_a_dead_process_is_repeated_when_its_lease_ends(live: LivePayments) -> None:
    payment = await live.merchant.pay()
    row = await stored(live, payment)
    now = live.ctx.clock.now()
    assert await pending.lease(live.ctx.db, row.id, now, now + 30 * SECOND, now)
    live.first.script("status", done)
    assert (await live.merchant.get(f"/payments/{payment['reference']}")).data["status"] == "pending"
    live.service.clock.advance(30)
    assert (await live.merchant.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
