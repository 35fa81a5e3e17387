"""A whole Guichet and the operators' simulator, each on a real port, under one clock that only the test turns."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import aiohttp

from guichet.providers.client import ProviderAccount
from guichet.providers.providers_file import ProvidersConfig
from guichet.settings import Settings
from guichet_simulator.app import SECRETS, Dashboard, create_simulator
from tests.fakes.clock import TurningClock
from tests.ports import free_port
from tests.service_fixture import MerchantClient, ServiceFixture, open_service, serving

T = TypeVar("T")

#: Real seconds after which something that has not answered is taken to wait for the clock.
_PATIENCE = 0.4
#: Seconds that the simulator's slow answers take.
_SLOW = 25


@dataclass(frozen=True, slots=True)
class Setup:
    """One family's accounts and routes; `{sim}` in a base URL stands for the simulator."""

    accounts: Mapping[str, ProviderAccount]
    routes: Mapping[str, Sequence[str]]


@dataclass
class SimulatedProviders:
    service: ServiceFixture
    merchant: MerchantClient
    simulator: str
    http: aiohttp.ClientSession
    clock: TurningClock

    async def control(self, method: str, path: str, **options: Any) -> Any:
        async with self.http.request(method, f"{self.simulator}/control{path}", **options) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json() if answer.status != 204 else None

    async def force(self, family: str, scenario: str, call: str = "debit", times: int | None = 1) -> None:
        wanted = {"family": family, "scenario": scenario, "call": call, "times": times}
        await self.control("POST", "/next", json=wanted)

    async def held(self, **query: str) -> list[dict[str, Any]]:
        """What the operators hold, newest first."""
        found: list[dict[str, Any]] = (await self.control("GET", "/transactions", params=query))["transactions"]
        return found

    async def nudged(self, work: Awaitable[T]) -> T:
        """Waits for `work`, turning the clock whenever only the clock can move it."""
        task = asyncio.ensure_future(work)
        while not task.done():
            await asyncio.wait([task], timeout=_PATIENCE)
            if not task.done():
                self.clock.advance(_SLOW)
        return await task

    async def turn(self, seconds: float) -> None:
        """The clock, then the operators' notifications, then everything our worker finds due."""
        self.clock.advance(seconds)
        await self.nudged(self.quiet())
        await self.nudged(self.service.worker.run_until_idle())
        await self.nudged(self.quiet())

    async def quiet(self) -> None:
        """Until every notification that is due has been answered."""
        async with asyncio.timeout(10):
            while True:
                queued = (await self.control("GET", "/callbacks"))["callbacks"]
                now = self.clock.now()
                unsent = [one for one in queued if one["due_at"] is not None and one["due_at"] <= now]
                sending = [one for one in queued if one["attempts"] and one["answered"] is one["error"] is None]
                sending = [one for one in sending if one["due_at"] is not None]
                if not unsent and not sending:
                    return
                await asyncio.sleep(0.01)


@asynccontextmanager
async def open_simulated_providers(settings: Settings, setup: Setup) -> AsyncIterator[SimulatedProviders]:
    """The schema must be there already. Notifications without an address of their own go to the family's."""
    clock = TurningClock()
    port, simulator_port = free_port(), free_port()
    settings = replace(settings, public_url=f"http://127.0.0.1:{port}")
    simulator = f"http://127.0.0.1:{simulator_port}/simulator"
    accounts = {
        name: replace(each, base_url=each.base_url.replace("{sim}", simulator)) for name, each in setup.accounts.items()
    }
    dashboards = {
        family: Dashboard(f"{settings.public_url}/providers/{family}/callback", SECRETS.get(family))
        for family in {each.provider for each in accounts.values()}
    }
    app = create_simulator(None, public_url=simulator, clock=clock, callbacks=dashboards)
    operators = ProvidersConfig(accounts, {code: tuple(names) for code, names in setup.routes.items()})
    async with (
        app.router.lifespan_context(app),
        serving(app, simulator_port),
        open_service(settings, clock, port, providers=operators) as service,
        aiohttp.ClientSession() as http,
    ):
        yield SimulatedProviders(service, await service.merchant(), simulator, http, clock)
