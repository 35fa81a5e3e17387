"""Runs every measure of the table and writes `bench/results.md`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import loads, seed, servers
from bench.flat_report import FLAT
from bench.layout import missing
from bench.loads import median
from bench.measures import exports, hooks, life, pages, posting, production, reads
from bench.peers import launch
from bench.results import RESULTS, Rows, landed, page
from bench.rounds import Runs, interleaved, paired, rates
from guichet.domain.exports import MOST_DIRECT_ROWS
from guichet.settings import Settings


@dataclass(frozen=True)
class Effort:
    """How long the measures take."""

    seconds: float = 6
    rounds: int = 3
    #: Payments and webhooks of each round.
    lives: int = 6_000
    queued: int = 10_000
    #: Payments before the memory is read again.
    many: int = 100_000
    #: Payments there are before reads, and before exports.
    seeded: int = 10_000
    exported: int = 2 * MOST_DIRECT_ROWS
    #: Payments of each round that are settled by being read.
    settling: int = 2_000
    starts: int = 3
    #: With the peers that need Node or FastAPI.
    foreign_peers: bool = True


Part = Callable[[Rows, Effort, Path, str], Awaitable[None]]
_OWN_TABLE: Final = "the bare handler on a table of its own with two indexes"
_LIVE: Final = "the same, a live payment, its simulated provider beside"
_BARE_POST: Final = "the bare handler's POST of the same rounds"


async def quick(requests: int, parts: Sequence[Part]) -> None:
    """Every measure, with so many requests each and three at a time: its figures mean nothing, but that it runs and
    that all its requests are answered right."""
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
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(run(part))


async def everything(effort: Effort, parts: Sequence[Part]) -> None:
    """`parts`: all of them are written into the file of results, some are only printed."""
    rows = Rows(landed())
    limit = await posting.generator_limit()
    with servers.folder() as home, servers.postgres() as server:
        for part in parts:
            await part(rows, effort, home, server)
            if parts is PARTS:  # What was measured stays, whatever happens next.
                RESULTS.write_text(page(rows, _how(effort, limit), FLAT.name))


def _how(effort: Effort, limit: float) -> str:
    return (
        f"`make bench`. Contenders ran in turn (A B C A B C …): medians of {effort.rounds} runs of {effort.seconds:g} "
        "s; a ratio is the median of those of each round, and where they lie more than 10 % of it apart, this spread "
        "is printed. Ratios hold from run to run on such a machine, absolute numbers do not. The load generator itself "
        f"reaches {limit:,.0f}/s against a server that does nothing. Throughput: closed loop. Latency at a rate: open "
        "loop, from the instant at which a request was due. Guichet's rate limit is off and it logs errors only, as "
        "its peers; in the `POST` rows its worker is off, since they have none."
    )


async def _posting(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    async with posting.sqlite_contenders(home, foreign=effort.foreign_peers) as contenders:
        runs = await interleaved(contenders, effort.seconds, effort.rounds)
    label = "`POST /payments`, embedded SQLite, durable, 32 connections"
    _compare(rows, label, runs, "usual", "FastAPI + SQLAlchemy async + aiosqlite", 6.0)
    words = "`stripe-stateful-mock` in Node, in memory, one process"
    _compare(rows, "the same", runs, "mock", words)
    _compare(rows, "the same, `serve --workers 2`", runs, "mock", words, 1.2, posting.TWO_PROCESSES)
    _compare(rows, "the same", runs, "bare", "a bare Starlette + group commit handler", 1.4)
    _compare(rows, "the same", runs, posting.OWN_TABLE, _OWN_TABLE)
    label = "the same, with its worker, logging requests, numbers of every outcome"
    _compare(rows, label, runs, "bare", "the bare handler", 1.0, posting.AS_USERS_RUN_IT)
    _compare(rows, label, runs, posting.OWN_TABLE, _OWN_TABLE, 0.9, posting.AS_USERS_RUN_IT)
    _compare(rows, _LIVE, runs, "bare", "the bare handler", None, posting.LIVE)
    async with posting.postgres_contenders(home, server, foreign=effort.foreign_peers) as contenders:
        runs = await interleaved(contenders, effort.seconds, effort.rounds)
    label = "`POST /payments`, PostgreSQL, 32 connections"
    _compare(rows, label, runs, "usual", "FastAPI + SQLAlchemy async + asyncpg", 2.5)
    _compare(rows, "the same", runs, "bare", "a bare Starlette + asyncpg handler", 1.2)
    _compare(rows, "the same", runs, posting.OWN_TABLE, _OWN_TABLE)
    _compare(rows, "the same", runs, "pgbench", "pgbench, same INSERT")
    _compare(rows, "the same", runs, "pgbench+counts", "pgbench, same INSERT, with our triggers")
    _compare(rows, _LIVE, runs, "bare", "the bare handler", None, posting.LIVE)


def _compare(
    rows: Rows, label: str, runs: Runs, other: str, words: str, bound: float | None = None, who: str = "guichet"
) -> None:
    if other not in runs:
        rows.add(label, f"the ratio to {words}", "not measured: the other is missing here")
        return
    p99 = f"; p99 {median(runs[who]).p99:.0f} ms"
    rows.ratio(label, words, paired(rates(runs[who]), rates(runs[other])), bound, p99)


async def _lives(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    for name, settings, bare_url, bound in (
        ("SQLite", *await _database(home, None, "life"), 0.7),
        ("PostgreSQL", *await _database(home, server, "life"), 0.5),
    ):
        found = await life.measure(settings, bare_url, effort.lives, effort.seconds, effort.rounds)
        measured = (
            f"{found.against_bare.mine:,.0f}/s; at {found.half_rate:,.0f}/s the delivery arrives {found.p50:.1f} ms "
            f"after the settlement at p50, {found.p99:.1f} ms at p99"
        )
        rows.add(f"whole life, {name}", "per second; delay at half that rate, p50 and p99", measured)
        rows.ratio("the same", _BARE_POST, found.against_bare, bound)


async def _webhooks(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    for name, on, bound in (("SQLite", None, 0.75), ("PostgreSQL", server, 0.7)):
        settings, _ = await _database(home, on, "hooks")
        ratio = await hooks.emptying(settings, effort.rounds, effort.queued)
        label = f"{effort.queued:,} webhooks queued, a fast receiver, {name}"
        rows.ratio(label, "a bare aiohttp loop posting the same bodies", ratio, bound)
    for name, on in (("SQLite", None), ("PostgreSQL", server)):
        settings, _ = await _database(home, on, "hanging")
        calm, hanging = await hooks.beside_a_hanging_one(settings, effort.rounds, 20, 3 * effort.seconds)
        measured = f"{hanging / calm:.2f} × ({hanging:.1f} ms beside it, {calm:.1f} ms without)"
        must = "first-attempt delay of the fast one, p99, ≤ 1.5 × what it is without the slow one"
        rows.add(f"an endpoint that hangs 10 s beside a fast one, {name}", must, measured, hanging <= 1.5 * calm)


async def _reads(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    count = effort.seeded
    settings, bare_url = await _database(home, None, "reads")
    merchant = await seed.seed(settings, count)
    async with launch.peer("bare", bare_url) as bare:
        found = await reads.measure(settings, merchant, bare, effort.seconds, effort.rounds, effort.settling)
    for read in [*found, *await pages.measure(settings, merchant, count, effort.seconds)]:
        speed = (
            f"{read.per_second:,.0f}/s" if read.rows is None else f"{read.per_second * read.rows:,.0f} rows a second"
        )
        measured = f"{speed}; at half of it p50 {read.half.p50:.1f} ms, p99 {read.half.p99:.1f} ms"
        rows.add(f"{read.name} (SQLite, {count:,} payments)", "per second and p99", measured)
        if read.against_bare is not None:
            rows.ratio(
                "the same", _BARE_POST, read.against_bare, {reads.SETTLED: 0.9, reads.LISTED: 0.6}.get(read.name)
            )


async def _exports(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    settings = servers.settings_for(home / "exports")
    merchant = await seed.seed(settings, effort.exported)
    for each in await exports.measure(settings, merchant.id):
        measured = f"{each.per_second:,.0f} rows a second; {each.late:.1f} ms, at most {each.longest:.1f} ms"
        rows.add(f"export of {each.rows:,} payments, {each.name}", "rows a second; how long others wait, p99", measured)


async def _process(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    seconds = await reads.starts(home / "start", effort.starts)
    rows.add("start to first 201", "≤ 0.9 s", f"{seconds:.2f} s", seconds <= 0.9)
    idle, loaded = await reads.memory(home / "memory", effort.many)
    must = f"idle, ≤ 95 MB; after {effort.many:,} payments"
    rows.add("memory of a server", must, f"{idle:.0f} MB; {loaded:.0f} MB", idle <= 95)


async def production_rows(rows: Rows, effort: Effort, home: Path, server: str) -> None:
    """On a PostgreSQL of its own, because a standby makes all its databases wait."""
    if lacking := missing():
        rows.add(production.LABEL, "p50, p99", f"not measured: {', '.join(lacking)} missing here")
        return
    for found in await production.measure(home / "production", effort.seconds, effort.rounds):
        rows.add(f"{production.LABEL}, {found.rate:g} a second", *found.cells())


#: In the order of the table.
PARTS: Final[tuple[Part, ...]] = (_posting, _lives, _webhooks, _reads, _exports, _process, production_rows)


async def _database(home: Path, server: str | None, name: str) -> tuple[Settings, str]:
    """Settings on a database of its own, and an empty database for a peer; on SQLite without `server`."""
    if server is None:
        return servers.settings_for(home / name), f"sqlite:///{home / name}_bare.db"
    url = await servers.new_database(server, name)
    return servers.settings_for(home / f"{name}_pg", url), await servers.new_database(server, f"{name}_bare")
