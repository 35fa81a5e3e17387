"""`python -m reliability.ha` (`make ha`): a quarter of an hour, as root, on Debian.

Makes network namespaces, runs the trial in them, and removes everything, also after Ctrl-C. Exit code 1 on any loss;
the logs are then kept.
"""

import argparse
import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from guichet.db.errors import StorageError
from guichet.logs import configure_logs
from reliability.ha.cluster import ADDRESSES, PATRONI
from reliability.ha.faults import FAULTS
from reliability.ha.machines import Network
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
_SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Seconds. The trial ends by itself; nothing may run for ever.
_LIMIT: Final = 20 * 60


def main() -> int:
    configure_logs("error", machine_readable=True)
    options = _options()
    if options.inside:
        return _inside(options)
    if missing := _missing():
        print(missing, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="guichet-ha-"))
    folder.chmod(0o755)  # The databases belong to another user.
    network = Network(f"guichet-{os.getpid()}", folder)
    code = 1
    try:
        _install_patroni(folder / PATRONI.parts[0])
        network.create(network.machines(ADDRESSES))
        code = _run_inside(network, folder)
    except KeyboardInterrupt:
        code = 130
    except subprocess.CalledProcessError as error:
        print(f"✗ {shlex.join(map(str, error.cmd))} ended with exit code {error.returncode}.", file=sys.stderr)
    finally:
        network.remove()
        if code in (0, 130):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"The logs are in {folder}.", file=sys.stderr)
    return code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reliability.ha", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="faults whose name contains this")
    parser.add_argument("--inside", nargs=2, metavar=("PREFIX", "FOLDER"), help=argparse.SUPPRESS)
    return parser.parse_args()


def _missing() -> str | None:
    """One sentence about what this machine lacks."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "make ha needs root on Linux, to make network namespaces: run it with sudo or in a virtual machine."
    packages = [package for program, package in _PROGRAMS.items() if shutil.which(program, path=_SYSTEM_PATH) is None]
    if packages:
        return f"make ha needs these Debian packages: apt-get install {' '.join(sorted(set(packages)))}"
    trial = f"guichet-{os.getpid()}-trial"
    tried = subprocess.run(["ip", "netns", "add", trial], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "delete", trial], capture_output=True, check=False)
    if tried.returncode:
        return f"make ha needs network namespaces, which this machine does not allow: {tried.stderr.strip()}"
    return None


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


def _run_inside(network: Network, folder: Path) -> int:
    """The trial itself, in the front machine's namespace."""
    command = ["ip", "netns", "exec", network.front.namespace, sys.executable, "-m", "reliability.ha"]
    with subprocess.Popen(
        [*command, *sys.argv[1:], "--inside", network.prefix, str(folder)], cwd=ROOT, start_new_session=True
    ) as process:
        try:
            return process.wait(_LIMIT)
        except subprocess.TimeoutExpired:
            print(f"The trial did not end within {_LIMIT} s.", file=sys.stderr)
            return 1
        finally:
            process.kill()


def _inside(options: argparse.Namespace) -> int:
    from reliability.ha.trial import Trial

    prefix, folder = options.inside
    faults = [fault for fault in FAULTS if options.only is None or options.only in fault.name]
    trial = Trial(Network(prefix, Path(folder)), Path(folder), options.seed)
    try:
        return 0 if asyncio.run(trial.run(faults)) else 1
    except (RuntimeError, TimeoutError, StorageError) as error:
        print(f"✗ {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
