"""The trial itself: everything is started, each fault is injected under load, and the three books are compared."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reliability.api_client import ApiClient
from reliability.books import Comparison, compare
from reliability.comparison import print_comparison
from reliability.ha import witness
from reliability.ha.cluster import FILES, Cluster
from reliability.ha.faults import Fault, Parts
from reliability.ha.front import API, Front
from reliability.ha.report import Row, table
from reliability.ha.service import RECEIVER_PORT, Service
from reliability.journal import Journal
from reliability.merchant import Merchant, WebhookReceiver, create_merchants
from reliability.network import Network
from reliability.network_trial import say
from reliability.settling import audit_faults, configure_endpoints, settle
from reliability.steady_traffic import RATE, SteadyTraffic, outage, statuses_between

_MERCHANTS: Final = 4
#: Customers at a time: during an outage each one waits with its request.
_WIDTH: Final = 150
#: Seconds of undisturbed traffic before a fault, and how long the service may take to answer after it.
_STEADY: Final = 5.0
_BACK: Final = 60.0
#: So many 201 mean that payments flow again.
_FLOWING: Final = 50
#: Seconds that what was cut off may take to end.
_SETTLING: Final = 240.0


class Trial:
    def __init__(self, network: Network, folder: Path, seed: int) -> None:
        logs = folder / "logs"
        logs.mkdir()
        self._folder = folder
        self._seed = seed
        cluster = Cluster(network.machines, logs)
        front, service = Front(folder / "front", logs), Service.prepare(folder / "guichet")
        self.parts = Parts(network, cluster, front, service)
        self.journal = Journal()
        self.merchants: list[Merchant] = []
        self.rows: list[Row] = []

    async def run(self, faults: Sequence[Fault]) -> bool:
        """Whether nothing was lost, debited twice, or told wrongly."""
        await self._start()
        self.merchants = await create_merchants(self.parts.service.installation.settings, _MERCHANTS)
        receiver = WebhookReceiver(self.merchants, self._seed, well_behaved=True)
        await receiver.start(RECEIVER_PORT)
        async with ApiClient([API], connections=2 * _WIDTH) as api:
            await configure_endpoints(api, self.merchants, receiver)
            traffic = SteadyTraffic(api, self.merchants, self.journal, self._seed, RATE, _WIDTH)
            receiver.on_event = traffic.on_event
            await self._under_load(traffic, faults)
            say("no more payments; what is open ends")
            service = self.parts.service
            await settle(service.installation, api, self.journal, self.merchants, _SETTLING)
            await self.parts.supervisor.stop()
            await service.stop()
            found = await compare(service.installation, self.journal, self.merchants, proof_expected=False)
            for fault in await audit_faults(service.installation):
                found.differs("a command finds faults", fault)
            await receiver.stop()
        for lost in self.parts.lost:
            found.differs("a machine that was not the primary any more acknowledged a write", lost)
        return self._report(found)

    async def _start(self) -> None:
        say("starting three machines with etcd, Patroni and PostgreSQL")
        await self.parts.cluster.start()
        await self.parts.front.start()
        primary = await self.parts.primary()
        sql = self._folder / "guichet.sql"
        sql.write_text((FILES / "guichet.sql").read_text(encoding="utf-8"), encoding="utf-8")
        code, _, err = await primary.psql("-v", "ON_ERROR_STOP=1", "-f", sql)
        if code != 0:
            raise RuntimeError(f"guichet.sql: {err}")
        await witness.create_table(primary)
        say(f"{primary.name} is the primary; starting three guichet serve, two guichet worker and the simulator")
        await self.parts.service.start()
        watched = [*self.parts.service.processes, *self.parts.front.processes, *self.parts.cluster.etcds]
        self.parts.supervisor.watch(watched)

    async def _under_load(self, traffic: SteadyTraffic, faults: Sequence[Fault]) -> None:
        ended = asyncio.Event()
        running = asyncio.create_task(traffic.run(ended.is_set))
        try:
            for fault in faults:
                await self._one(traffic, fault)
        finally:
            ended.set()
            await running

    async def _one(self, traffic: SteadyTraffic, fault: Fault) -> None:
        await self.parts.cluster.healthy()
        await asyncio.sleep(_STEADY)
        statuses, acknowledged = traffic.api.statuses.copy(), traffic.acknowledged
        began = time.time()
        say(f"{fault.name} …")
        await fault.inject(self.parts)
        await self.parts.cluster.healthy()
        whole = time.time() - began
        await self._flows(traffic)
        ended = time.time()
        row = Row(
            fault.name,
            outage(await self._created(began, ended), began, ended),
            whole,
            traffic.acknowledged - acknowledged,
            statuses_between(statuses, traffic.api.statuses),
        )
        self.rows.append(row)
        say(row.line())

    async def _created(self, began: float, ended: float) -> list[float]:
        """When payments were stored, in seconds since 1970, as the primary has them."""
        statement = f"SELECT created_at FROM payments WHERE created_at BETWEEN {began:.6f} * 1e6 AND {ended:.6f} * 1e6"
        _, out, _ = await (await self.parts.primary()).psql("-d", "guichet", "-c", f"{statement} ORDER BY created_at")
        return [int(line) / 1e6 for line in out.split()]

    async def _flows(self, traffic: SteadyTraffic) -> None:
        """Waits until payments are acknowledged again. Nobody restarts Guichet."""
        before = traffic.acknowledged
        deadline = time.monotonic() + _BACK
        while traffic.acknowledged < before + _FLOWING:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no payment was acknowledged for {_BACK:g} s after the machines were back")
            await asyncio.sleep(0.2)

    def _report(self, found: Comparison) -> bool:
        print(table(self.rows))
        print(f"{self.journal.payments} payments acknowledged; {dict(found.figures)}")
        for name, count in sorted(self.parts.supervisor.restarts.items()):
            print(f"  {name} ended by itself and was started again: {count} ×")
        return print_comparison(found)
