"""`python -m reliability.ha` (`make ha`): a quarter of an hour, as root, on Debian.

Makes network namespaces, runs the trial in them, and removes everything, also after Ctrl-C. Exit code 1 on any loss;
the logs are then kept.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

from reliability.ha.cluster import OWN_FOLDERS, PATRONI, USER, network
from reliability.network import Network
from reliability.network_trial import NetworkTrial, main
from reliability.processes import ROOT

_PROGRAMS: Final = {
    "ip": "iproute2",
    "setpriv": "util-linux",
    "etcd": "etcd-server",
    "etcdctl": "etcd-client",
    "psql": "postgresql-15",
    "haproxy": "haproxy",
    "pgbouncer": "pgbouncer",
    "redis-server": "redis-server",
    "/usr/bin/python3": "python3-venv",
}
_PATRONI_REQUIREMENTS: Final = ROOT / "requirements" / "patroni.txt"
#: Seconds. The trial ends by itself; nothing may run for ever.
_LIMIT: Final = 20 * 60


def _prepare(made: Network, folder: Path) -> None:
    _install_patroni(folder / PATRONI.parts[0])
    for machine in made.machines:
        machine.prepare(USER)


def _install_patroni(folder: Path) -> None:
    """As docs/operations/high-availability.md says, with the system's own Python, which other users can run."""
    print("installing Patroni from wheels", flush=True)
    pip = folder / "bin" / "pip"
    commands: list[list[str | Path]] = [
        ["/usr/bin/python3", "-m", "venv", folder],
        [pip, "--quiet", "--disable-pip-version-check", "install", "--require-hashes", "-r", _PATRONI_REQUIREMENTS],
    ]
    for command in commands:
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


async def _run(made: Network, folder: Path, seed: int, only: str | None) -> bool:
    from reliability.ha.faults import FAULTS
    from reliability.ha.trial import Trial

    faults = [fault for fault in FAULTS if only is None or only in fault.name]
    return await Trial(made, folder, seed).run(faults)


if __name__ == "__main__":
    sys.exit(main(NetworkTrial("ha", str(__doc__), "guichet", _PROGRAMS, network, _prepare, _run, _LIMIT, OWN_FOLDERS)))
