"""The trial on one database: prepares it, sends everything, and says what was found."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from guichet.db import migrate
from guichet.settings import Settings
from reliability.fuzz import by_schema, money, process
from reliability.fuzz.calls import Calls
from reliability.fuzz.checks import Violation, check
from reliability.fuzz.exchange import Sent, Violated, exchange, send
from reliability.fuzz.failure import saved_probe
from reliability.fuzz.hostile_server import HostileServer, simulator_books
from reliability.fuzz.known import Known, create_merchants, open_connections, prepare
from reliability.fuzz.process import Held, Process
from reliability.fuzz.recorded import Probe
from reliability.fuzz.requests import probe
from reliability.fuzz.sockets import BrokenAnswer, Connection
from tests.ports import free_port

#: Growth that counts as a leak, over the whole trial after a tenth of it.
MAX_GROWTH_MEGABYTES: Final = 48.0
MAX_GROWTH_DESCRIPTORS: Final = 8
#: The parts of the requests that schemathesis and hypothesis make, and that are sent with every limit on: always enough
#: of them to be refused: so many for each request a minute that one address may make.
_BY_SCHEMA: Final = 0.02
_BY_HYPOTHESIS: Final = 0.03
_LIMITED: Final = 0.05
_MIN_LIMITED: Final = 8 / 3
_WARM_UP: Final = 0.1


@dataclass(frozen=True)
class Plan:
    """How much is sent to one database. `answers`: hostile ones that the service must have met. `rest`: seconds without
    a change of its descriptors after which it counts as at rest, longer than it keeps connections for another use.
    `limit`: requests a minute of one address, while the limits are on."""

    requests: int
    answers: int
    seed: int
    rest: float = 6.0
    limit: int = 120


@dataclass
class Found:
    """What the trial on one database found; `faults` is empty when everything held."""

    database: str
    sent: Sent = field(default_factory=Sent)
    answered: dict[str, int] = field(default_factory=dict)
    agreement: money.Agreement = field(default_factory=money.Agreement)
    before: Held = field(default_factory=lambda: Held(0, 0))
    after: Held = field(default_factory=lambda: Held(0, 0))
    audit_is_clean: bool = False
    faults: list[str] = field(default_factory=list)
    #: The first request that was answered wrongly, and the names that it used.
    violated: Violated | None = None
    known: Known = field(default_factory=dict)
    last_calls: list[str] = field(default_factory=list)


@dataclass
class _Trial:
    settings: Settings
    plan: Plan
    found: Found
    progress: Callable[[Found, HostileServer | None], None]
    server: HostileServer | None = None

    def tell(self) -> None:
        self.progress(self.found, self.server)


async def run(settings: Settings, plan: Plan, progress: Callable[[Found, HostileServer | None], None]) -> Found:
    """`settings`: of an empty database and a data folder of its own."""
    trial = _Trial(settings, plan, Found("SQLite" if settings.embedded else "PostgreSQL"), progress)
    await migrate.upgrade(settings)
    await create_merchants(settings, plan.seed)
    try:
        async with _serving(settings, plan.seed, trial.found) as (served, server):
            trial.server = server
            await _attack(trial, served, server)
        await _look_into_books(trial, server)
        await _attack_with_limits(trial)
    except* Violated as group:
        violated = next(error for error in _leaves(group) if isinstance(error, Violated))
        trial.found.violated = violated
        trial.found.faults.append(f"request {violated.number} ({violated.probe.kind}): {violated.reason}")
    except* BrokenAnswer as group:
        trial.found.faults += [str(error) for error in _leaves(group)][:5]
    return trial.found


async def replay(settings: Settings, plan: Plan, file: Path) -> Found:
    """Sends the saved request of a failure to a new service."""
    found = Found("SQLite" if settings.embedded else "PostgreSQL")
    await migrate.upgrade(settings)
    await create_merchants(settings, plan.seed)
    async with _serving(settings, plan.seed, found) as (served, server):
        server.hostile = False
        found.known = await prepare(served.port, plan.seed, server.url)
        again = saved_probe(file, found.known)
        connection = Connection(served.port)
        try:
            answers = await exchange(connection, again)
            found.sent.count(again, answers)
            check(again, answers)
        except (Violation, BrokenAnswer) as error:
            found.faults.append(f"{type(error).__name__}: {error}")
        await connection.close()
    return found


@asynccontextmanager
async def _serving(settings: Settings, seed: int, found: Found) -> AsyncIterator[tuple[Process, HostileServer]]:
    """The service, the simulated providers, and the hostile server between them."""
    port, simulator_port, hostile_port = free_port(), free_port(), free_port()
    environ = process.environment(settings, port, process.write_providers_file(settings.home, hostile_port))
    simulator = process.guichet("simulator", simulator_port, environ, settings.home)
    hostile = HostileServer(Random(f"{seed}:answers"), simulator_port, hostile_port)
    async with hostile as server, AsyncExitStack() as stack:
        service = process.guichet("serve", port, environ, settings.home)
        _, served = await asyncio.gather(*map(stack.enter_async_context, (simulator, service)))
        with served.errors_told(found.faults):
            yield served, server


async def _attack_with_limits(trial: _Trial) -> None:
    """A part of the requests again, with the limits on that the trial switched off. No provider is there."""
    settings, plan, found = trial.settings, trial.plan, trial.found
    port = free_port()
    limits = {"GUICHET_RATE_LIMIT": str(plan.limit), "GUICHET_PAGE_RATE_LIMIT": str(plan.limit // 2)}
    environ = process.environment(settings, port, process.write_providers_file(settings.home, 1)) | limits
    async with process.guichet("serve", port, environ, settings.home) as served:
        count = max(int(_MIN_LIMITED * plan.limit), int(plan.requests * _LIMITED))
        probes = _probes(plan.seed, plan.requests, plan.requests + count, found.known)
        with served.errors_told(found.faults):
            await send(served.port, probes, found.sent, trial.tell)


async def _attack(trial: _Trial, served: Process, server: HostileServer) -> None:
    plan, found = trial.plan, trial.found
    server.hostile = False
    found.known = await prepare(served.port, plan.seed, server.url)
    await open_connections(served.port, found.known)
    server.hostile = True
    calls = Calls(served.port, plan.seed, server, trial.tell)
    warm = int(plan.requests * _WARM_UP)
    await send(served.port, _probes(plan.seed, 0, warm, found.known), found.sent, trial.tell)
    await calls.provoke(int(plan.answers * _WARM_UP))
    found.before = await served.held_at_rest(plan.rest)
    await _send_rest(trial, served, warm)
    await calls.provoke(plan.answers - server.hostile_answers)
    server.hostile = False
    found.after = await served.held_at_rest(plan.rest)
    found.answered, found.last_calls = dict(server.answered), server.last
    _judge_growth(found)


async def _send_rest(trial: _Trial, served: Process, first: int) -> None:
    plan, found = trial.plan, trial.found
    by_schemathesis, by_hypothesis = int(plan.requests * _BY_SCHEMA), int(plan.requests * _BY_HYPOTHESIS)
    await asyncio.to_thread(by_schema.drive, served.port, plan.seed, found.known, by_schemathesis, found.sent)
    drawn = await asyncio.to_thread(by_schema.draw, plan.seed, found.known, by_hypothesis)
    await send(served.port, enumerate(drawn), found.sent, trial.tell)
    last = plan.requests - int(plan.requests * _LIMITED) - by_schemathesis - by_hypothesis
    await send(served.port, _probes(plan.seed, first, last, found.known), found.sent, trial.tell)


def _probes(seed: int, first: int, last: int, known: Known) -> Iterator[tuple[int, Probe]]:
    return ((number, probe(seed, number, known)) for number in range(first, last))


def _judge_growth(found: Found) -> None:
    grown = found.after.megabytes - found.before.megabytes
    if grown > MAX_GROWTH_MEGABYTES:
        found.faults.append(f"memory grew by {grown:.1f} MB")
    more = found.after.descriptors - found.before.descriptors
    if more > MAX_GROWTH_DESCRIPTORS:
        found.faults.append(f"{more} more descriptors are open")


async def _look_into_books(trial: _Trial, server: HostileServer) -> None:
    settings, found = trial.settings, trial.found
    found.agreement = await money.compare(settings, simulator_books(settings.home), server.acknowledged)
    found.faults += found.agreement.faults[:5]
    environ = process.environment(settings, 0, process.write_providers_file(settings.home, 1))
    code, said = await process.command("ledger", "audit", "--json", environ=environ)
    found.audit_is_clean = code == 0
    if not found.audit_is_clean:
        found.faults.append(f"the audit of the ledger: {said[-500:]}")


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
