"""The trial "Hostile input" (docs/reliability.md).

python -m reliability.fuzz                                       what `make fuzz` runs
python -m reliability.fuzz --requests 20000 --answers 3000       less of it
python -m reliability.fuzz --seed 7 --database sqlite            another seed, one database
python -m reliability.fuzz --only console --console 5000         the console alone, less of it
python -m reliability.fuzz --replay fuzz-failure.json            sends a saved request again
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from bench import servers
from guichet.settings import Settings
from reliability.fuzz import failure, report, trial
from reliability.fuzz.console import report as console_report
from reliability.fuzz.console import trial as console
from reliability.fuzz.console.requests import CONSOLE
from reliability.fuzz.console.trial import ConsolePlan
from reliability.fuzz.exchange import Sent
from reliability.fuzz.failure import saved_kind
from reliability.fuzz.hostile_server import HostileServer
from reliability.fuzz.trial import Found, Plan

_FAILURE: Final = Path("fuzz-failure.json")
#: Seconds between two lines of progress.
_INTERVAL: Final = 15.0


def main() -> None:
    arguments = _parser().parse_args()
    databases = ["sqlite", "postgresql"] if arguments.database == "both" else [arguments.database]
    each = len(databases)
    plan = Plan(arguments.requests // each, arguments.answers // each, arguments.seed)
    console_plan = ConsolePlan(arguments.console // each, arguments.seed)
    parts = [arguments.only] if arguments.only else ["api", "console"]
    if arguments.replay:
        parts = ["console" if saved_kind(arguments.replay).startswith(CONSOLE) else "api"]
    faults = False
    if "api" in parts:
        faults |= _api(databases, plan, arguments.replay, write=arguments.write)
    if "console" in parts:
        faults |= _console(databases, console_plan, arguments.replay, write=arguments.write)
    sys.exit(faults)


def _api(databases: Sequence[str], plan: Plan, replayed: Path | None, *, write: bool) -> bool:
    """Requests to everything but the console, and answers to our own calls. Whether something was wrong."""
    began, found = time.monotonic(), []
    for database in databases:
        with _settings(database) as settings:
            if replayed:
                found.append(asyncio.run(trial.replay(settings, plan, replayed)))
            else:
                found.append(asyncio.run(trial.run(settings, plan, _progress())))
    print(report.table(found))
    if write:
        report.write(found, plan.seed, time.monotonic() - began)
    for each in found:
        _tell_faults(each.database, each.faults)
    if (failed := next((each for each in found if each.faults), None)) and not replayed:
        failure.save(_FAILURE, plan.seed, failed.faults, failed.violated, failed.known, failed.last_calls)
        print(f"\nSaved in {_FAILURE}.")
    return failed is not None


def _console(databases: Sequence[str], plan: ConsolePlan, replayed: Path | None, *, write: bool) -> bool:
    """Requests to the console. Whether something was wrong."""
    began, found = time.monotonic(), []
    for database in databases:
        with _settings(database) as settings:
            if replayed:
                found.append(asyncio.run(console.replay(settings, plan, replayed)))
            else:
                found.append(asyncio.run(console.run(settings, plan, _console_progress(database))))
    print(console_report.table(found))
    if write:
        console_report.write(found, plan.seed, time.monotonic() - began)
    for each in found:
        _tell_faults(each.database, each.faults)
    if (failed := next((each for each in found if each.faults), None)) and not replayed:
        failure.save(_FAILURE, plan.seed, failed.faults, failed.violated, failed.known, [])
        print(f"\nSaved in {_FAILURE}.")
    return failed is not None


def _tell_faults(database: str, faults: Sequence[str]) -> None:
    if faults:
        print("\n".join([f"\n{database}:", *faults]))


@contextmanager
def _settings(database: str) -> Iterator[Settings]:
    """Of an empty database, on a real disk; it is gone afterwards."""
    with servers.folder() as home, servers.postgres() if database == "postgresql" else nullcontext() as server:
        url = asyncio.run(servers.new_database(server, "fuzz")) if server else None
        yield servers.settings_for(home, url)


def _progress() -> Callable[[Found, HostileServer | None], None]:
    due = _timer()

    def tell(found: Found, server: HostileServer | None) -> None:
        if (seconds := due()) is not None:
            answers = server.hostile_answers if server else 0
            done = f"{found.sent.kinds.total()} requests, {answers} hostile answers"
            print(f"{seconds:5.0f} s  {found.database}: {done}", flush=True)

    return tell


def _console_progress(database: str) -> Callable[[Sent], None]:
    due = _timer()

    def tell(sent: Sent) -> None:
        if (seconds := due()) is not None:
            print(f"{seconds:5.0f} s  {database}: {sent.kinds.total()} requests to the console", flush=True)

    return tell


def _timer() -> Callable[[], float | None]:
    """Says how long it has been running, every _INTERVAL."""
    began = last = time.monotonic()

    def due() -> float | None:
        nonlocal last
        now = time.monotonic()
        if now - last < _INTERVAL:
            return None
        last = now
        return now - began

    return due


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reliability.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=200_000, help="in all, shared by the databases")
    parser.add_argument("--console", type=int, default=40_000, help="requests to the console, in all")
    parser.add_argument("--only", choices=("api", "console"), help="one of the two parts")
    parser.add_argument("--answers", type=int, default=20_000, help="hostile answers to our own calls, in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="send the request of a saved failure again")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/reliability.md")
    return parser


if __name__ == "__main__":
    main()
