"""The worker reads our balances with the providers: regularly, once across workers, and without losing the last one."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from guichet.back_office import provider_balances
from guichet.clock import DAY, MINUTE, SECOND, Instant
from guichet.domain.money import Hundredths
from guichet.providers.base import Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.settings import Settings
from guichet.worker.timed_loops import AT_ONCE
from guichet.worker.worker import Worker
from tests.fakes.silent_provider import SilentProvider
from tests.patience import PATIENCE
from tests.server.metrics_reader import measured, scrape, value
from tests.service_fixture import ServiceFixture, open_service

FULL = FloatBalance("disbursement", Hundredths(900_000_00), "XOF")
LOW = FloatBalance("disbursement", Hundredths(4_000_50), "XOF")


def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass
class ProviderWithBalances(SilentProvider):
    """States the balances that the test sets."""

    remote: bool = True
    answer: list[FloatBalance] | Unknown = field(default_factory=lambda: [FULL])
    float_alert_below: Mapping[str, Hundredths] = field(default_factory=dict)
    asked: int = 0
    #: While it is not set, the provider does not answer.
    answers: asyncio.Event = field(default_factory=_set)

    async def balances(self) -> list[FloatBalance] | Unknown:
        self.asked += 1
        await self.answers.wait()
        return self.answer


@pytest.fixture
def provider() -> ProviderWithBalances:
    return ProviderWithBalances(float_alert_below={"disbursement": Hundredths(500_000_00)})


@pytest.fixture
async def reading(settings: Settings, provider: ProviderWithBalances) -> AsyncIterator[ServiceFixture]:
    async with open_service(measured(settings), accounts={"op": provider}, routes={"mtn": ["op"]}) as service:
        yield service


async def _amounts(service: ServiceFixture) -> list[int]:
    return [balance.amount for balance in await provider_balances.stored(service.ctx.db)]


@pytest.mark.both_databases
async def test_balances_are_read_every_five_minutes_and_shown(
    reading: ServiceFixture, provider: ProviderWithBalances
) -> None:
    await reading.run_worker(30)
    await reading.run_worker(60)
    assert provider.asked == 1
    labels = {"provider_account": "op", "wallet": "disbursement", "currency": "XOF"}
    shown = await scrape(reading)
    assert value(shown, "guichet_float_balance", **labels) == 900_000
    assert value(shown, "guichet_float_alert_below", **labels) == 500_000
    assert value(shown, "guichet_float_age_seconds", provider_account="op") == 60

    provider.answer = [LOW]
    await reading.run_worker(provider_balances.READ_EVERY / SECOND)
    assert (provider.asked, await _amounts(reading)) == (2, [4_000_50])


@pytest.mark.both_databases
async def test_a_start_asks_no_provider_at_once(reading: ServiceFixture, provider: ProviderWithBalances) -> None:
    await reading.run_worker(5)
    assert provider.asked == 0


@pytest.mark.both_databases
async def test_the_last_balance_stays_when_the_provider_does_not_answer(
    reading: ServiceFixture, provider: ProviderWithBalances
) -> None:
    await reading.run_worker(30)
    provider.answer = Unknown("503 away")
    await reading.run_worker(600)
    [read] = await provider_balances.reads(reading.ctx.db)
    assert (await _amounts(reading), str(read.error)) == ([900_000_00], "503 away")
    provider.answer = [LOW]
    await reading.run_worker(600)
    [read] = await provider_balances.reads(reading.ctx.db)
    assert (await _amounts(reading), read.error, read.read_at) == ([4_000_50], None, reading.clock.now())


async def test_a_wallet_that_is_no_longer_stated_disappears(
    reading: ServiceFixture, provider: ProviderWithBalances
) -> None:
    provider.answer = [FULL, FloatBalance("collection", Hundredths(1_00), "XOF")]
    await reading.run_worker(30)
    provider.answer = [FULL]
    await reading.run_worker(600)
    assert await _amounts(reading) == [900_000_00]


@pytest.mark.both_databases
async def test_several_workers_read_an_account_once(reading: ServiceFixture, provider: ProviderWithBalances) -> None:
    workers = [Worker(reading.opened.ctx, reading.opened.http_client) for _ in range(4)]
    reading.clock.advance(30)
    await asyncio.gather(*(worker.run_until_idle() for worker in workers))
    assert provider.asked == 1


@pytest.mark.both_databases
async def test_a_provider_that_never_answers_delays_nothing_else(
    reading: ServiceFixture, provider: ProviderWithBalances
) -> None:
    provider.answers = asyncio.Event()
    reading.clock.advance(30)
    [reader] = [loop for loop in reading.worker.loops if loop.name == "balances"]
    waiting = asyncio.create_task(reader.step())
    while not provider.asked:
        await asyncio.sleep(0)
    merchant = await reading.merchant()
    payment = await merchant.pay("0000")
    await reading.run_worker(20)
    assert (await merchant.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
    assert not waiting.done()
    provider.answers.set()
    await waiting
    assert await _amounts(reading) == [900_000_00]


@pytest.mark.both_databases
async def test_a_few_accounts_are_read_at_once(settings: Settings) -> None:
    running, most = 0, 0

    class Counting(ProviderWithBalances):
        async def balances(self) -> list[FloatBalance] | Unknown:
            nonlocal running, most
            running += 1
            most = max(most, running)
            async with asyncio.timeout(PATIENCE):
                while most < AT_ONCE:  # Until the others are asked too.
                    await asyncio.sleep(0.005)
            running -= 1
            return [FULL]

    providers = {f"op{number}": Counting() for number in range(12)}
    async with open_service(settings, accounts=providers, routes={}) as service:
        await service.run_worker(30)
        assert len(await _amounts(service)) == 12
    assert most == AT_ONCE


@pytest.mark.both_databases
async def test_only_one_process_claims_an_account(worker_dbs: list[Any]) -> None:
    now = Instant(10 * DAY)
    claims = await asyncio.gather(*(provider_balances.claim_due(db, ["a", "b"], now) for db in worker_dbs))
    assert sorted(account for claim in claims for account in claim) == ["a", "b"]
    again = [await provider_balances.claim_due(db, ["a", "b"], now) for db in worker_dbs]
    assert again == [[]] * len(worker_dbs)
    late = Instant(10 * DAY + 5 * MINUTE)
    assert await provider_balances.claim_due(worker_dbs[0], ["a", "b"], late) == ["a", "b"]


async def test_an_account_that_left_the_file_is_forgotten_after_a_day(
    reading: ServiceFixture, provider: ProviderWithBalances
) -> None:
    db, now = reading.ctx.db, reading.clock.now()
    await provider_balances.claim_due(db, ["removed"], now)
    await provider_balances.store(db, "removed", [LOW], {}, now)
    await reading.run_worker(600)
    assert sorted(await _amounts(reading)) == [4_000_50, 900_000_00]
    await reading.run_worker(DAY / SECOND)
    assert await _amounts(reading) == [900_000_00]
