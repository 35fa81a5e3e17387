"""Callbacks: stored and answered, then asked about; one row for each payment; at most one question in five seconds."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select

from guichet.clock import SECOND
from guichet.db.engine import require
from guichet.db.tables import provider_callbacks
from guichet.incidents import repository as incidents
from guichet.payments import pending
from guichet.payments.polling import poll_for_page
from guichet.provider_callbacks import repository as callbacks
from guichet.provider_callbacks.repository import ProviderCallback
from guichet.providers.base import Accepted, Charge, Refused, StatusResult, Unknown
from guichet.settings import Settings
from tests.fakes.scripted_provider import done
from tests.payments.conftest import LivePayments, stored
from tests.service_fixture import ServiceFixture, open_service


async def call_back(live: LivePayments, payment: Any, **body: str) -> None:
    """A callback about `payment`, whose reference is in the address."""
    path = f"/providers/first/callback/{payment['reference']}"
    assert (await live.service.call("POST", path, body)).status == 200


async def rows(live: LivePayments) -> list[ProviderCallback]:
    found = await live.ctx.db.scan(select(provider_callbacks).order_by(provider_callbacks.c.id))
    return [ProviderCallback(*row) for row in found]


async def follow_up(service: ServiceFixture) -> None:
    """One turn of the loop that follows up callbacks; payments whose poll is due are left alone."""
    (loop,) = [each for each in service.worker.loops if each.name == "callbacks"]
    await loop.step()
    await loop.idle()


def questions(live: LivePayments) -> int:
    return len(live.first.references_of("status"))


async def test_a_callback_is_answered_before_its_provider_is_asked(live: LivePayments) -> None:
    """A provider that is slow to answer, or that waits for our 200, does not delay it."""
    payment = await live.merchant.pay()
    live.first.script("status", done)
    await call_back(live, payment)
    assert questions(live) == 0
    (row,) = await rows(live)
    assert (row.subject_type, row.status, row.received_count) == ("payment", "pending", 1)
    await live.service.worker.run_until_idle()
    assert await live.state(payment["reference"]) == "succeeded"
    (row,) = await rows(live)
    assert (row.status, row.due_at) == ("asked", None)


async def test_the_commit_wakes_the_worker(live: LivePayments) -> None:
    payment = await live.merchant.pay()
    live.first.script("status", done)
    live.ctx.wakeups.callbacks.clear()
    await call_back(live, payment)
    assert live.ctx.wakeups.callbacks.is_set()


@pytest.mark.both_databases
async def test_a_crash_between_the_answer_and_the_question_loses_nothing(
    live: LivePayments, settings: Settings
) -> None:
    """Another process asks, whether the first one died before or after it claimed the callback."""
    paid, claimed = await live.merchant.pay(), await live.merchant.pay()
    live.first.script("status", done)
    await call_back(live, claimed)
    now = live.ctx.clock.now()
    assert (await callbacks.QUEUE.claim(live.ctx.db, now, now + 30 * SECOND, 10)).jobs
    await call_back(live, paid)
    accounts, routes = {"first": live.first, "second": live.second}, {"mtn": ["first"]}
    async with open_service(settings, live.service.clock, accounts=accounts, routes=routes) as restarted:
        await follow_up(restarted)
        assert await live.state(paid["reference"]) == "succeeded"
        restarted.clock.advance(31)
        await follow_up(restarted)
    assert await live.state(claimed["reference"]) == "succeeded"


async def test_many_callbacks_about_one_payment_are_one_row_and_one_question(live: LivePayments) -> None:
    payment = await live.merchant.pay()
    await asyncio.gather(*(call_back(live, payment) for _ in range(50)))
    (row,) = await rows(live)
    assert row.received_count == 50
    await live.service.worker.run_until_idle()
    assert questions(live) == 1


@pytest.mark.both_databases
async def test_callbacks_that_come_at_once_each_concern_their_own_payment(live: LivePayments) -> None:
    """And those that name no payment of their account, or no payment at all, concern nobody."""
    paid = [await live.merchant.pay() for _ in range(5)]
    other = await live.merchant.pay()
    strange = [f"/providers/second/callback/{other['reference']}", f"/providers/first/callback/{uuid4()}"]
    _, answers = await asyncio.gather(
        asyncio.gather(*(call_back(live, payment) for payment in paid)),
        asyncio.gather(*(live.service.call("POST", path, {}) for path in strange)),
    )
    assert [each.status for each in answers] == [200, 200]
    ids = {(await stored(live, payment)).id for payment in paid}
    assert {row.subject_id for row in await rows(live)} == ids


async def test_callbacks_cause_one_question_in_five_seconds_and_the_last_one_is_not_lost(live: LivePayments) -> None:
    payment = await live.merchant.pay()
    live.first.script("status", Accepted())
    for _ in range(10):
        await call_back(live, payment)
        await live.service.worker.run_until_idle()
    assert questions(live) == 1
    live.service.clock.advance(4)
    await call_back(live, payment)
    await live.service.worker.run_until_idle()
    assert questions(live) == 1
    live.first.script("status", done)
    await live.service.run_worker(1)
    assert await live.state(payment["reference"]) == "succeeded"


@pytest.mark.both_databases
async def test_a_callback_during_a_question_causes_another_one(live: LivePayments) -> None:
    """The provider may have answered the running question before its customer paid."""
    payment = await live.merchant.pay()
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slowly(_: Charge) -> StatusResult:
        asked.set()
        await answer.wait()
        return Accepted()

    live.first.script("status", slowly, done)
    reading = asyncio.create_task(live.merchant.get(f"/payments/{payment['reference']}"))
    await asked.wait()
    await call_back(live, payment)
    await live.service.worker.run_until_idle()
    assert questions(live) == 1
    answer.set()
    assert (await reading).data["status"] == "pending"
    live.service.clock.advance(5)
    await follow_up(live.service)
    assert await live.state(payment["reference"]) == "succeeded"


@pytest.mark.both_databases
async def test_a_callback_during_the_question_of_an_earlier_one_causes_its_own(live: LivePayments) -> None:
    payment = await live.merchant.pay()
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slowly(_: Charge) -> StatusResult:
        asked.set()
        await answer.wait()
        return Accepted()

    live.first.script("status", slowly, done)
    await call_back(live, payment)
    following = asyncio.create_task(follow_up(live.service))
    await asked.wait()
    await call_back(live, payment)
    answer.set()
    await following
    assert (await rows(live))[0].status == "pending"
    live.service.clock.advance(5)
    await follow_up(live.service)
    assert await live.state(payment["reference"]) == "succeeded"


@pytest.mark.both_databases
async def test_a_callback_while_another_process_has_the_lease_is_asked_about_afterwards(live: LivePayments) -> None:
    payment = await live.merchant.pay()
    row, now = await stored(live, payment), live.ctx.clock.now()
    await pending.lease(live.ctx.db, row.id, now, now + 30 * SECOND, now)
    live.first.script("status", done)
    live.service.clock.advance(6)
    await call_back(live, payment)
    await live.service.worker.run_until_idle()
    assert questions(live) == 0
    assert (await rows(live))[0].status == "pending"
    live.service.clock.advance(24)
    await follow_up(live.service)
    assert await live.state(payment["reference"]) == "succeeded"


@pytest.mark.both_databases
async def test_a_process_that_comes_late_puts_off_no_question_that_another_one_has_asked(live: LivePayments) -> None:
    """Its lease expired while the database was away: `make ha` found two workers with one callback."""
    payment = await live.merchant.pay()
    await call_back(live, payment)
    (claimed,) = await rows(live)
    await callbacks.mark_asked(live.ctx.db, claimed)
    await callbacks.poll_later(live.ctx.db, claimed, live.ctx.clock.now())
    (row,) = await rows(live)
    assert (row.status, row.due_at) == ("asked", None)


async def test_the_reference_that_a_callback_names_survives_until_the_provider_answers(live: LivePayments) -> None:
    """After a lost answer it is the only sure way to the transaction, so every later question has it too."""
    named: list[str | None] = []

    def look(charge: Charge) -> StatusResult:
        named.append(charge.callback_reference)
        return done(charge) if len(named) == 3 else Unknown("503")

    live.first.script("initiate", Unknown("the answer was lost"))
    live.first.script("status", look)
    payment = await live.merchant.pay()
    await call_back(live, payment, provider_reference="fx-77")
    await call_back(live, payment)
    await live.service.worker.run_until_idle()
    await live.merchant.get(f"/payments/{payment['reference']}")
    await live.service.run_worker(5)
    assert named == ["fx-77"] * 3
    assert await live.state(payment["reference"]) == "succeeded"


@pytest.mark.parametrize("named", ["x" * 256, "a\0b"])
async def test_a_text_that_can_be_no_reference_is_not_stored(live: LivePayments, named: str) -> None:
    payment = await live.merchant.pay()
    await call_back(live, payment, provider_reference=named)
    assert (await rows(live))[0].provider_reference is None
    answer = await live.service.call("POST", "/providers/first/callback", {"provider_reference": named})
    assert answer.status == 200


async def test_a_callback_about_a_failed_payment_asks_once_in_five_seconds(live: LivePayments) -> None:
    live.first.script("status", Refused("expired"))
    payment = await live.merchant.pay()
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "failed"
    for second in range(10):
        await call_back(live, payment)
        await live.service.run_worker(1)
        assert questions(live) == 1 + (second + 1) // 5
    live.first.script("status", done)
    await call_back(live, payment)
    await live.service.run_worker(5)
    assert [each.kind for each in await incidents.still_open(live.ctx.db)] == ["paid_after_failure"]
    await call_back(live, payment)
    await live.service.run_worker(5)
    assert questions(live) == 4, "what was found waits for a person: nobody asks any more"


async def test_a_callback_about_a_payment_that_succeeded_causes_no_question(live: LivePayments) -> None:
    live.first.script("status", done)
    payment = await live.merchant.pay()
    await live.service.run_worker(5)
    await call_back(live, payment)
    assert (await rows(live))[0].status == "pending"
    await live.service.run_worker(5)
    assert (await rows(live))[0].status == "asked"
    assert questions(live) == 1


async def test_a_callback_about_a_refund_is_one_row_and_asked_about(live: LivePayments) -> None:
    live.first.script("status", done)
    payment = await live.merchant.pay()
    await live.service.run_worker(5)
    refund = (await live.merchant.post(f"/payments/{payment['reference']}/refund", {})).data
    await live.service.worker.run_until_idle()
    live.first.script("refund_status", Accepted())
    for _ in range(3):
        await call_back(live, refund)
        await live.service.worker.run_until_idle()
    (row,) = await rows(live)
    assert (row.subject_type, row.received_count) == ("refund", 3)
    live.first.script("refund_status", done)
    live.service.clock.advance(5)
    await follow_up(live.service)
    assert (await live.merchant.get(f"/refunds/{refund['reference']}")).data["status"] == "succeeded"


@pytest.mark.both_databases
async def test_pages_that_read_the_row_at_the_same_time_cause_one_question(live: LivePayments) -> None:
    """The limit is a condition of the statement that takes the lease."""
    row = await stored(live, await live.merchant.pay())
    live.first.script("status", Accepted())
    for _ in range(2):
        assert (await poll_for_page(live.ctx, row)).status == "pending"
    assert questions(live) == 1
    live.service.clock.advance(5)
    await poll_for_page(live.ctx, row)
    assert questions(live) == 2


async def test_a_merchant_always_has_its_payment_asked_about(live: LivePayments) -> None:
    """The limit of five seconds is for those who are not authenticated."""
    payment = await live.merchant.pay()
    live.first.script("status", Accepted())
    for _ in range(5):
        await live.merchant.get(f"/payments/{payment['reference']}")
    assert questions(live) == 5
    await call_back(live, payment)
    await live.service.worker.run_until_idle()
    assert questions(live) == 5


async def test_a_clock_that_was_set_back_does_not_silence_callbacks(live: LivePayments) -> None:
    payment = await live.merchant.pay()
    live.first.script("status", Accepted(), done)
    await live.merchant.get(f"/payments/{payment['reference']}")
    live.service.clock.jump(-3600)
    await call_back(live, payment)
    row = await stored(live, payment)
    assert require(row.asked_at) > live.ctx.clock.now()
    await live.service.worker.run_until_idle()
    assert await live.state(payment["reference"]) == "succeeded"


@pytest.mark.both_databases
async def test_a_read_by_one_process_limits_the_callbacks_of_another(live: LivePayments, settings: Settings) -> None:
    payment = await live.merchant.pay()
    live.first.script("status", Accepted())
    await live.merchant.get(f"/payments/{payment['reference']}")
    accounts, routes = {"first": live.first, "second": live.second}, {"mtn": ["first", "second"]}
    async with open_service(settings, live.service.clock, accounts=accounts, routes=routes) as other:
        there = replace(live, service=other)
        await call_back(there, payment)
        await other.worker.run_until_idle()
        assert questions(live) == 1
        await other.run_worker(5)
    assert questions(live) >= 2


async def test_a_body_larger_than_any_callback_is_refused_in_the_envelope(live: LivePayments) -> None:
    answer = await live.service.call("POST", "/providers/first/callback", {"padding": "a" * 65_536})
    assert (answer.status, answer.body["error"]["code"]) == (413, "invalid_request")
