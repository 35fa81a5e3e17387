"""The processes of a trial: the simulator, Guichet, and on PostgreSQL the database itself."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from reliability.chaos.kills import Victim
from reliability.installation import Installation
from reliability.postgresql import PostgresqlServer
from reliability.processes import ManagedProcess, clean_environ, guichet, run_command

#: Ports that a trial needs, one after the other.
PORTS: Final = 7


class Services:
    """SQLite serves one process; on PostgreSQL (`several`) two servers and two workers share the work, so that it flows
    on while one of them is dead. `victims`: what is killed, and how often beside the others."""

    def __init__(self, installation: Installation, receiver_port: int, smtp_port: int, *, several: bool) -> None:
        self.installation = installation
        self.receiver_port = receiver_port
        self.smtp_port = smtp_port
        installation.variables["GUICHET_SMTP_URL"] = f"smtp://127.0.0.1:{smtp_port}"
        self._simulator = installation.simulator()
        self._guichet = _guichet_processes(installation, several=several)
        self.victims: list[tuple[Victim, int]] = [(self._simulator, 1)]
        self.victims += [(process, 4) for process in self._guichet]

    async def start(self) -> None:
        processes = [self._simulator, *self._guichet]
        await asyncio.gather(*(process.start_and_wait() for process in processes))

    async def stop_guichet(self) -> None:
        """A stop at the end is an orderly one."""
        codes = await asyncio.gather(*(process.stop() for process in self._guichet))
        assert set(codes) == {0}, codes

    def logged(self, event: str) -> int:
        """How often Guichet's processes logged this event."""
        return sum(process.log_end(-1).count(event) for process in self._guichet)

    async def kill(self) -> None:
        for process in (self._simulator, *self._guichet):
            await process.kill()


@asynccontextmanager
async def own_services(folder: Path, first_port: int, *, several: bool) -> AsyncIterator[Services]:
    """Prepares a fresh installation; kills whatever is left of it at the end."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ports = iter(range(first_port, first_port + PORTS))
    simulator_port, receiver_port, smtp_port, postgresql_port, redis_port = (next(ports) for _ in range(5))
    serve_ports = list(ports)
    installation = Installation(folder, simulator_port, serve_ports if several else serve_ports[:1])
    postgresql = PostgresqlServer(folder, postgresql_port) if several else None
    redis = _redis(installation, redis_port) if several and shutil.which("redis-server") else None
    services: Services | None = None
    try:
        if postgresql is not None:
            await postgresql.start()
            installation.database_url = await postgresql.create_database("guichet")
        code, out, err = await run_command(guichet("migrate"), installation.environ)
        assert code == 0, out + err
        services = Services(installation, receiver_port, smtp_port, several=several)
        if redis is not None:
            await redis.start()
        services.victims += [(each, 1) for each in (postgresql, redis) if each is not None]
        yield services
    finally:
        if services is not None:
            await services.kill()
        for server in (redis, postgresql):
            if server is not None:
                await server.stop()


def _redis(installation: Installation, port: int) -> ManagedProcess:
    installation.variables["GUICHET_REDIS_URL"] = f"redis://127.0.0.1:{port}/0"
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(installation.folder)]
    return ManagedProcess("redis", command, clean_environ(), installation.folder / "redis.log")


def _guichet_processes(installation: Installation, *, several: bool) -> list[ManagedProcess]:
    if not several:
        return [installation.server(installation.ports[0])]
    servers = [installation.server(port, "--no-worker") for port in installation.ports]
    return [*servers, *(installation.worker(number) for number in (1, 2))]
