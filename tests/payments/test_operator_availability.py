"""Availability of operators: counted at initiation, measured by the worker, shown by the API, commands and metrics."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from guichet.availability import AttemptCounts, availabilities, recent_attempts
from guichet.clock import HOUR, MINUTE, SECOND, later
from guichet.db.engine import Database
from guichet.db.errors import StorageUnavailable
from guichet.db.worker_leases import claim_turn
from guichet.providers.base import Accepted, NotProcessed, Refused, Unknown
from guichet.server.background_writers import writing_attempts
from guichet.settings import Settings
from guichet_simulator.scenarios import BY_NAME
from tests.cli.conftest import Cli, cli_for
from tests.fakes.clock import ManualClock
from tests.fakes.scripted_provider import ScriptedProvider
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.simulated_providers import open_simulated_providers
from tests.server.metrics_reader import measured, scrape, value
from tests.service_fixture import MerchantClient, ServiceFixture, open_service


@pytest.fixture
def cli(settings: Settings) -> Cli:
    return cli_for(settings)


@asynccontextmanager
async def serving(settings: Settings, results: Sequence[Any]) -> AsyncIterator[tuple[ServiceFixture, MerchantClient]]:
    """A service whose provider initiates with these results in turn, and its merchant."""
    provider, rest = ScriptedProvider(), list(results)
    provider.script("initiate", lambda _: rest.pop(0))
    provider.script("status", Accepted())
    connections: dict[str, Any] = {"accounts": {"op": provider}, "routes": {"mtn": ["op"]}}
    async with open_service(measured(settings), **connections) as service:
        yield service, await service.merchant()


async def pay(merchant: MerchantClient, times: int, answers: tuple[int, ...] = (201, 402)) -> None:
    for _ in range(times):
        body = {"amount": 5000, "operator": "mtn", "phone_number": "22997000000"}
        assert (await merchant.post("/payments", body)).status in answers


async def shown(merchant: MerchantClient) -> str:
    [mode] = [mode for mode in (await merchant.get("/payment-modes")).data if mode["operator"] == "mtn"]
    return str(mode["availability"])


FAILED = [Unknown("no answer"), NotProcessed(), Refused("operator_unavailable")]
PAYERS_REFUSED = [
    Refused("insufficient_funds"),
    Refused("rejected_by_payer"),
    Refused("payer_not_found"),
    Refused("expired"),
    Refused(),
    NotProcessed("limit_reached"),
]


async def test_an_operator_that_fails_is_shown_everywhere_and_still_takes_payments(
    settings: Settings, cli: Cli
) -> None:
    results = [*FAILED * 6, Accepted(), Accepted()] + [Accepted()] * 100
    async with serving(settings, results) as (service, merchant):
        assert await shown(merchant.live) == "up"
        await pay(merchant.live, 20)
        await service.run_worker(61)
        assert await shown(merchant.live) == "down"
        assert await shown(merchant) == "up", "a test key never sees it"
        await merchant.live.pay("0000")
        assert value(await scrape(service), "guichet_operator_availability", operator="mtn") == 0
        doctor = json.loads((await asyncio.to_thread(cli, "doctor", "--json")).out)["checks"]["operators"]
        assert doctor["rows"][0]["state"] == "down"
        assert "mtn is down" in doctor["problems"][0]
        assert "18 of 20 initiations failed technically within 15 minutes" in doctor["problems"][0]
        modes = (await asyncio.to_thread(cli, "mode", "list", "--json")).json["modes"]
        assert {mode["availability"] for mode in modes if mode["operator"] == "mtn"} == {"down"}

        await service.run_worker(15 * 60)
        await pay(merchant.live, 30)
        await service.run_worker(61)
        assert await shown(merchant.live) == "down", "one good window"
        await service.run_worker(14 * 60)
        await pay(merchant.live, 30)
        await service.run_worker(61)
        assert await shown(merchant.live) == "up", "two good windows"


async def test_what_payers_refuse_and_what_we_configured_wrong_says_nothing(settings: Settings) -> None:
    results = [*PAYERS_REFUSED * 5, *[NotProcessed("configuration")] * 30]
    async with serving(settings, results) as (service, merchant):
        await pay(merchant.live, len(results), (402, 500))
        await service.run_worker(61)
        assert await shown(merchant.live) == "up"
        [counted] = (await recent_attempts(service.ctx.db, service.clock.now()))["mtn"]
        assert (counted.attempts, counted.failures) == (30, 0)


async def test_payments_of_the_test_environment_are_not_counted(settings: Settings) -> None:
    async with serving(settings, []) as (service, merchant):
        await pay(merchant, 3)
        await service.run_worker(61)
        assert await recent_attempts(service.ctx.db, service.clock.now()) == {}
        assert await availabilities(service.ctx.db) == []


@pytest.mark.both_databases
async def test_the_counts_of_all_processes_are_added(worker_dbs: list[Database]) -> None:
    clock = ManualClock()
    processes = [AttemptCounts() for _ in worker_dbs]
    for counts in processes:
        for result in (Accepted(), Unknown(), NotProcessed()):
            counts.add("mtn", result, clock.now())
            counts.add("moov", Accepted(), clock.now())
    await asyncio.gather(*(counts.flush(db) for counts, db in zip(processes, worker_dbs, strict=True)))
    await asyncio.gather(*(counts.flush(db) for counts, db in zip(processes, worker_dbs, strict=True)))
    found = await recent_attempts(worker_dbs[0], clock.now())
    sums = {operator: [(each.attempts, each.failures) for each in minutes] for operator, minutes in found.items()}
    assert sums == {"mtn": [(12, 8)], "moov": [(12, 0)]}


@pytest.mark.both_databases
async def test_a_process_without_a_worker_writes_its_counts(service: ServiceFixture) -> None:
    ctx = service.ctx
    async with writing_attempts(ctx):
        ctx.attempts.add("mtn", Unknown(), service.clock.now())
        assert await recent_attempts(ctx.db, service.clock.now()) == {}, "not a statement for each payment"
    [counted] = (await recent_attempts(ctx.db, service.clock.now()))["mtn"]
    assert (counted.attempts, counted.failures) == (1, 1)


class DatabaseThatIsAway:
    async def write_many(self, *_: object) -> None:
        raise StorageUnavailable("away")


async def test_counts_that_cannot_be_written_are_written_later(service: ServiceFixture) -> None:
    counts, now = AttemptCounts(), service.clock.now()
    counts.add("mtn", Unknown(), now)
    with pytest.raises(StorageUnavailable):
        await counts.flush(cast(Database, DatabaseThatIsAway()))
    counts.add("mtn", Accepted(), now)
    await counts.flush(service.ctx.db)
    [counted] = (await recent_attempts(service.ctx.db, now))["mtn"]
    assert (counted.attempts, counted.failures) == (2, 1)


@pytest.mark.both_databases
async def test_a_turn_is_taken_by_one_process(worker_dbs: list[Database]) -> None:
    now = ManualClock().now()
    taken = await asyncio.gather(*(claim_turn(db, "measure", now, MINUTE) for db in worker_dbs))
    assert sum(taken) == 1
    assert await claim_turn(worker_dbs[0], "measure", later(now, MINUTE), MINUTE)


async def test_old_minutes_are_deleted(settings: Settings) -> None:
    async with serving(settings, [Accepted()]) as (service, merchant):
        await pay(merchant.live, 1)
        await service.run_worker(61)
        db, made = service.ctx.db, service.clock.now()
        assert await recent_attempts(db, made) != {}
        await service.run_worker(7 * HOUR / SECOND)
        assert await recent_attempts(db, made) == {}


async def test_what_pawapay_says_of_an_operator_is_joined_in(settings: Settings) -> None:
    case = PROVIDER_CASES["pawapay"]
    async with open_simulated_providers(settings, case.setup) as simulated:
        merchant = simulated.merchant.live

        async def state() -> str:
            modes = (await merchant.get("/payment-modes")).data
            return str(next(mode["availability"] for mode in modes if mode["operator"] == case.operator))

        async def say(status: str, seconds: float = 301) -> str:
            changed = {"family": "pawapay", "availability": {"MTN_MOMO_BEN": status}}
            await simulated.control("POST", "/dashboard", json=changed)
            await simulated.turn(seconds)
            return await state()

        await simulated.turn(61)
        assert await state() == "up"
        assert await say("DELAYED") == "degraded"
        assert await say("CLOSED") == "down"
        [found] = [each for each in await availabilities(simulated.service.ctx.db) if each.operator == case.operator]
        assert (found.stated, found.measured, str(found.reason)) == ("down", "up", "pawapay_one says so")
        answer = await merchant.post("/payments", case.body("90", BY_NAME["succeeds"]))
        assert answer.status == 402, "accepted, and refused by the provider"
        await simulated.force("pawapay", "error_500", "status", times=None)
        assert await say("OPERATIONAL", 1) == "down"
        await simulated.turn(21 * 60)
        assert await state() == "up", "what it said twenty minutes ago no longer counts"
