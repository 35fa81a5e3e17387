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

#: Where every program of the front runs, and the trial itself.
FRONT: Final = "front"
FRONT_ADDRESS: Final = "10.0.0.10"
_BRIDGE: Final = "guichet0"
#: The folders of Debian's packages that each machine has of its own.
_OWN_FOLDERS: Final = ("/var/lib/postgresql", "/run/postgresql", "/var/lib/etcd")


@dataclass(frozen=True)
class Machine:
    """`name` is also the name of its cable, a network interface on the bridge."""

    name: str
    address: str
    folder: Path
    namespace: str

    def command(
        self, *arguments: object, user: str = "postgres", environ: Mapping[str, str] | None = None
    ) -> list[str]:
        """The command line that runs a program on this machine as `user`, with the machine's own data folders."""
        script = [f"mkdir -p {target} && mount --bind {self._own(target)} {target}" for target in _OWN_FOLDERS]
        given = [f"{name}={value}" for name, value in (environ or {}).items()]
        program = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "env", *given]
        script.append("exec " + shlex.join([*program, *map(str, arguments)]))
        return ["ip", "netns", "exec", self.namespace, "sh", "-c", " && ".join(script)]

    def prepare(self, user: str) -> None:
        """Empty data folders that belong to `user`."""
        for target in _OWN_FOLDERS:
            own = self._own(target)
            own.mkdir(parents=True)
            shutil.chown(own, user)

    def _own(self, target: str) -> Path:
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
    """The bridge stands in the front's namespace, so that nothing of it is seen from outside."""

    def __init__(self, prefix: str, folder: Path) -> None:
        self._folder = folder
        self.prefix = prefix
        self.front = self._machine(FRONT, FRONT_ADDRESS)

    def machines(self, addresses: Mapping[str, str]) -> list[Machine]:
        return [self._machine(name, address) for name, address in addresses.items()]

    def _machine(self, name: str, address: str) -> Machine:
        return Machine(name, address, self._folder / name, f"{self.prefix}-{name}")

    def create(self, machines: Sequence[Machine]) -> None:
        front = self.front.namespace
        _ip("netns", "add", front)
        _ip("-n", front, "link", "set", "lo", "up")
        _ip("-n", front, "link", "add", _BRIDGE, "type", "bridge")
        _ip("-n", front, "address", "add", f"{FRONT_ADDRESS}/24", "dev", _BRIDGE)
        _ip("-n", front, "link", "set", _BRIDGE, "up")
        for machine in machines:
            _ip("netns", "add", machine.namespace)
            _ip("-n", front, "link", "add", machine.name, "type", "veth", "peer", "eth0", "netns", machine.namespace)
            _ip("-n", front, "link", "set", machine.name, "master", _BRIDGE, "up")
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
        deadline = time.monotonic() + 10
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
