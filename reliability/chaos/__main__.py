"""`python -m reliability.chaos`: trials on one or both databases, at the same time; a table at the end.

Exit code 1 on any difference: the working folder is then kept.
"""

import argparse
import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, get_args

import uvloop

from guichet.db.engine import require
from guichet.logs import configure_logs
from reliability.books import rendered
from reliability.chaos import report
from reliability.chaos.services import PORTS
from reliability.chaos.trial import DatabaseKind, Plan, Trial

_PROGRESS: Final = 5.0


def main() -> int:
    configure_logs("error", machine_readable=True)
    options = _options()
    databases = list(get_args(DatabaseKind)) if options.database == "both" else [options.database]
    folder = Path(options.folder or tempfile.mkdtemp(prefix="guichet-chaos-"))
    trials = [
        Trial(
            Plan(
                database,
                options.seed,
                payments=-(-options.payments // len(databases)),
                kills=-(-options.kills // len(databases)),
                interval=options.interval,
                rate=options.rate,
                settle=options.settle,
                folder=folder / database,
                first_port=options.port + number * PORTS,
                proof_expected=not options.without_proofs,
            )
        )
        for number, database in enumerate(databases)
    ]
    began = time.monotonic()
    uvloop.run(_run(trials))
    differences = sum(trial.comparison.difference_count for trial in trials)
    for trial in trials:
        print(_summary(trial))
        print("\n".join(rendered(trial.comparison)))
    command = f"python -m reliability.chaos {' '.join(sys.argv[1:])}".strip()
    text = report.table(trials, command, time.monotonic() - began)
    print(f"\n{text}")
    used = os.times()
    cpu = (used.user + used.system + used.children_user + used.children_system) / max(1, _payments(trials))
    print(f"{cpu * 1000:.0f} ms of processor for each payment, kills and comparison included")
    if differences:
        print(f"{differences} differences. Everything is kept in {folder}; again with --seed {options.seed}.")
        return 1
    if options.write:
        report.write(text)
    shutil.rmtree(folder)
    print("The three books agree.")
    return 0


def _payments(trials: list[Trial]) -> int:
    return sum(trial.journal.payments for trial in trials)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reliability.chaos", description=__doc__)
    parser.add_argument("--database", choices=[*get_args(DatabaseKind), "both"], default="both")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=500, help="in all")
    parser.add_argument("--payments", type=int, default=200_000, help="in all")
    parser.add_argument(
        "--interval", type=float, default=3.0, help="seconds between two kills of one database's, at least"
    )
    parser.add_argument("--rate", type=float, help="payments a second on each database; as many as possible if unset")
    parser.add_argument("--settle", type=float, default=2400.0, help="seconds that the end may take")
    parser.add_argument(
        "--without-proofs",
        action="store_true",
        help="end without the proofs that requests never arrived, which take fifteen minutes: count what waits for one",
    )
    parser.add_argument("--folder", help="a working folder; a temporary one if unset")
    parser.add_argument("--write", action="store_true", help="show the figures in docs/reliability.md")
    parser.add_argument("--port", type=int, default=27000, help="the first of fourteen free ports")
    return parser.parse_args()


async def _run(trials: list[Trial]) -> None:
    # Every process of the trials is ended with it.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, require(asyncio.current_task()).cancel)
    progress = asyncio.create_task(_print_progress(trials))
    try:
        async with asyncio.TaskGroup() as group:
            for trial in trials:
                group.create_task(trial.run())
    finally:
        progress.cancel()


async def _print_progress(trials: list[Trial]) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(_PROGRESS)
        parts = [
            f"{trial.plan.database} {trial.phase}: {trial.journal.payments} payments, {trial.kills} kills, "
            f"{len(trial.comparison.unexplained)} open, {trial.comparison.difference_count} differences"
            for trial in trials
        ]
        print(f"{time.monotonic() - began:6.0f} s  " + "   ".join(parts), flush=True)


def _summary(trial: Trial) -> str:
    killer, api = require(trial.killer), require(trial.api)
    lines = [f"{trial.plan.database}: {trial.journal.payments} payments, {trial.kills} kills {dict(killer.counts)}"]
    lines.append(f"  longest restarts {killer.longest_restart}, longest silence {api.longest_outage:.1f} s")
    lines.append(f"  traffic {trial.traffic_took:.0f} s, settling {trial.settling_took:.0f} s")
    lines.append(f"  answers {dict(api.statuses)} {dict(trial.journal.counts)}")
    lines.append(f"  {dict(trial.comparison.figures)}")
    people, mailbox = require(trial.people), require(trial.mailbox)
    lines.append(f"  people in the console: {dict(people.journal.counts)} {dict(mailbox.counts)}")
    lines += [f"  {count} × {reason}" for reason, count in sorted(trial.comparison.explained.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
