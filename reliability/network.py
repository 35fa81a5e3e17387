"""Machines of a trial: each is a network namespace with its own address, joined by a bridge; any cable can be cut.

Needs root. Nothing outside these namespaces is reached or changed: they have no route out.
"""

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Seconds within which the processes of a removed network must have ended.
_PATIENCE: Final = 10.0


@dataclass(frozen=True)
class Machine:
    """`name` is also the name of its cable, a network interface on the bridge. `own`: the folders and files of the
    system that this machine has of its own, instead of those of the real machine."""

    name: str
    address: str
    folder: Path
    namespace: str
    own: tuple[str, ...] = ()

    def command(
        self, *arguments: object, user: str = "postgres", environ: Mapping[str, str] | None = None
    ) -> list[str]:
        """The command line that runs a program on this machine as `user`, with the machine's own folders."""
        script = [f"mount --bind {self.own_path(target)} {target}" for target in self.own]
        given = [f"{name}={value}" for name, value in (environ or {}).items()]
        program = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "env", *given]
        script.append("exec " + shlex.join([*program, *map(str, arguments)]))
        return ["ip", "netns", "exec", self.namespace, "sh", "-c", " && ".join(script)]

    def prepare(self, user: str) -> None:
        """Empty folders that belong to `user`, and copies of the files."""
        for target in self.own:
            own = self.own_path(target)
            if Path(target).is_file():
                own.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(target, own)
            else:
                own.mkdir(parents=True)
                shutil.chown(own, user, user)

    def own_path(self, target: str) -> Path:
        """Where the real machine has what `target` is on this one."""
        return self.folder / target.strip("/").replace("/", "-")

    def pids(self, *names: str) -> list[int]:
        """The processes of this machine whose program is one of `names` (as in /proc/PID/comm); all, without names."""
        found = _namespace_pids(self.namespace)
        return [pid for pid in found if not names or _program(pid) in names]

    def send_signal(self, number: int, *names: str) -> int:
        """Signals these processes; how many there were."""
        pids = self.pids(*names)
        for pid in pids:
            _signal(pid, number)
        return len(pids)


class Network:
    """The bridge stands in the front machine's namespace, so that nothing of it is seen from outside. The trial itself
    runs there too."""

    def __init__(self, prefix: str, front: Machine, machines: Sequence[Machine], bridge: str) -> None:
        self.prefix = prefix
        self.front = front
        self.machines = list(machines)
        self._bridge = bridge

    def create(self) -> None:
        front = self.front.namespace
        _ip("netns", "add", front)
        _ip("-n", front, "link", "set", "lo", "up")
        _ip("-n", front, "link", "add", self._bridge, "type", "bridge")
        _ip("-n", front, "address", "add", f"{self.front.address}/24", "dev", self._bridge)
        _ip("-n", front, "link", "set", self._bridge, "up")
        for machine in self.machines:
            _ip("netns", "add", machine.namespace)
            _ip("-n", front, "link", "add", machine.name, "type", "veth", "peer", "eth0", "netns", machine.namespace)
            _ip("-n", front, "link", "set", machine.name, "master", self._bridge, "up")
            _ip("-n", machine.namespace, "address", "add", f"{machine.address}/24", "dev", "eth0")
            _ip("-n", machine.namespace, "link", "set", "eth0", "up")
            _ip("-n", machine.namespace, "link", "set", "lo", "up")

    def cut(self, machine: Machine) -> None:
        _ip("-n", self.front.namespace, "link", "set", machine.name, "down")

    def restore(self, machine: Machine) -> None:
        _ip("-n", self.front.namespace, "link", "set", machine.name, "up")

    def remove(self) -> None:
        """Ends every process in the namespaces, and removes them."""
        listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
        names = [line.split()[0] for line in listed.splitlines() if line.startswith(f"{self.prefix}-")]
        deadline = time.monotonic() + _PATIENCE
        while pids := [pid for name in names for pid in _namespace_pids(name) if pid != os.getpid()]:
            for pid in pids:
                _signal(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def _namespace_pids(namespace: str) -> list[int]:
    listed = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listed.stdout.split()]


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
