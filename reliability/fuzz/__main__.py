"""The trial "Hostile input" (docs/reliability.md).

python -m reliability.fuzz                                       what `make fuzz` runs
python -m reliability.fuzz --requests 20000 --answers 3000       less of it
python -m reliability.fuzz --seed 7 --database sqlite            another seed, one database
python -m reliability.fuzz --replay fuzz-failure.json            sends a saved request again
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from bench import servers
from guichet.settings import Settings
from reliability.fuzz import failure, report, trial
from reliability.fuzz.hostile_server import HostileServer
from reliability.fuzz.trial import Found, Plan

_FAILURE: Final = Path("fuzz-failure.json")
#: Seconds between two lines of progress.
_INTERVAL: Final = 15.0


def main() -> None:
    arguments = _parser().parse_args()
    databases = ["sqlite", "postgresql"] if arguments.database == "both" else [arguments.database]
    plan = Plan(arguments.requests // len(databases), arguments.answers // len(databases), arguments.seed)
    began = time.monotonic()
    found = []
    for database in databases:
        with _settings(database) as settings:
            if arguments.replay:
                found.append(asyncio.run(trial.replay(settings, plan, arguments.replay)))
            else:
                found.append(asyncio.run(trial.run(settings, plan, _progress())))
    print(report.table(found))
    if arguments.write:
        report.write(found, plan, time.monotonic() - began)
    failed = [each for each in found if each.faults]
    for each in failed:
        print("\n".join([f"\n{each.database}:", *each.faults]))
    if failed and not arguments.replay:
        first = failed[0]
        failure.save(_FAILURE, plan.seed, first.faults, first.violated, first.known, first.last_calls)
        print(f"\nSaved in {_FAILURE}.")
    sys.exit(bool(failed))


@contextmanager
def _settings(database: str) -> Iterator[Settings]:
    """Of an empty database, on a real disk; it is gone afterwards."""
    with servers.folder() as home, servers.postgres() if database == "postgresql" else nullcontext() as server:
        url = asyncio.run(servers.new_database(server, "fuzz")) if server else None
        yield servers.settings_for(home, url)


def _progress() -> Callable[[Found, HostileServer | None], None]:
    began = last = time.monotonic()

    def tell(found: Found, server: HostileServer | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _INTERVAL:
            last = now
            answers = server.hostile_answers if server else 0
            done = f"{found.sent.kinds.total()} requests, {answers} hostile answers"
            print(f"{now - began:5.0f} s  {found.database}: {done}", flush=True)

    return tell


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reliability.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=200_000, help="in all, shared by the databases")
    parser.add_argument("--answers", type=int, default=20_000, help="hostile answers to our own calls, in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="send the request of a saved failure again")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/reliability.md")
    return parser


if __name__ == "__main__":
    main()
