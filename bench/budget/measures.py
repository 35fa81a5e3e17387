"""All measures of the budget, by name."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from bench import servers
from bench.budget import instructions, postgres, statements, weight

Measure = Callable[[Path], Coroutine[Any, Any, dict[str, float]]]


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


def measure_alone(name: str, requests: int) -> dict[str, float]:
    """For a process of its own: the state of Alembic and of a tracer is the whole process's, not a measure's."""
    with servers.folder() as home:
        return asyncio.run(measures(requests)[name](home))
