"""A primary and a standby that a test may promote, and the ways in which a machine falls silent."""

import asyncio
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from reliability.postgresql import PostgresqlServer
from tests.ports import free_port

NAME = "guichet"


@contextmanager
def server_folder() -> Iterator[Path]:
    """Not pytest's: each run of pytest takes the rights of others away there, and the servers run as another user."""
    with tempfile.TemporaryDirectory(prefix="guichet-pg-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[PostgresqlServer]:
    """A server of its own in `folder`, stopped in order at the end."""
    server = PostgresqlServer(folder, free_port())
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@dataclass
class Proxy:
    """A way to a server that can fall silent, as when a machine loses its network: what was connected hangs, and new
    connections are accepted and never answered."""

    port: int
    silent: bool = False
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with suppress(OSError):
            if self.silent:
                await reader.read()
                return
            try:
                upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                writer.close()
                return
            self.writers.append(upstream_writer)
            for source, target in ((reader, upstream_writer), (upstream_reader, writer)):
                task = asyncio.create_task(self._pass_on(source, target))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if not self.silent:
                    target.write(data)
                    await target.drain()
            if not self.silent:
                target.close()


@asynccontextmanager
async def proxy_to(server_port: int) -> AsyncIterator[tuple[Proxy, int]]:
    """The proxy and its port."""
    proxy = Proxy(server_port)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    try:
        yield proxy, listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        for writer in proxy.writers:
            writer.close()
        for task in proxy.tasks:
            task.cancel()
        await asyncio.sleep(0)


@dataclass
class Cluster:
    """`first` was the primary at the beginning, `second` its standby. Guichet reaches each through a proxy."""

    first: PostgresqlServer
    second: PostgresqlServer
    proxies: tuple[Proxy, Proxy]
    ports: tuple[int, int]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return f"postgresql://{NAME}@{hosts}/{NAME}?target_session_attrs=primary"

    async def promote(self) -> None:
        """Makes the standby a primary; the old one is not told."""
        await run_sql(self.second, "SELECT pg_promote()")


async def run_sql(server: PostgresqlServer, statement: str) -> None:
    connection = await asyncpg.connect(server.url(NAME))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@asynccontextmanager
async def cluster(template: Path, folder: Path) -> AsyncIterator[Cluster]:
    """`template`: the folder of a server that was stopped."""
    ports = free_port(), free_port()
    servers = []
    for name, port in zip(("first", "second"), ports, strict=True):
        (folder / name).mkdir()
        subprocess.run(["cp", "-a", template / "postgresql", folder / name], check=True)
        if name == "second":
            data = folder / name / "postgresql"
            shutil.copymode(data / "PG_VERSION", _touched(data / "standby.signal", like=data / "PG_VERSION"))
            with (data / "postgresql.auto.conf").open("a") as config:
                config.write(f"primary_conninfo = 'host=127.0.0.1 port={ports[0]} user=postgres'\n")
        servers.append(PostgresqlServer(folder / name, port))
    first, second = servers
    await first.start()
    await second.start()
    try:
        async with proxy_to(ports[0]) as (to_first, one), proxy_to(ports[1]) as (to_second, two):
            yield Cluster(first, second, (to_first, to_second), (one, two))
    finally:
        for server in (second, first):
            if server.running:
                await server.kill()


def _touched(path: Path, like: Path) -> Path:
    path.touch()
    shutil.chown(path, like.owner(), like.group())
    return path


@contextmanager
def silent_host(kind: str) -> Iterator[int]:
    """The port of a machine that does not answer. `accepts`: it takes connections and says nothing; `drops`: the
    packets that ask for a connection are dropped."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0 if kind == "drops" else 128)
        fillers = []
        if kind == "drops":  # The queue of connections that nobody accepts is full then.
            for _ in range(4):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
                fillers.append(filler)
        yield int(listener.getsockname()[1])
        for filler in fillers:
            filler.close()
