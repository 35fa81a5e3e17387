"""One trial on one database: traffic and kills, then quiet until everything has ended, then the comparison."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from guichet.db.engine import require
from guichet.domain.payments import Payment, Refund
from guichet.domain.roles import MerchantRole
from reliability.api_client import ApiClient
from reliability.books import Comparison, compare
from reliability.chaos.kills import Killer
from reliability.chaos.services import Services, own_services
from reliability.customers import LinkCustomers
from reliability.forger import Forger
from reliability.installation import Installation
from reliability.journal import Journal
from reliability.merchant import Merchant, WebhookReceiver, create_merchants
from reliability.orders import DEBIT_SCENARIOS
from reliability.people.books import compare_people, waiting
from reliability.people.mailbox import Mailbox
from reliability.people.people import People
from reliability.people.staff_members import is_for_the_console
from reliability.processes import guichet, run_command
from reliability.staff import Staff
from reliability.traffic import Traffic

DatabaseKind = Literal["sqlite", "postgresql"]
MERCHANTS: Final = 4
_WIDTH: Final = 16


@dataclass(frozen=True)
class Plan:
    """`payments`, `kills`: at least so many of each, the kills spread over the payments. `interval`: seconds between
    two kills at least, on average.
    `rate`: payments a second, None for as many as the machine can take. `settle`: seconds that what was cut off may
    take to end; fifteen minutes are needed to prove that a request never arrived."""

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
    scenarios: Mapping[str, int] = field(default_factory=lambda: DEBIT_SCENARIOS)
    #: Seconds between two looks at what is still open, once the traffic has ended.
    look: float = 20.0
    #: Whether the end waits for the proofs that requests never arrived.
    proof_expected: bool = True
    #: Merchants whose team works in the console, the roles of each team, and seconds between two acts of a person.
    teams: int = MERCHANTS
    roles: tuple[MerchantRole, ...] = ("owner", "finance")
    pace: float = 3.0
    #: Of a thousand mails, how many are taken by a server that then says that it could not.
    unsaid: int = 100


@dataclass
class Trial:
    """What is known of a trial while it runs, and at its end."""

    plan: Plan
    journal: Journal = field(default_factory=Journal)
    merchants: list[Merchant] = field(default_factory=list)
    comparison: Comparison = field(default_factory=Comparison)
    #: Why the payments and refunds that only people could end had been waiting.
    ended_by_staff: Counter[str] = field(default_factory=Counter)
    phase: str = "starting"
    killer: Killer | None = None
    staff: Staff | None = None
    forger: Forger | None = None
    api: ApiClient | None = None
    receiver: WebhookReceiver | None = None
    people: People | None = None
    mailbox: Mailbox | None = None
    #: Exports of the console that could be downloaded at the end, by their path.
    files: dict[str, bytes] = field(default_factory=dict)
    #: Seconds.
    traffic_took: float = 0.0
    settling_took: float = 0.0

    @property
    def kills(self) -> int:
        return self.killer.kills if self.killer else 0

    async def run(self) -> None:
        """Raises RuntimeError if something does not start."""
        plan = self.plan
        several = plan.database == "postgresql"
        async with own_services(plan.folder, plan.first_port, several=several) as services:
            await self.run_on(services)

    async def run_on(self, services: Services) -> None:
        """The same on services that the caller prepared; their database is up to date."""
        installation = services.installation
        self.merchants = await create_merchants(installation.settings, MERCHANTS)
        self.receiver = WebhookReceiver(self.merchants, self.plan.seed)
        self.mailbox = Mailbox(self.plan.seed, services.smtp_port, self.plan.unsaid)
        await self.receiver.start(services.receiver_port)
        await self.mailbox.start()
        try:
            await services.start()
            async with ApiClient(installation.base_urls) as self.api:
                await _configure_endpoints(self.api, self.merchants, self.receiver)
                await self._make_traffic(services)
                await self._settle(installation)
                await require(self.people).ask_at_rest()
                self.files = await require(self.people).fetch_exports()
            await services.stop_guichet()
        finally:
            await self.receiver.stop()
            await self.mailbox.stop()
        self.phase = "comparing"
        self.comparison = await compare(installation, self.journal, self.merchants, self.plan.proof_expected)
        await compare_people(self.comparison, installation, require(self.people), self.files)
        await self._check_commands(installation)
        self._check_answers_500(services)

    def _check_answers_500(self, services: Services) -> None:
        """A 500 is right while the database is away, which the servers log; any other is a difference."""
        faults = require(self.api).faults
        if len(faults) > services.logged("request.storage"):
            for fault in faults:
                self.comparison.differs("an answer 500 without an outage of the database", fault)

    async def _make_traffic(self, services: Services) -> None:
        plan = self.plan
        assert self.api is not None
        assert self.receiver is not None
        traffic = Traffic(self.api, self.merchants, self.journal, plan.seed, plan.rate, plan.width, plan.scenarios)
        traffic.link_customers = LinkCustomers(self.api, self.merchants, self.journal, plan.seed)
        await traffic.link_customers.create_links()
        self.receiver.on_event = traffic.on_event
        self.people = People(
            services.installation,
            self.merchants,
            self.api,
            self.journal,
            traffic.link_customers,
            require(self.mailbox),
            plan.seed,
            teams=plan.teams,
            roles=plan.roles,
            interval=plan.pace,
        )
        await self.people.prepare()
        self.staff = Staff(services.installation, self.merchants, plan.seed, left_to_console=is_for_the_console)
        self.forger = Forger(services.installation, plan.seed)
        self.killer = Killer(services.victims, plan.seed, plan.interval, self._is_kill_due)
        self.phase = "traffic"
        began = time.monotonic()

        def enough() -> bool:
            return self.journal.payments >= plan.payments and self.kills >= plan.kills

        async with asyncio.TaskGroup() as group:
            for each in (traffic, self.killer, self.staff, self.forger, self.people):
                group.create_task(each.run(enough))
        self.traffic_took = time.monotonic() - began

    def _is_kill_due(self) -> bool:
        return self.kills * self.plan.payments <= self.journal.payments * self.plan.kills

    async def _settle(self, installation: Installation) -> None:
        """Until nothing is open without a reason: merchants read what is pending, which asks the providers; providers
        repeat what they told while nobody listened; people decide what only people can."""
        self.phase = "settling"
        began = time.monotonic()
        await require(self.forger).fill_wallets()
        async with ApiClient(installation.base_urls[:1]) as api:
            while time.monotonic() - began < self.plan.settle:
                await self.before_each_look()
                found = await compare(
                    installation, self.journal, self.merchants, self.plan.proof_expected, with_ledger=False
                )
                self.comparison = found
                found.figures["work of the console that waits"] = await waiting(installation)
                open_still = found.figures["deliveries that wait"] + found.figures["work of the console that waits"]
                if not (found.difference_count or found.for_staff or open_still):
                    break
                await self._read_open(api, found.unexplained)
                await self._act_for_people(found)
                await asyncio.sleep(self.plan.look)
        self.settling_took = time.monotonic() - began

    async def _act_for_people(self, found: Comparison) -> None:
        staff, forger = require(self.staff), require(self.forger)
        await forger.tell_again(found.taken_untold)
        await staff.decide(random.Random(self.plan.seed))
        if not found.unexplained:
            self.ended_by_staff = self.ended_by_staff or found.explained
            await staff.end(found.for_staff)

    async def before_each_look(self) -> None:
        """For a short trial, which cannot wait for leases and retries."""

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
