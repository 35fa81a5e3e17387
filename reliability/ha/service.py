"""Guichet behind HAProxy and PgBouncer: three servers, two workers, the simulator of the providers, and the merchants'
server."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reliability.ha.cluster import FILES
from reliability.ha.front import API
from reliability.installation import Installation
from reliability.processes import ManagedProcess, guichet, run_command

_SIMULATOR_PORT: Final = 8900
RECEIVER_PORT: Final = 8950
#: As in docs/operations/ha/haproxy.cfg.
_SERVER_PORTS: Final = [8001, 8002, 8003]
_WORKERS: Final = (1, 2)
#: Seconds that all of them may take to start together.
_PATIENCE: Final = 180.0


@dataclass
class Service:
    installation: Installation
    simulator: ManagedProcess
    servers: list[ManagedProcess]
    workers: list[ManagedProcess]

    @classmethod
    def prepare(cls, folder: Path) -> "Service":
        """The settings of docs/operations/ha/guichet.env. Nothing is started yet."""
        lines = (FILES / "guichet.env").read_text(encoding="utf-8").splitlines()
        variables = dict(line.split("=", 1) for line in lines if line.startswith("GUICHET_"))
        installation = Installation(folder, _SIMULATOR_PORT, _SERVER_PORTS, public_url=API, variables=variables)
        return cls(
            installation,
            installation.simulator(),
            [installation.server(port, "--no-worker") for port in _SERVER_PORTS],
            [installation.worker(number) for number in _WORKERS],
        )

    @property
    def processes(self) -> list[ManagedProcess]:
        """Those of Guichet itself."""
        return [*self.servers, *self.workers]

    async def start(self) -> None:
        await self._migrate()
        await self.simulator.start_and_wait()
        for process in self.processes:
            await process.start()
        for process in self.processes:
            await process.wait_until_ready(_PATIENCE)

    async def stop(self) -> None:
        for process in self.processes:
            await process.stop()

    async def _migrate(self) -> None:
        """At the direct address, as docs/operations/high-availability.md says."""
        environ = self.installation.environ
        direct = {"GUICHET_DATABASE_URL": environ["GUICHET_LISTEN_URL"], "GUICHET_PGBOUNCER": "no"}
        code, out, err = await run_command(guichet("migrate"), environ | direct)
        if code != 0:
            raise RuntimeError(f"guichet migrate: {out}{err}")
