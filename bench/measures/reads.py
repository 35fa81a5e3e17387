"""Reads, the start and the memory of one server on its embedded database."""

import asyncio
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import exists, select

from bench import servers
from bench.generator import COUNTER, Load
from bench.loads import LoadStats, get, median, outcome, request, run
from bench.measures.posting import bare_post, create
from bench.rounds import CONNECTIONS, Ratio, against, interleaved, paired, rates
from bench.servers import HOST, Merchant, Target, resident_megabytes
from guichet.bootstrap import database
from guichet.db.engine import require
from guichet.db.tables import list_count_changes, wallet_entries
from guichet.settings import Settings

SETTLES_AFTER: Final = 10.5
LATER: Final = "22997001234"
SETTLED: Final = "GET a pending payment, which settles"
LISTED: Final = "GET /payments, first page of 25"


@dataclass(frozen=True)
class Read:
    """Closed loop for the throughput, open loop at half of it for the latency. `rows`: of one answer that is a file.
    `against_bare`: of the throughput and the bare handler's POST."""

    name: str
    per_second: float
    half: LoadStats
    rows: int | None = None
    against_bare: Ratio | None = None


async def measure(
    settings: Settings, merchant: Merchant, bare: Target, seconds: float, rounds: int, asked: int
) -> list[Read]:
    """Reads of the API, each of a whole server with nothing left to roll up; before them, reads that settle. `asked`:
    how many pending payments are read in each run, on a server without a worker, which would settle them first.
    """
    key = merchant.key
    async with servers.guichet(settings, key, worker=False) as target:
        found = [await _settling(target, bare, seconds, rounds, asked)]
    async with servers.guichet(settings, key, worker=True) as target:
        await _folded(settings)
        reads = {
            LISTED: request("GET", "/v1/payments", key),
            "POST /payment-modes/fees": request(
                "POST", "/v1/payment-modes/fees", key, {"amount": 5000, "operator": "mtn"}
            ),
            "GET /balance": request("GET", "/v1/balance", key),
        }
        contenders = {name: against(target, content) for name, content in reads.items()}
        runs = await interleaved({"bare": bare_post(bare), **contenders}, seconds, rounds)
        for name, content in reads.items():
            rate = median(runs[name]).per_second
            half = await run(Load(HOST, target.port, [content], seconds, 0.5, 2 * CONNECTIONS, rate / 2))
            found.append(Read(name, rate, half, against_bare=paired(rates(runs[name]), rates(runs["bare"]))))
    return found


async def _folded(settings: Settings) -> None:
    """Waits until the worker has folded all entries of wallets and lists."""
    waiting = select(exists().where(list_count_changes.c.id > 0) | exists().where(wallet_entries.c.id > 0))
    db = database(settings)
    await db.open()
    try:
        async with asyncio.timeout(60):
            while require(await db.one(waiting))[0]:
                await asyncio.sleep(0.2)
    finally:
        await db.close()


async def _settling(target: Target, bare: Target, seconds: float, rounds: int, asked: int) -> Read:
    """Payments whose customer has validated meanwhile: the GET asks, settles, posts to the ledger, answers."""
    content, most = [create(target.key, phone_number=LATER)], (rounds + 1) * asked
    load = Load(HOST, target.port, content, 600, 0, CONNECTIONS, most=most, first=7_000_000, keep_references=True)
    made = (await outcome(load)).references
    await asyncio.sleep(SETTLES_AFTER)
    reads = [request("GET", f"/v1/payments/{reference}", target.key) for reference in made]

    async def settle(_: float, turn: int) -> LoadStats:
        mine = reads[(turn - 1) * asked : turn * asked]
        return await run(Load(HOST, target.port, mine, 600, 0, CONNECTIONS, most=len(mine)))

    # A number of the bare handler's payments that no other run of it has.
    bare_runs = bare_post(bare)
    runs = await interleaved({"bare": lambda s, turn: bare_runs(s, 50 + turn), "settle": settle}, seconds, rounds)
    ratio = paired(rates(runs["settle"]), rates(runs["bare"]))
    last = reads[rounds * asked :]
    half = await run(Load(HOST, target.port, last, asked * 2 / ratio.mine, 0, 64, ratio.mine / 2))
    return Read(SETTLED, ratio.mine, half, against_bare=ratio)


async def starts(home: Path, times: int) -> float:
    """Seconds from the command to the first 201, on a database that exists: the median."""
    settings = servers.settings_for(home)
    merchant = (await servers.prepare(settings))[0]
    taken = []
    for turn in range(times):
        started = time.perf_counter()
        async with servers.guichet(settings, merchant.key, worker=True) as target:
            # At once and by this process: a generator starts for so long that the worker does so meanwhile.
            number = b"%0*d" % (len(COUNTER), turn)
            await get(target.port, create(merchant.key).replace(COUNTER, number), status=201)
            taken.append(time.perf_counter() - started)
    return statistics.median(taken)


async def memory(home: Path, payments: int) -> tuple[float, float]:
    """Megabytes of a server at rest, and after that many payments."""
    settings = servers.settings_for(home)
    merchant = (await servers.prepare(settings))[0]
    async with servers.guichet(settings, merchant.key, worker=True) as target:
        await outcome(Load(HOST, target.port, [create(merchant.key)], 60, 0, 1, most=1, first=1))
        await asyncio.sleep(2)
        idle = resident_megabytes(target.process.pid)
        content = [create(merchant.key)]
        await outcome(Load(HOST, target.port, content, 3600, 0, CONNECTIONS, most=payments, first=1000))
        return idle, resident_megabytes(target.process.pid)
