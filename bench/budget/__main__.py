"""`python -m bench.budget`."""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from bench import servers
from bench.budget import instructions, postgres, statements, table, weight
from tests.frozen.service import quiet

Measure = Callable[[Path], Awaitable[dict[str, float]]]
#: What is measured at once: as many as the machine has cores.
AT_ONCE: Final = 2


def measures(requests: int) -> dict[str, Measure]:
    """The longest first."""
    return {
        "requests": lambda home: instructions.requests(home, requests),
        "start": instructions.start,
        "life": lambda home: instructions.life(home, requests // 4),
        "postgres": lambda home: postgres.measure(home, requests // 2),
        "pages": weight.pages,
        "statements": statements.measure,
        "memory": instructions.memory,
        "ways": weight.ways,
        "lines": weight.lines,
    }


async def main(arguments: argparse.Namespace) -> bool:
    chosen = {name: it for name, it in measures(arguments.requests).items() if name in (arguments.only or [name])}
    lines = table.lines()
    measured: dict[str, float] = {}
    at_once = asyncio.Semaphore(AT_ONCE)

    async def run(name: str, measure: Measure) -> None:
        """A measure that is over its line is made twice more: the least counts."""
        async with at_once:
            for _ in range(3):
                started = time.monotonic()
                with servers.folder() as home:
                    found = await measure(home)
                for each, value in found.items():
                    measured[each] = min(value, measured.get(each, value))
                print(f"  {name}: {time.monotonic() - started:.0f} s", flush=True)
                if arguments.write or not any(e in lines and table.over(e, measured[e], lines[e]) for e in found):
                    return

    async with asyncio.TaskGroup() as group:
        for name, measure in chosen.items():
            group.create_task(run(name, measure))
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
