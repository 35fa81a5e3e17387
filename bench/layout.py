"""The production layout of docs/operations on one machine, with its files: nginx with TLS before two servers, a worker,
PgBouncer, PostgreSQL and its synchronous standby. Beside it the simulator of the providers."""

import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import trustme

from bench import servers
from bench.live import simulator
from bench.servers import HOST, Merchant
from guichet.settings import Settings
from reliability import pgbouncer
from reliability.processes import ROOT
from reliability.standby import Standby

_OPERATIONS: Final = ROOT / "docs" / "operations"
#: Names of variables in docs/operations/ha/guichet.env, and levels of docs/operations/systemd.
_VARIABLES: Final = {"GUICHET_PGBOUNCER": "yes", "GUICHET_TRUSTED_PROXIES": "127.0.0.1/32"}
_SERVERS: Final = 2
#: Files of WAL, of 16 MB each: more than a whole bench writes at all rates.
_SEGMENTS: Final = 30


@dataclass(frozen=True)
class Layout:
    """`port`: of nginx, whose certificate `ca_file` has signed. `processes`: the pids of each part."""

    port: int
    ca_file: Path
    merchant: Merchant
    processes: dict[str, list[int]]


def missing() -> list[str]:
    """The programs that this machine lacks for it."""
    programs = {"pgbouncer": pgbouncer.program(), "nginx": _nginx_program()}
    return [name for name, path in programs.items() if path is None]


@asynccontextmanager
async def production_layout(home: Path, webhook: str) -> AsyncIterator[Layout]:
    """`webhook`: the merchant's endpoint."""
    async with AsyncExitStack() as stack:
        primary = stack.enter_context(servers.postgres())
        await servers.sql(primary, "ALTER SYSTEM SET min_wal_size = '1GB'")
        await servers.sql(primary, "SELECT pg_reload_conf()")
        for statement in (_OPERATIONS / "ha" / "guichet.sql").read_text(encoding="utf-8").split(";")[:-1]:
            await servers.sql(primary, statement)
        database, ports = servers.named(primary, "guichet"), [servers.free_port() for _ in range(_SERVERS)]
        variables = {**_VARIABLES, "GUICHET_LISTEN_URL": _as_guichet(database)}
        bounced = stack.enter_context(pgbouncer.documented_pgbouncer(database))
        port, ca = servers.free_port(), trustme.CA()
        public_url = f"https://{HOST}:{port}"
        settings = await stack.enter_async_context(simulator(home, public_url, bounced, variables))
        merchant = (await servers.prepare(settings.direct, webhook=webhook))[0]
        await _follow(stack, primary)
        processes = {
            "primary": [_postmaster(primary)],
            "servers": [await _server(stack, settings, merchant, each) for each in ports],
            "worker": [await _worker(stack, settings)],
        }
        await _nginx(stack, home, ca, port, ports)
        ca_file = home / "ca.pem"
        ca.cert_pem.write_to_path(str(ca_file))
        yield Layout(port, ca_file, merchant, processes)


def _as_guichet(database: str) -> str:
    return f"postgresql://guichet@/guichet?{urlsplit(database).query}"


async def _follow(stack: AsyncExitStack, primary: str) -> None:
    folder = stack.enter_context(servers.folder())
    folder.chmod(0o755)
    standby = Standby(primary, folder)
    await standby.create()
    stack.push_async_callback(standby.remove)
    await _reuse_segments(primary, standby)


async def _reuse_segments(primary: str, standby: Standby) -> None:
    """As on servers that have run for a while: both have files of WAL to write again. On new ones each segment is made
    first, 16 MB of zeros on both disks, and commits wait for that 0.1 to 0.3 s every few thousand payments."""
    for _ in range(_SEGMENTS):
        await servers.sql(primary, "SELECT pg_switch_wal()")
        await servers.sql(primary, "CREATE TABLE public.segment ()")  # A switch that follows a switch does nothing.
        await servers.sql(primary, "DROP TABLE public.segment")
    await servers.sql(primary, "CHECKPOINT")
    await standby.caught_up()
    await servers.sql(standby.address, "CHECKPOINT")


def _postmaster(primary: str) -> int:
    (folder,) = parse_qs(urlsplit(primary).query)["host"]
    return int((Path(folder) / ".s.PGSQL.5432.lock").read_text().split()[0])


async def _server(stack: AsyncExitStack, settings: Settings, merchant: Merchant, port: int) -> int:
    serving = servers.guichet(settings, merchant.live_key, worker=False, log_level="info", port=port)
    return (await stack.enter_async_context(serving)).process.pid


async def _worker(stack: AsyncExitStack, settings: Settings) -> int:
    """It listens once its metrics can be read."""
    port = servers.free_port()
    variables = {"GUICHET_METRICS_PORT": str(port), "GUICHET_LOG_LEVEL": "info"}
    environment = {**servers.variables(settings), **variables}
    started = servers.python(["-m", "guichet", "worker"], port, environment, settings.home / "worker.log")
    return (await stack.enter_async_context(started)).pid


async def _nginx(stack: AsyncExitStack, home: Path, ca: trustme.CA, port: int, ports: Sequence[int]) -> None:
    """docs/operations/nginx.conf with paths and ports of our own."""
    certificate = home / "nginx.pem"
    ca.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(str(certificate))
    config = (_OPERATIONS / "nginx.conf").read_text(encoding="utf-8")
    for documented, here in {
        "/run/nginx.pid": str(home / "nginx.pid"),
        "/var/log/nginx/error.log": str(home / "nginx.log"),
        "/etc/ssl/guichet/pay.example.com.pem": str(certificate),
        "/etc/ssl/guichet/pay.example.com.key": str(certificate),
        "listen 80 ": f"listen {HOST}:{servers.free_port()} ",
        "listen 443 ": f"listen {HOST}:{port} ",
        "127.0.0.1:8001": f"{HOST}:{ports[0]}",
        "127.0.0.1:8002": f"{HOST}:{ports[1]}",
    }.items():
        assert documented in config, documented
        config = config.replace(documented, here)
    file = home / "nginx.conf"
    file.write_text(config, encoding="utf-8")
    command = [str(_nginx_program()), "-c", str(file), "-g", "daemon off;"]
    await stack.enter_async_context(servers.program(command, port))


def _nginx_program() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
