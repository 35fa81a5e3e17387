"""What each read and write costs as the payments grow: p95 at 10 000, 100 000, 1 000 000, 10 000 000 of them.

All sizes are measured at the same time, each with its own server, so that whatever the machine does it does to all.
Latencies are open-loop at a low rate: what one caller waits, not what a queue adds.
"""

import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from bench import console_pages, servers
from bench.generator import Load
from bench.loads import get, outcome, percentile, request
from bench.measures.posting import create
from bench.seed import external_id
from bench.servers import HOST, Merchant, Target
from guichet.bootstrap import database
from guichet.clock import DAY, HOUR, MINUTE, SECOND, SystemClock, iso, later
from guichet.db.queues.fair_share import Shares
from guichet.payments import pending
from guichet.settings import Settings
from guichet.webhooks import deliveries

#: Requests a second and seconds of one run.
RATE: Final = 30.0
SECONDS: Final = 5.0
#: Pages of the console a second: all sizes at the same time must leave the machine idle.
PAGE_RATE: Final = 4.0
CLAIMS: Final = 100
#: Rows claimed at once, as the worker does.
CLAIMED: Final = 32


@dataclass(frozen=True)
class Size:
    """A seeded database and the server before it."""

    count: int
    settings: Settings
    target: Target


@dataclass(frozen=True)
class Kind:
    """One line of the table: its name and the requests that make it."""

    name: str
    requests: list[bytes]
    rate: float = RATE


@dataclass(frozen=True)
class Taken:
    """Milliseconds."""

    p50: float
    p95: float


Grown = dict[str, dict[int, Taken]]


async def measure(sizes: Sequence[tuple[int, Settings, Merchant]], rounds: int, only: str = "") -> Grown:
    """The median over the rounds, by kind and size. `sizes`: count, settings, who holds the payments. `only`: the lines
    whose name has this text."""
    found: dict[str, dict[int, list[Taken]]] = defaultdict(lambda: defaultdict(list))
    async with AsyncExitStack() as stack:
        opened = []
        for count, settings, merchant in sizes:
            target = await stack.enter_async_context(servers.guichet(settings, merchant.key, worker=False))
            size = Size(count, settings, target)
            opened.append((size, await _kinds(size, merchant, only)))
        for turn in range(rounds + 1):  # The first round warms caches and is not counted.
            for line in range(len(opened[0][1])):
                first = (turn + 1) * 10_000_000 + round(time.time()) % 1_000_000 * 1_000
                loads = [
                    Load(HOST, size.target.port, kinds[line].requests, SECONDS, 0.2, 8, kinds[line].rate, first=first)
                    for size, kinds in opened
                ]
                together = await asyncio.gather(*(outcome(load) for load in loads))
                for (size, kinds), got in zip(opened, together, strict=True):
                    if turn:
                        found[kinds[line].name][size.count].append(_taken(got.latencies))
            claimed = {} if only else await _claims([size for size, _ in opened])
            for (name, count), latencies in claimed.items():
                if turn:
                    found[name][count].append(_taken(latencies))
            print(f"  round {turn} of {rounds} done", flush=True)
    return {name: {count: _median(runs) for count, runs in by.items()} for name, by in found.items()}


def _taken(latencies: Sequence[float]) -> Taken:
    return Taken(percentile(latencies, 50), percentile(latencies, 95))


def _median(runs: Sequence[Taken]) -> Taken:
    return Taken(statistics.median(each.p50 for each in runs), statistics.median(each.p95 for each in runs))


async def _kinds(size: Size, merchant: Merchant, only: str) -> list[Kind]:
    pages = await console_pages.requests(size.settings, size.count, merchant, size.target)
    kinds = [*await _api(size.count, size.target), *(Kind(name, asked, PAGE_RATE) for name, asked in pages.items())]
    return [kind for kind in kinds if only in kind.name]


async def _api(count: int, target: Target) -> list[Kind]:
    now = SystemClock().now()
    since, until = later(now, 17 * MINUTE - 300 * DAY), later(now, 5 * HOUR + 7 * MINUTE - 60 * DAY)
    window = f"from={quote(iso(since))}&to={quote(iso(until))}"
    kinds = []
    for label, query in (("", ""), (", status", "status=succeeded"), (", from/to", window)):
        last = (await _json(target, f"/v1/payments?{query}"))["meta"]["last_page"]
        for where, page in (("first", 1), ("middle", last // 2), ("last", last)):
            path = f"/v1/payments?{query}&page={page}"
            kinds.append(Kind(f"GET /payments{label}: {where} page", [request("GET", path, target.key)]))
    step = max(1, count // 97)
    some = [external_id(number) for number in range(0, count, step)]
    by_order = [request("GET", f"/v1/payments?external_id={each}", target.key) for each in some]
    kinds.append(Kind("GET /payments, external_id", by_order))
    shown = [request("GET", f"/v1/payments/{each}", target.key) for each in some]
    kinds.append(Kind("GET /payments/{reference}", shown))
    kinds.append(Kind("POST /payments", [create(target.key)]))
    kinds.append(Kind("GET /balance", [request("GET", "/v1/balance", target.key)]))
    last = (await _json(target, "/v1/webhooks/deliveries"))["meta"]["last_page"]
    for where, page in (("first", 1), ("middle", last // 2)):
        path = f"/v1/webhooks/deliveries?page={page}"
        kinds.append(Kind(f"GET /webhooks/deliveries: {where} page", [request("GET", path, target.key)]))
    return kinds


async def _json(target: Target, path: str) -> Any:
    return msgspec.json.decode(await get(target.port, request("GET", path, target.key)))


async def _claims(sizes: Sequence[Size]) -> dict[tuple[str, int], list[float]]:
    """Milliseconds to claim 32 payments to ask about, and to look for webhooks to send when none are due; at each size
    in turn. The payments claimed are those that the POST runs left pending, due since.
    """
    clock = SystemClock()
    taken: dict[tuple[str, int], list[float]] = defaultdict(list)
    queue = deliveries.delivery_queue()
    async with AsyncExitStack() as stack:
        opened = []
        for size in sizes:
            db = database(size.settings)
            await db.open()
            stack.push_async_callback(db.close)
            opened.append((size.count, db))
        for _ in range(CLAIMS):
            for count, db in opened:
                now = later(clock.now(), 60 * SECOND)
                started = time.perf_counter()
                await pending.QUEUE.claim(db, now, now, CLAIMED)
                taken["claim 32 due payments", count].append((time.perf_counter() - started) * 1000)
                started = time.perf_counter()
                await queue.claim(db, now, now, CLAIMED, Shares({}, CLAIMED, [], 0))
                taken["claim due webhooks", count].append((time.perf_counter() - started) * 1000)
    return taken
