"""Initiations that take longer than a request may wait: answered as pending, and ended in the background."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from guichet.clock import SECOND
from guichet.db.engine import require
from guichet.payments.initiation import REQUEST_WAIT, finish_slow_initiations
from guichet.providers.base import Accepted, Charge, InitiationResult, NotProcessed, Refused, Unknown
from guichet.settings import Settings
from tests.fakes.clock import ManualClock
from tests.fakes.passing_time import pass_seconds
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.payments.conftest import LivePayments, live_payments, stored
from tests.service_fixture import open_service

BUDGET = 75.0


class Answer:
    """An answer to an initiation that the test gives when it likes."""

    def __init__(self, live: LivePayments) -> None:
        self.asked = asyncio.Event()
        self._given: asyncio.Future[InitiationResult] = asyncio.get_running_loop().create_future()
        live.first.script("initiate", self._wait)

    async def _wait(self, charge: Charge) -> InitiationResult:
        self.asked.set()
        return await self._given

    def give(self, result: InitiationResult) -> None:
        self._given.set_result(result)


@pytest.fixture
async def slow_live(settings: Settings) -> AsyncIterator[LivePayments]:
    """`first` may take 75 seconds to answer an initiation."""
    async for each in live_payments(settings):
        each.first.initiation_timeout = BUDGET
        yield each


async def answered_pending(live: LivePayments, answer: Answer, **fields: Any) -> Any:
    """A payment whose request was answered after 20 seconds, while its initiation continues."""
    paying = asyncio.create_task(live.merchant.pay(**fields))
    await answer.asked.wait()
    await pass_seconds(REQUEST_WAIT - 1)
    assert not paying.done()
    await pass_seconds(1)
    payment = await paying
    assert payment["status"] == "pending"
    return payment


async def ended(live: LivePayments) -> None:
    """Waits until no initiation runs any more."""
    while live.ctx.slow_initiations:
        await asyncio.wait(live.ctx.slow_initiations)


async def test_a_request_is_answered_after_twenty_seconds_and_the_answer_is_applied_when_it_comes(
    slow_live: LivePayments,
) -> None:
    live = slow_live
    answer = Answer(live)
    payment = await answered_pending(live, answer)
    answer.give(Accepted(provider_reference="fx-1", redirect_url="https://provider.test/pay"))
    await ended(live)
    row = await stored(live, payment)
    assert (row.status, row.provider_reference) == ("pending", "fx-1")
    live.first.script("status", done)
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "succeeded"


@pytest.mark.both_databases
async def test_a_refusal_is_told_by_a_webhook_if_a_repeated_request_was_answered_while_the_initiation_ran(
    slow_live: LivePayments,
) -> None:
    """The first request's 402 may have gone to a connection that the merchant had lost, for instance with its proxy."""
    live = slow_live
    answer = Answer(live)
    order = {"amount": 5000, "operator": "mtn", "phone_number": "22997001234", "external_id": "once"}
    first = asyncio.create_task(live.merchant.post("/payments", order))
    await answer.asked.wait()
    for _ in range(2):
        repeated = await live.merchant.pay(external_id="once")
        assert repeated["status"] == "pending"
    answer.give(Refused("insufficient_funds"))
    assert (await first).status == 402
    assert await live.queued_events() == ["payment.failed"]


async def test_a_refusal_that_comes_later_is_told_by_a_webhook(slow_live: LivePayments) -> None:
    """The 402 could not report it."""
    live = slow_live
    answer = Answer(live)
    payment = await answered_pending(live, answer)
    answer.give(Refused("insufficient_funds"))
    await ended(live)
    assert await live.state(payment["reference"]) == "failed"
    assert await live.queued_events() == ["payment.failed"]


@pytest.mark.both_databases
async def test_a_refusal_within_twenty_seconds_is_told_by_the_402_alone(slow_live: LivePayments) -> None:
    live = slow_live
    answer = Answer(live)
    body = {"amount": 5000, "operator": "mtn", "phone_number": "22997001234"}
    paying = asyncio.create_task(live.merchant.post("/payments", body))
    await answer.asked.wait()
    answer.give(Refused("insufficient_funds"))
    assert (await paying).error["code"] == "payment_failed"
    assert await live.queued_events() == []


