"""The whole life of a payment: create → settle → ledger → webhook delivered to a receiver on this machine."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import msgspec

from bench import servers
from bench.generator import Load
from bench.loads import LoadStats, load_stats, outcome, percentile
from bench.measures.posting import bare_post, create
from bench.peers import launch
from bench.rounds import CONNECTIONS, Ratio, interleaved, paired, rates
from bench.servers import HOST, Target
from guichet.settings import Settings

#: Validates at once.
PAID = "22997000000"


@dataclass(frozen=True)
class Note:
    """A delivery as its receiver saw it: seconds since the epoch."""

    arrived_at: float
    delivery: str
    settled_at: float | None


@dataclass(frozen=True)
class Life:
    """`against_bare`: of lives a second and the bare handler's POST. Delays in milliseconds."""

    against_bare: Ratio
    half_rate: float
    p50: float
    p99: float


@asynccontextmanager
async def receiver(hang: float = 0) -> AsyncIterator[int]:
    """Its port."""
    port = servers.free_port()
    async with servers.python(["-m", "bench.receiver", str(port), str(hang)], port):
        yield port


async def notes(port: int) -> list[Note]:
    """What the receiver noted since it was last asked."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(b"GET /notes HTTP/1.1\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    body = await reader.readexactly(size)
    writer.close()
    return [Note(*each) for each in msgspec.json.decode(body, type=list[tuple[float, str, float | None]])]


async def collected(port: int, wanted: int, patience: float) -> list[Note]:
    """Waits for `wanted` deliveries, duplicates not counted; RuntimeError when they stop coming."""
    found: dict[str, Note] = {}
    quiet_since = time.monotonic()
    while len(found) < wanted:
        before = len(found)
        for note in await notes(port):
            found.setdefault(note.delivery, note)
        if len(found) > before:
            quiet_since = time.monotonic()
        elif time.monotonic() - quiet_since > patience:
            raise RuntimeError(f"{len(found)} of {wanted} webhooks arrived")
        await asyncio.sleep(0.05)
    return list(found.values())


async def measure(settings: Settings, bare_url: str, payments: int, seconds: float, rounds: int) -> Life:
    """In each round the bare handler's POST, then as many lives a second as Guichet can; then half as many, at fixed
    instants, and the delay from the settlement (the payment's `updated_at`) to the arrival at the receiver."""
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(receiver())
        merchant = (await servers.prepare(settings, webhook=f"http://127.0.0.1:{port}/hook"))[0]
        target = await stack.enter_async_context(servers.guichet(settings, merchant.key, worker=True))
        await _live(target, port, Load(HOST, target.port, [], 600, 0, CONNECTIONS, most=200, first=1))

        async def lives(_: float, turn: int) -> LoadStats:
            load = Load(HOST, target.port, [], 600, 0, CONNECTIONS, most=payments, first=turn * 1_000_000)
            started_at, arrived = await _live(target, port, load)
            delays = [(note.arrived_at - started_at) * 1000 for note in arrived]
            return load_stats(delays, max(delays) / 1000)

        bare = bare_post(await stack.enter_async_context(launch.peer("bare", bare_url)))
        runs = await interleaved({"bare": bare, "lives": lives}, seconds, rounds)
        ratio = paired(rates(runs["lives"]), rates(runs["bare"]))
        rate = ratio.mine / 2
        load = Load(HOST, target.port, [], 2 * seconds, 0, 4 * CONNECTIONS, rate=rate, first=500_000_000)
        _, arrived = await _live(target, port, load)
        delays = [(note.arrived_at - note.settled_at) * 1000 for note in arrived if note.settled_at]
        return Life(ratio, rate, percentile(delays, 50), percentile(delays, 99))


async def _live(target: Target, port: int, load: Load) -> tuple[float, list[Note]]:
    load.requests = [create(target.key, phone_number=PAID)]
    sent = await outcome(load)
    return sent.started_at, await collected(port, len(sent.latencies), 20)
