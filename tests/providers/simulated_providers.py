"""A whole service and the simulator, each on a real port, with one clock that only the test advances."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import aiohttp
from msgspec import structs

from guichet.providers.pawapay.history import _PAUSE
from guichet.providers.pawapay.provider import _PAGE_PAUSE
from guichet.providers.providers_file import ProvidersConfig
from guichet.providers.shared.client import ProviderAccount
from guichet.settings import Settings
from guichet_simulator.app import SECRETS, Dashboard, create_simulator
from guichet_simulator.store import Store
from tests.fakes.clock import TurningClock
from tests.guichet_simulator.conftest import UNANSWERED
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.service_fixture import MerchantClient, ServiceFixture, open_service, serving

T = TypeVar("T")

#: Seconds that the simulator's slow answers take.
_SLOW = 25.0
#: How long somebody sleeps who answers only when the clock is turned: a slow answer, and pawaPay's client between two
#: questions. Others sleep too, such as the simulator until its next callback.
_ANSWERING = (_SLOW, _PAGE_PAUSE, _PAUSE)
#: Real seconds after which it is looked whether one of them is what is waited for, and after which anything that has
#: not ended is taken to wait for the clock in another way.
_LOOK = 0.01
_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Setup:
    """The accounts and routes of one test; `{sim}` in a base URL stands for the simulator."""

    accounts: Mapping[str, ProviderAccount]
    routes: Mapping[str, Sequence[str]]


@dataclass
class SimulatedProviders:
    service: ServiceFixture
    merchant: MerchantClient
    simulator: str
    http: aiohttp.ClientSession
    clock: TurningClock
    #: The simulator's own: looking into it is cheaper than asking it, dozens of times in a test.
    store: Store

    async def control(self, method: str, path: str, **options: Any) -> Any:
        async with self.http.request(method, f"{self.simulator}/control{path}", **options) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json() if answer.status != 204 else None

    async def force(self, provider_name: str, scenario: str, call: str = "debit", times: int | None = 1) -> None:
        wanted = {"family": provider_name, "scenario": scenario, "call": call, "times": times}
        await self.control("POST", "/next", json=wanted)

    async def held(self, **query: str) -> list[dict[str, Any]]:
        """The transactions that the simulated providers hold, newest first."""
        found: list[dict[str, Any]] = (await self.control("GET", "/transactions", params=query))["transactions"]
        return found

    async def nudged(self, work: Awaitable[T]) -> T:
        """Waits for `work`; advances the clock whenever `work` waits for it."""
        task, waited = asyncio.ensure_future(work), 0.0
        while not task.done():
            await asyncio.wait([task], timeout=_LOOK)
            waited += _LOOK
            if not task.done() and (waited >= _PATIENCE or not set(_ANSWERING).isdisjoint(self.clock.sleepers)):
                self.clock.advance(_SLOW)
                waited = 0.0
        return await task

    async def turn(self, seconds: float) -> None:
        """Advances the clock, then waits for the providers' callbacks and for everything that our worker finds due."""
        self.clock.advance(seconds)
        await self.nudged(self.quiet())
        await self.nudged(self.service.worker.run_until_idle())
        await self.nudged(self.quiet())

    async def quiet(self) -> None:
        """Waits until every decision that is due was taken and every callback that is due has been answered."""
        async with asyncio.timeout(PATIENCE):
            while self.store.rows(UNANSWERED, self.clock.now()):
                await asyncio.sleep(0.002)


@dataclass
class Simulation:
    """The simulator, which goes on while the service is stopped and started again."""

    settings: Settings
    port: int
    simulator: str
    clock: TurningClock
    store: Store
    merchant: MerchantClient | None = None

    @asynccontextmanager
    async def running(self, setup: Setup) -> AsyncIterator[SimulatedProviders]:
        """The service with these accounts, and the same merchant each time."""
        config = ProvidersConfig(
            {name: _simulated(each, self.simulator) for name, each in setup.accounts.items()},
            {code: tuple(names) for code, names in setup.routes.items()},
        )
        async with (
            open_service(self.settings, self.clock, self.port, providers=config) as service,
            aiohttp.ClientSession() as http,
        ):
            self.merchant = replace(self.merchant, service=service) if self.merchant else await service.merchant()
            yield SimulatedProviders(service, self.merchant, self.simulator, http, self.clock, self.store)


def _simulated(account: ProviderAccount, simulator: str) -> ProviderAccount:
    return structs.replace(account, base_url=account.base_url.replace("{sim}", simulator))


@asynccontextmanager
async def open_simulation(settings: Settings, setup: Setup) -> AsyncIterator[Simulation]:
    """The schema must be there already. Callbacks without a URL in their request go to that of the provider."""
    clock = TurningClock()
    port, simulator_port = free_port(), free_port()
    settings = replace(settings, public_url=f"http://127.0.0.1:{port}")
    simulator = f"http://127.0.0.1:{simulator_port}/simulator"
    dashboards = {
        provider_name: Dashboard(
            f"{settings.public_url}/providers/{provider_name}/callback", SECRETS.get(provider_name)
        )
        for provider_name in {each.provider for each in setup.accounts.values()}
    }
    app = create_simulator(None, public_url=simulator, clock=clock, callbacks=dashboards)
    async with app.router.lifespan_context(app), serving(app, simulator_port):
        yield Simulation(settings, port, simulator, clock, app.state.store)


@asynccontextmanager
async def open_simulated_providers(settings: Settings, setup: Setup) -> AsyncIterator[SimulatedProviders]:
    """The simulator and one service."""
    async with open_simulation(settings, setup) as simulation, simulation.running(setup) as simulated:
        yield simulated
