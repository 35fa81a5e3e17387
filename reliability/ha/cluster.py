"""Three database machines: etcd, Patroni and PostgreSQL on each, with the files of docs/operations/ha as they stand."""

import asyncio
import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from reliability.network import Machine, Network
from reliability.processes import ROOT, ManagedProcess, run_command

FILES: Final = ROOT / "docs" / "operations" / "ha"
ADDRESSES: Final = {"db-a": "10.0.0.11", "db-b": "10.0.0.12", "db-c": "10.0.0.13"}
USER: Final = "postgres"
#: Where every program of the front runs, and the trial itself.
_FRONT: Final = ("front", "10.0.0.10")
#: The folders of Debian's packages that each database machine has of its own.
OWN_FOLDERS: Final = ("/var/lib/postgresql", "/run/postgresql", "/var/lib/etcd")
#: Where the trial's folder has Patroni: a virtual environment of its own, which this user can read.
PATRONI: Final = Path("patroni", "bin", "patroni")
#: How long to wait for a healthy cluster, in seconds.
_PATIENCE: Final = 120.0
_POLL: Final = 0.2
_BASE_ENVIRON: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


def network(prefix: str, folder: Path) -> Network:
    def machine(name: str, address: str, own: tuple[str, ...]) -> Machine:
        return Machine(name, address, folder / name, f"{prefix}-{name}", own)

    machines = [machine(name, address, OWN_FOLDERS) for name, address in ADDRESSES.items()]
    return Network(prefix, machine(*_FRONT, ()), machines, "guichet0")


def environment_file(name: str, machine: Machine) -> dict[str, str]:
    """The variables of a file of docs/operations/ha on one machine."""
    text = (FILES / name).read_text(encoding="utf-8")
    text = text.replace("THIS_NAME", machine.name).replace("THIS_ADDRESS", machine.address)
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


class Node:
    """One database machine."""

    def __init__(self, machine: Machine, logs: Path) -> None:
        self.machine = machine
        self.name = machine.name
        config = machine.folder / "patroni.yml"
        self._config = config
        self.etcd = ManagedProcess(
            f"etcd on {self.name}",
            machine.command("etcd", environ=environment_file("etcd.env", machine)),
            _BASE_ENVIRON,
            logs / f"{self.name}-etcd.log",
        )
        self.patroni = ManagedProcess(
            f"Patroni on {self.name}",
            machine.command(machine.folder.parent / PATRONI, config, environ=environment_file("patroni.env", machine)),
            _BASE_ENVIRON,
            logs / f"{self.name}-patroni.log",
        )

    def prepare(self) -> None:
        self._config.write_text((FILES / "patroni.yml").read_text(encoding="utf-8"), encoding="utf-8")

    def database_signal(self, number: int) -> int:
        """Signals PostgreSQL and Patroni of this machine, as one; how many processes."""
        return self.machine.send_signal(number, "postgres", "patroni")

    async def psql(self, *arguments: object) -> tuple[int, str, str]:
        """psql on the machine itself, through its socket: also where the network is cut."""
        return await run_command(self.machine.command("psql", "-XAtq", *arguments), _BASE_ENVIRON)

    async def start_database(self) -> None:
        """Patroni, which starts PostgreSQL. What was killed may have left its own processes behind."""
        self.database_signal(signal.SIGKILL)
        await self.patroni.kill()
        await self.patroni.start()


@dataclass(frozen=True)
class View:
    """The cluster as one Patroni sees it: who follows the primary, and who of them must confirm each commit."""

    primary: str
    standbys: frozenset[str]
    synchronous: frozenset[str]


class Cluster:
    def __init__(self, machines: list[Machine], logs: Path) -> None:
        self.nodes = {machine.name: Node(machine, logs) for machine in machines}

    @property
    def etcds(self) -> list[ManagedProcess]:
        return [node.etcd for node in self.nodes.values()]

    async def start(self) -> None:
        for node in self.nodes.values():
            node.prepare()
            await node.etcd.start()
        await self._until(self._etcd_leads, "etcd has no leader")
        for node in self.nodes.values():
            await node.patroni.start()
        await self.healthy()

    async def healthy(self) -> View:
        """Waits until one primary, a synchronous standby and all other machines as standbys are there."""
        return await self.until(lambda view: len(view.standbys) == len(self.nodes) - 1 and bool(view.synchronous))

    async def until(self, condition: Callable[[View], bool], seconds: float = _PATIENCE) -> View:
        found: View | None = None

        async def holds() -> bool:
            nonlocal found
            found = await self.view()
            return found is not None and condition(found)

        await self._until(holds, "the cluster did not become healthy", seconds)
        assert found is not None
        return found

    async def view(self) -> View | None:
        """What the first Patroni that answers says; None while there is no primary."""
        for node in self.nodes.values():
            said = await self._get(f"http://{node.machine.address}:8008/cluster")
            if said is not None and (view := _read(said)):
                return view
        return None

    async def etcd_leader(self) -> Node:
        statuses = await self._etcd_statuses()
        for status in statuses:
            member, leader = status["Status"]["header"]["member_id"], status["Status"]["leader"]
            if member == leader:
                address = status["Endpoint"].split("//")[-1].split(":")[0]
                return next(node for node in self.nodes.values() if node.machine.address == address)
        raise RuntimeError("etcd has no leader")

    async def _etcd_leads(self) -> bool:
        statuses = await self._etcd_statuses()
        return len(statuses) == len(self.nodes) and all(each["Status"].get("leader") for each in statuses)

    async def _etcd_statuses(self) -> list[dict[str, Any]]:
        endpoints = ",".join(f"http://{node.machine.address}:2379" for node in self.nodes.values())
        command = ["etcdctl", "--endpoints", endpoints, "--command-timeout=2s", "endpoint", "status", "-w", "json"]
        _, out, _ = await run_command(command, {**_BASE_ENVIRON, "ETCDCTL_API": "3"})
        statuses: list[dict[str, Any]] = json.loads(out or "[]") or []
        return statuses

    @staticmethod
    async def _get(url: str) -> Any:
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=1)) as session,
                session.get(url) as response,
            ):
                return await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None

    @staticmethod
    async def _until(condition: Callable[[], Any], otherwise: str, seconds: float = _PATIENCE) -> None:
        deadline = time.monotonic() + seconds
        while not await condition():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{otherwise} within {seconds:g} s")
            await asyncio.sleep(_POLL)


def _read(said: dict[str, Any]) -> View | None:
    members = said.get("members", [])
    primary = next((each["name"] for each in members if each["role"] == "leader" and each["state"] == "running"), None)
    if primary is None:
        return None
    following = [each for each in members if each["role"] != "leader" and each["state"] in {"running", "streaming"}]
    current = [each for each in following if each.get("timeline") == _timeline(members, primary)]
    return View(
        primary,
        frozenset(each["name"] for each in current),
        frozenset(each["name"] for each in current if each["role"] == "sync_standby"),
    )


def _timeline(members: list[dict[str, Any]], name: str) -> Any:
    return next(each.get("timeline") for each in members if each["name"] == name)
