"""Runs a trial on machines of its own (`network.py`): makes them, runs the trial inside, and removes everything."""

import argparse
import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from guichet.db.errors import StorageError
from guichet.logs import configure_logs
from reliability.network import Network
from reliability.processes import ROOT

SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_began: Final = time.monotonic()


@dataclass(frozen=True)
class NetworkTrial:
    """`name`: the target of the Makefile, and the package of the trial. `prefix`: how its machines' names begin.
    `programs`: the Debian package of each program that must be there. `prepare` works outside the machines, `run`
    inside: whether nothing was lost. `limit`: seconds after which the trial is ended. `folders` of the system are made
    for the time of the trial where they are missing, because something is mounted there."""

    name: str
    about: str
    prefix: str
    programs: Mapping[str, str]
    network: Callable[[str, Path], Network]
    prepare: Callable[[Network, Path], None]
    run: Callable[[Network, Path, int, str | None], Awaitable[bool]]
    limit: int
    folders: tuple[str, ...] = ()


def say(text: str) -> None:
    """One line of progress, with the seconds since the start."""
    print(f"{time.monotonic() - _began:5.0f} s  {text}", flush=True)


def main(trial: NetworkTrial) -> int:
    """The exit code: 1 on any loss; the logs are then kept."""
    configure_logs("error", machine_readable=True)
    options = _options(trial)
    if options.inside:
        return _inside(trial, options)
    if missing := _missing(trial):
        print(missing, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix=f"guichet-{trial.name}-"))
    folder.chmod(0o755)  # The databases belong to another user.
    network = trial.network(_prefix(trial), folder)
    made: list[Path] = []
    code = 1
    try:
        for wanted in trial.folders:
            made += _made(Path(wanted))
        trial.prepare(network, folder)
        network.create()
        code = _run_inside(trial, network, folder)
    except KeyboardInterrupt:
        code = 130
    except subprocess.CalledProcessError as error:
        print(f"✗ {shlex.join(map(str, error.cmd))} ended with exit code {error.returncode}.", file=sys.stderr)
    finally:
        network.remove()
        for each in reversed(made):
            each.rmdir()
        if code in (0, 130):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"The logs are in {folder}.", file=sys.stderr)
    return code


def _made(folder: Path) -> list[Path]:
    """The folders that had to be made for this one to exist, its own last."""
    missing = [each for each in (*reversed(folder.parents), folder) if not each.exists()]
    for each in missing:
        each.mkdir()
    return missing


def _prefix(trial: NetworkTrial) -> str:
    return f"{trial.prefix}-{os.getpid()}"


def _options(trial: NetworkTrial) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m reliability.{trial.name}", description=trial.about)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="those whose name contains this")
    parser.add_argument("--inside", nargs=2, metavar=("PREFIX", "FOLDER"), help=argparse.SUPPRESS)
    return parser.parse_args()


def _missing(trial: NetworkTrial) -> str | None:
    """One sentence about what this machine lacks."""
    command = f"make {trial.name}"
    if sys.platform != "linux" or os.geteuid() != 0:
        return f"{command} needs root on Linux, to make network namespaces: run it with sudo or in a virtual machine."
    packages = [package for program, package in trial.programs.items() if not shutil.which(program, path=SYSTEM_PATH)]
    if packages:
        return f"{command} needs these Debian packages: apt-get install {' '.join(sorted(set(packages)))}"
    tried = subprocess.run(
        ["ip", "netns", "add", f"{_prefix(trial)}-trial"], capture_output=True, text=True, check=False
    )
    subprocess.run(["ip", "netns", "delete", f"{_prefix(trial)}-trial"], capture_output=True, check=False)
    if tried.returncode:
        return f"{command} needs network namespaces, which this machine does not allow: {tried.stderr.strip()}"
    return None


def _run_inside(trial: NetworkTrial, network: Network, folder: Path) -> int:
    """The trial itself, on the front machine."""
    module = [sys.executable, "-m", f"reliability.{trial.name}", *sys.argv[1:]]
    command = network.front.command(*module, "--inside", network.prefix, folder, user="root")
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
        try:
            return process.wait(trial.limit)
        except subprocess.TimeoutExpired:
            print(f"The trial did not end within {trial.limit} s.", file=sys.stderr)
            return 1
        finally:
            process.kill()


def _inside(trial: NetworkTrial, options: argparse.Namespace) -> int:
    prefix, folder = options.inside[0], Path(options.inside[1])

    async def work() -> bool:
        return await trial.run(trial.network(prefix, folder), folder, options.seed, options.only)

    try:
        return 0 if asyncio.run(work()) else 1
    except (RuntimeError, TimeoutError, StorageError) as error:
        print(f"✗ {error}", file=sys.stderr)
        return 1