async def test_a_success_that_comes_later_is_credited_once(slow_live: LivePayments) -> None:
    live = slow_live
    answer = Answer(live)
    payment = await answered_pending(live, answer)
    answer.give(done(live.first.charges[0]))
    await ended(live)
    assert await live.state(payment["reference"]) == "succeeded"
    assert await live.balance() == 5000


@pytest.mark.both_databases
async def test_no_process_asks_or_sends_again_while_the_initiation_runs(slow_live: LivePayments) -> None:
    """Its lease lasts longer than the provider may take."""
    live = slow_live
    answer = Answer(live)
    payment = await answered_pending(live, answer)
    for _ in range(int(BUDGET) // 5):
        await live.service.run_worker(5)
        await live.merchant.get(f"/payments/{payment['reference']}")
    assert live.first.references_of("status") == []
    answer.give(Unknown("the answer was lost"))
    await ended(live)
    live.first.script("status", done)
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "succeeded"
    assert live.first.references_of("initiate") == [payment["reference"]]


async def test_the_next_route_is_tried_in_the_background_too(slow_live: LivePayments) -> None:
    live = slow_live
    answer = Answer(live)
    payment = await answered_pending(live, answer)
    answer.give(NotProcessed())
    await ended(live)
    assert (await stored(live, payment)).provider_account == "second"
    assert live.second.references_of("initiate") == [payment["reference"]]


async def test_the_initiation_is_given_up_after_the_budget_of_its_provider(slow_live: LivePayments) -> None:
    live = slow_live
    answer = Answer(live)
    payment = await answered_pending(live, answer)
    await pass_seconds(BUDGET - REQUEST_WAIT)
    await ended(live)
    row = await stored(live, payment)
    assert (row.status, row.initiation_ended_at) == ("pending", live.ctx.clock.now())


@pytest.mark.both_databases
async def test_a_process_that_ends_gives_its_initiation_up_and_the_next_one_asks(settings: Settings) -> None:
    provider, clock = ScriptedProvider(), ManualClock()
    provider.initiation_timeout = BUDGET
    accounts, routes = {"first": provider}, {"mtn": ["first"]}
    async with open_service(settings, clock, accounts=accounts, routes=routes) as service:
        live = LivePayments(service, (await service.merchant()).live, provider, provider)
        payment = await answered_pending(live, Answer(live))
    assert live.ctx.slow_initiations == set()
    provider.script("status", done)
    async with open_service(settings, clock, accounts=accounts, routes=routes) as restarted:
        await restarted.run_worker(BUDGET)
        assert provider.references_of("status") == [], "its lease has not run out"
        await restarted.run_worker(10)
        again = replace(live, service=restarted, merchant=replace(live.merchant, service=restarted))
        assert await again.state(payment["reference"]) == "succeeded"
    assert provider.references_of("initiate") == [payment["reference"]]


@pytest.mark.both_databases
@pytest.mark.parametrize("comes", [True, False])
async def test_at_a_stop_it_has_a_short_grace_and_is_polled_later_else(slow_live: LivePayments, comes: bool) -> None:
    live = slow_live
    answer = Answer(live)
    payment = await answered_pending(live, answer)
    stopping = asyncio.create_task(finish_slow_initiations(live.ctx, 1.0))
    await asyncio.sleep(0)
    if comes:
        answer.give(Accepted(provider_reference="fx-1"))
    else:
        await pass_seconds(1)
    await stopping
    assert live.ctx.slow_initiations == set()
    row = await stored(live, payment)
    assert (row.status, row.provider_reference) == ("pending", "fx-1" if comes else None)
    live.first.script("status", done)
    await live.service.run_worker((require(row.next_poll_at) - live.ctx.clock.now()) / SECOND)
    assert await live.state(payment["reference"]) == "succeeded"
