"""`python -m bench.budget`."""

import argparse
import asyncio
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from bench.budget import table
from bench.budget.measures import measure_alone, measures
from tests.frozen.service import quiet

#: What is measured at once: as many as the machine has cores.
AT_ONCE: Final = 2


async def main(arguments: argparse.Namespace) -> bool:
    chosen = [name for name in measures(arguments.requests) if name in (arguments.only or [name])]
    lines = table.lines()
    measured: dict[str, float] = {}

    async def run(name: str) -> None:
        """A measure that is over its line is made twice more: the least counts."""
        for _ in range(3):
            started = time.monotonic()
            found = await asyncio.get_running_loop().run_in_executor(processes, measure_alone, name, arguments.requests)
            for each, value in found.items():
                measured[each] = min(value, measured.get(each, value))
            print(f"  {name}: {time.monotonic() - started:.0f} s", flush=True)
            if arguments.write or not any(e in lines and table.over(e, measured[e], lines[e]) for e in found):
                return

    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(AT_ONCE, fresh, quiet, max_tasks_per_child=1) as processes:
        async with asyncio.TaskGroup() as group:
            for name in chosen:
                group.create_task(run(name))
    if arguments.write:
        table.write(measured, everything=not arguments.only)
        lines = table.lines()
    over = [name for name, value in measured.items() if table.over(name, value, lines.get(name))]
    for name in sorted(measured):
        line = "no line" if name not in lines else table.shown(lines[name])
        print(f"{'OVER ' if name in over else '     '}{name:55} {table.shown(measured[name]):>12} {line:>12}")
    return not over


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.budget", description=__doc__)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--write", action="store_true", help="lower lines and add new ones")
    parser.add_argument("--only", action="append", choices=list(measures(1)))
    quiet()
    sys.exit(0 if asyncio.run(main(parser.parse_args())) else 1)
