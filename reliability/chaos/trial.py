"""One trial on one database: traffic and kills, then quiet until everything has ended, then the comparison."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from guichet.domain.payments import Payment, Refund
from reliability.api_client import ApiClient
from reliability.books import Comparison, compare
from reliability.chaos.kills import Killer, Victim
from reliability.installation import Installation
from reliability.journal import Journal
from reliability.merchant import Merchant, WebhookReceiver, create_merchants
from reliability.postgresql import PostgresqlServer
from reliability.processes import ManagedProcess, guichet, run_command
from reliability.traffic import Traffic

DatabaseKind = Literal["sqlite", "postgresql"]
MERCHANTS: Final = 4
#: Seconds between two looks at what is still open, once the traffic has ended.
_LOOK: Final = 20.0
_WIDTH: Final = 16


@dataclass(frozen=True)
class Plan:
    """`payments`, `kills`: at least so many of each. `interval`: seconds between two kills, on average.
    `rate`: payments a second, None for as many as the machine can take. `settle`: seconds that what was cut off may
    take to end; fifteen minutes are needed to prove that a request never arrived (D88)."""

    database: DatabaseKind
    seed: int
    payments: int
    kills: int
    interval: float
    rate: float | None
    settle: float
    folder: Path
    first_port: int
    width: int = 32


@dataclass
class Trial:
    """What is known of a trial while it runs, and at its end."""

    plan: Plan
    journal: Journal = field(default_factory=Journal)
    merchants: list[Merchant] = field(default_factory=list)
    comparison: Comparison = field(default_factory=Comparison)
    phase: str = "starting"
    killer: Killer | None = None
    api: ApiClient | None = None
    receiver: WebhookReceiver | None = None
    #: Seconds.
    traffic_took: float = 0.0
    settling_took: float = 0.0

    @property
    def kills(self) -> int:
        return self.killer.kills if self.killer else 0

    async def run(self) -> None:
        """Raises RuntimeError if something does not start."""
        plan = self.plan
        async with _services(plan) as services:
            self.merchants = await create_merchants(services.installation.settings, MERCHANTS)
            self.receiver = WebhookReceiver(self.merchants, plan.seed)
            await self.receiver.start(services.receiver_port)
            await services.start()
            async with ApiClient(services.installation.base_urls) as self.api:
                await _configure_endpoints(self.api, self.merchants, self.receiver)
                await self._make_traffic(services)
                await self._settle(services.installation)
                await services.stop_guichet()
                self.phase = "comparing"
                self.comparison = await compare(services.installation, self.journal, self.merchants)
                await self._check_commands(services.installation)
            for fault in self.api.faults:
                self.comparison.differs("an answer 500", fault)
            await self.receiver.stop()

    async def _make_traffic(self, services: "_Services") -> None:
        plan = self.plan
        assert self.api is not None
        assert self.receiver is not None
        traffic = Traffic(self.api, self.merchants, self.journal, plan.seed, plan.rate, plan.width)
        self.receiver.on_event = traffic.on_event
        self.killer = Killer(services.victims, plan.seed, plan.interval)
        self.phase = "traffic"
        began = time.monotonic()

        def enough() -> bool:
            return self.journal.payments >= plan.payments and self.kills >= plan.kills

        async with asyncio.TaskGroup() as group:
            group.create_task(traffic.run(enough))
            group.create_task(self.killer.run(enough))
        self.traffic_took = time.monotonic() - began

    async def _settle(self, installation: Installation) -> None:
        """Until nothing is open without a reason: merchants read what is pending, which asks the providers."""
        self.phase = "settling"
        began = time.monotonic()
        async with ApiClient(installation.base_urls[:1]) as api:
            while time.monotonic() - began < self.plan.settle:
                self.comparison = await compare(installation, self.journal, self.merchants, with_ledger=False)
                if not self.comparison.difference_count and not self.comparison.figures["deliveries that wait"]:
                    break
                await self._read_open(api, self.comparison.unexplained)
                await asyncio.sleep(_LOOK)
        self.settling_took = time.monotonic() - began

    async def _read_open(self, api: ApiClient, subjects: list[Payment | Refund]) -> None:
        keys = {merchant.id: merchant.key for merchant in self.merchants}
        gate = asyncio.Semaphore(_WIDTH)

        async def read(subject: Payment | Refund) -> None:
            kind = "payments" if isinstance(subject, Payment) else "refunds"
            async with gate:
                await api.call("GET", f"/v1/{kind}/{subject.reference}", keys[subject.merchant_id])

        await asyncio.gather(*(read(subject) for subject in subjects))

    async def _check_commands(self, installation: Installation) -> None:
        for command in (("ledger", "audit"), ("audit-log", "verify")):
            code, out, err = await run_command(guichet(*command), installation.environ)
            if code != 0:
                self.comparison.differs(f"guichet {' '.join(command)} finds faults", (out + err)[-1000:])


async def _configure_endpoints(api: ApiClient, merchants: list[Merchant], receiver: WebhookReceiver) -> None:
    for merchant in merchants:
        url = {"url": receiver.url(merchant)}
        answer = await api.call("PUT", "/v1/webhooks/endpoint", merchant.key, json=url)
        assert answer is not None, "nobody answers"
        assert answer.status == 200, answer
        merchant.secret = answer.data["secret"]


@dataclass
class _Services:
    """The processes of a trial. `guichet`: those of Guichet itself."""

    installation: Installation
    receiver_port: int
    simulator: ManagedProcess
    guichet: list[ManagedProcess]
    victims: list[tuple[Victim, int]]

    async def start(self) -> None:
        await self.simulator.start_and_wait()
        for process in self.guichet:
            await process.start_and_wait()

    async def stop_guichet(self) -> None:
        """A stop at the end is an orderly one."""
        codes = await asyncio.gather(*(process.stop() for process in self.guichet))
        assert set(codes) == {0}, codes


@asynccontextmanager
async def _services(plan: Plan) -> AsyncIterator[_Services]:
    """Prepares a fresh installation; kills whatever is left of it at the end."""
    shutil.rmtree(plan.folder, ignore_errors=True)
    plan.folder.mkdir(parents=True)
    simulator_port, receiver_port, postgresql_port, *serve_ports = range(plan.first_port, plan.first_port + 5)
    several = plan.database == "postgresql"
    installation = Installation(plan.folder, simulator_port, serve_ports if several else serve_ports[:1])
    postgresql = PostgresqlServer(plan.folder, postgresql_port) if several else None
    started: list[ManagedProcess] = []
    try:
        if postgresql is not None:
            await postgresql.start()
            installation.database_url = await postgresql.create_database("guichet")
        code, out, err = await run_command(guichet("migrate"), installation.environ)
        assert code == 0, out + err
        simulator = installation.simulator()
        started = [simulator, *_guichet_processes(installation, several=several)]
        victims: list[tuple[Victim, int]] = [(process, 4) for process in started[1:]] + [(simulator, 1)]
        if postgresql is not None:
            victims.append((postgresql, 1))
        yield _Services(installation, receiver_port, simulator, started[1:], victims)
    finally:
        for process in started:
            await process.kill()
        if postgresql is not None:
            await postgresql.stop()


def _guichet_processes(installation: Installation, *, several: bool) -> list[ManagedProcess]:
    """SQLite serves one process; on PostgreSQL two servers and two workers share the work, so that it flows on."""
    if not several:
        return [installation.server(installation.ports[0])]
    servers = [installation.server(port, "--no-worker") for port in installation.ports]
    return [*servers, *(installation.worker(number) for number in (1, 2))]
