"""The trial itself: the pages' setup, each scenario under load, and the three books compared after each."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reliability.api_client import ApiClient
from reliability.books import Comparison, compare
from reliability.comparison import print_comparison
from reliability.journal import Journal
from reliability.machines.app import API, RECEIVER_PORT, App
from reliability.machines.hosts import Hosts
from reliability.machines.pages import SETUP, steps
from reliability.machines.parts import Parts, Scenario
from reliability.machines.report import Result, table
from reliability.machines.watching import Reader, ReadyzProbe
from reliability.merchant import Merchant, WebhookReceiver, create_merchants
from reliability.network import Network
from reliability.network_trial import say
from reliability.settling import audit_faults, configure_endpoints, settle
from reliability.steady_traffic import RATE, SteadyTraffic, outage

_MERCHANTS: Final = 4
#: Customers at a time: during an outage each one waits with its request.
_WIDTH: Final = 150
#: Seconds of undisturbed traffic before and after what happens.
_STEADY: Final = 8.0
#: Seconds that what was cut off may take to end: after a scenario, and at the end.
_SETTLING: Final = 60.0
#: Differences that may still be on their way after a scenario. At the end they may not.
_HEALED_BY_TIME: Final = ("waits without a reason", "an event never came", "an event was never accepted")
_LAST_SETTLING: Final = 180.0


class Trial:
    def __init__(self, network: Network, folder: Path, seed: int) -> None:
        logs = folder / "logs"
        logs.mkdir()
        self._seed = seed
        self.hosts = Hosts(network, logs / "pages.log")
        self.app = App(folder / "app", logs, network.front.own_path("/etc/hosts"))
        self.journal = Journal()
        self.merchants: list[Merchant] = []
        self.results: list[Result] = []
        #: Differences of the books that were reported already.
        self._known: set[str] = set()

    async def run(self, scenarios: Sequence[Scenario]) -> bool:
        """Whether nothing was lost, debited twice, or answered wrongly."""
        await self._start()
        installation = self.app.installation
        self.merchants = await create_merchants(installation.settings, _MERCHANTS)
        receiver = WebhookReceiver(self.merchants, self._seed, well_behaved=True)
        await receiver.start(RECEIVER_PORT)
        async with (
            ApiClient([API], connections=2 * _WIDTH, tls=self.app.tls) as api,
            ApiClient([API], tls=self.app.tls) as reads,
        ):
            await configure_endpoints(api, self.merchants, receiver)
            for number, scenario in enumerate(scenarios):
                if not await self._one(scenario, number, receiver, api, reads):
                    break
            say("no more payments; what is open ends")
            await settle(installation, api, self.journal, self.merchants, _LAST_SETTLING)
            await self.app.stop()
            found = await compare(installation, self.journal, self.merchants, proof_expected=False)
            for fault in await audit_faults(installation):
                found.differs("a command finds faults", fault)
            await receiver.stop()
        return self._report(found)

    async def _start(self) -> None:
        say("three machines, set up as docs/operations/postgresql.md says")
        for host in (self.hosts.primary, self.hosts.standby):
            await host.install()
        for step in steps(SETUP, "Setting it up"):
            if step.commands.startswith("cd /root\n"):
                self.hosts.copy_certificates()
            if "synchronous_standby_names" in step.commands:
                await self.hosts.primary.wait_for_standby("guichet_b", "streaming|async")
            await self.hosts.run([step])
        await self.hosts.primary.wait_for_standby("guichet_b", "streaming|sync")
        say("two guichet serve behind HAProxy with TLS, one guichet worker, the simulator")
        await self.app.start()

    async def _one(
        self, scenario: Scenario, number: int, receiver: WebhookReceiver, api: ApiClient, reads: ApiClient
    ) -> bool:
        """Whether the hosts are in their places again, so that there can be another scenario."""
        say(f"{scenario.name} …")
        result = Result(scenario.name)
        traffic = SteadyTraffic(api, self.merchants, self.journal, self._seed * 100 + number, RATE, _WIDTH)
        receiver.on_event = traffic.on_event
        reader, probe = Reader(reads, self.merchants, self.journal), ReadyzProbe(self.app.installation.base_urls)
        paid_before, read_before = api.statuses.copy(), reads.statuses.copy()
        began, whole = time.time(), True
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(traffic.run(stop.is_set))
            group.create_task(reader.run(stop))
            group.create_task(probe.run(stop))
            await asyncio.sleep(_STEADY)
            try:
                await scenario.run(Parts(self.hosts, self.app, traffic, result))
                await asyncio.sleep(_STEADY)
            except RuntimeError as error:
                result.faults.append(str(error))
                whole = False
            until = time.time()
            stop.set()
        result.payment_statuses = api.statuses - paid_before
        result.read_statuses = reads.statuses - read_before
        for statuses in (result.payment_statuses, result.read_statuses):
            del statuses["given up"]  # Not an answer more.
        result.slowest_read, result.not_ready = reader.slowest, probe.longest
        result.outage = outage(await self._created(began, until), began, until)
        self._check(scenario, result, probe)
        await self._compare(result, api)
        self.results.append(result)
        say(result.line())
        for fault in result.faults:
            say(f"  ✗ {fault}")
        return whole

    def _check(self, scenario: Scenario, result: Result, probe: ReadyzProbe) -> None:
        if missing := result.read_statuses["404"]:
            result.faults.append(f"{missing} × 404 for payments that exist")
        if scenario.reads_go_on and result.failed_reads:
            result.faults.append(f"reads failed: {dict(result.read_statuses)}")
        if scenario.reads_go_on and (silent := [each for each in probe.reasons if not each.startswith("503")]):
            result.faults.append(f"/readyz did not answer in time: {silent}")
        if scenario.no_request_fails and result.failed_payments + result.failed_reads:
            result.faults.append(f"requests failed: {dict(result.payment_statuses)}, {dict(result.read_statuses)}")

    async def _compare(self, result: Result, api: ApiClient) -> None:
        """The three books, as far as this is possible while Guichet runs: all but the hash chain."""
        found = await settle(self.app.installation, api, self.journal, self.merchants, _SETTLING)
        for kind, details in found.differences.items():
            new = [each for each in details if each not in self._known]
            if new and not any(each in kind for each in _HEALED_BY_TIME):
                self._known.update(new)
                result.faults.append(f"{len(new)} × {kind}: {new[0]}")

    async def _created(self, began: float, ended: float) -> list[float]:
        """When payments were stored, in seconds since 1970, as the primary has them."""
        statement = f"SELECT created_at FROM payments WHERE created_at BETWEEN {began:.6f} * 1e6 AND {ended:.6f} * 1e6"
        for host in (
            self.hosts.primary,
            self.hosts.standby,
        ):  # A scenario that failed may have left either as the primary.
            if await host.is_primary():
                said = await host.query(f"{statement} ORDER BY created_at", "guichet")
                return [int(line) / 1e6 for line in (said or "").split()]
        return []

    def _report(self, found: Comparison) -> bool:
        print(table(self.results))
        print(f"{self.journal.payments} payments acknowledged; {dict(found.figures)}")
        for result in self.results:
            for fault in result.faults:
                print(f"✗ {result.scenario}: {fault}")
        agree = print_comparison(found)
        return agree and not any(result.faults for result in self.results)
