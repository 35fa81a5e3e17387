"""The machines, and the two database hosts with Debian's PostgreSQL 15 on them."""

import asyncio
import shlex
import shutil
import signal
import time
from pathlib import Path
from typing import Final

from reliability.machines.pages import Step
from reliability.network import Machine, Network
from reliability.network_trial import SYSTEM_PATH
from reliability.processes import ROOT, run_command

APP: Final = ("app-1", "10.77.0.10")
#: db-c joins for two standbys.
DATABASES: Final = {"db-a": "10.77.0.11", "db-b": "10.77.0.12", "db-c": "10.77.0.13"}
_BRIDGE: Final = "gm-br"
#: What a database host has of its own: Debian's folders of PostgreSQL, and root's, where certificates are copied to.
_OWN_ON_DATABASE: Final = (
    "/etc/hosts", "/etc/postgresql", "/var/lib/postgresql", "/var/log/postgresql", "/run/postgresql", "/root",
)  # fmt: skip
CERTIFICATES: Final = "/etc/guichet/postgresql-ca"
_OWN_ON_APP: Final = ("/etc/hosts", "/etc/guichet")
#: Where the pages expect the repository. Empty folders are mounted on where they are missing.
_REPOSITORY: Final = "/opt/guichet/current"
MOUNT_POINTS: Final = ("/etc/guichet", _REPOSITORY)
_ENVIRON: Final = {"PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8"}
_PATIENCE: Final = 60.0


def network(prefix: str, folder: Path) -> Network:
    def machine(name: str, address: str, own: tuple[str, ...]) -> Machine:
        return Machine(name, address, folder / name, f"{prefix}-{name}", own)

    databases = [machine(name, address, _OWN_ON_DATABASE) for name, address in DATABASES.items()]
    return Network(prefix, machine(*APP, _OWN_ON_APP), databases, _BRIDGE)


def prepare(made: Network, _: Path) -> None:
    made.front.prepare("root")
    for machine in made.machines:
        machine.prepare("postgres")


class Hosts:
    """Runs steps of the pages on the machines. `primary` and `standby` are the names of who should be what."""

    def __init__(self, made: Network, log_file: Path) -> None:
        self.network = made
        self.machines = {each.name: each for each in [made.front, *made.machines]}
        self.databases = {each.name: DatabaseHost(each) for each in made.machines}
        self.primary, self.standby = self.databases["db-a"], self.databases["db-b"]
        self._log_file = log_file

    def exchange(self) -> None:
        self.primary, self.standby = self.standby, self.primary

    async def run(self, steps: list[Step]) -> None:
        """As the pages say, or with a and b exchanged where db-b is the primary. Raises RuntimeError when one fails."""
        for step in steps:
            each = step if self.primary.name == "db-a" else step.exchanged()
            for name in each.machines:
                await self._run(self.machines[name], each)

    async def _run(self, machine: Machine, step: Step) -> None:
        script = f"mount --bind {ROOT} {_REPOSITORY} && exec {_as_user(step)}"
        command = machine.command("sh", "-c", script, user="root", environ=_ENVIRON)
        began = self._log_file.stat().st_size if self._log_file.exists() else 0
        with self._log_file.open("ab") as log:
            log.write(f"\n# on {machine.name}, as {step.user}\n{step.commands}".encode())
            log.flush()
            process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            code = await process.wait()
        if code != 0:
            said = self._log_file.read_bytes()[began:].decode(errors="replace")
            raise RuntimeError(f"exit code {code} from the commands of the page:\n{said}")

    def copy_certificates(self) -> None:
        """What the page does with scp."""
        made = self.network.front.own_path("/etc/guichet") / Path(CERTIFICATES).name
        for name, host in self.databases.items():
            for file in ("ca.crt", f"{name}.crt", f"{name}.key"):
                shutil.copy(made / file, host.machine.own_path("/root"))


def _as_user(step: Step) -> str:
    """The commands as `sudo -iu USER` would run them, ended by their first error."""
    home = {"root": "/root", "postgres": "/var/lib/postgresql"}[step.user]
    program = ["setpriv", f"--reuid={step.user}", f"--regid={step.user}", "--init-groups", "env", f"HOME={home}"]
    return shlex.join([*program, "bash", "-euo", "pipefail", "-c", f"cd {home}\n{step.commands}"])


class DatabaseHost:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.name = machine.name
        self.replication_name = f"guichet_{machine.name[-1]}"

    async def install(self) -> None:
        """What Debian's package does when it is installed: it makes the cluster and starts it."""
        for command in (["pg_createcluster", "15", "main"], ["pg_ctlcluster", "15", "main", "start"]):
            await self.checked(*command)

    async def checked(self, *arguments: object) -> str:
        code, out, err = await run_command(self.machine.command(*arguments, user="root", environ=_ENVIRON), _ENVIRON)
        if code != 0:
            raise RuntimeError(f"{self.name}: {' '.join(map(str, arguments))}: {out}{err}")
        return out

    async def query(self, statement: str, database: str = "postgres") -> str | None:
        """What PostgreSQL answers on the machine itself, also where its network is cut; None when it does not."""
        command = self.machine.command("psql", "-XAtq", "-d", database, "-c", statement, environ=_ENVIRON)
        code, out, _ = await run_command(command, _ENVIRON)
        return out.strip() if code == 0 else None

    async def is_primary(self) -> bool:
        return await self.query("SELECT pg_is_in_recovery()") == "f"

    @property
    def running(self) -> bool:
        return bool(self.machine.pids("postgres"))

    def lose_power(self) -> None:
        self.machine.send_signal(signal.SIGKILL)

    async def boot(self) -> None:
        """What Debian's start script does at boot without systemd: it starts the clusters that are `auto`."""
        for stale in self.machine.own_path("/run/postgresql").iterdir():
            stale.unlink()
        await self.checked("/etc/init.d/postgresql", "start")

    async def wait_for_standby(self, name: str, state: str) -> None:
        """Looks until the line of the page says so. Raises RuntimeError after a minute."""
        statement = "SELECT application_name, state, sync_state FROM pg_stat_replication"
        deadline = time.monotonic() + _PATIENCE
        while (found := await self.query(statement)) != f"{name}|{state}":
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} does not see {name}|{state}, but {found!r}")
            await asyncio.sleep(0.1)
