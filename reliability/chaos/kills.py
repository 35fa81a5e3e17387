"""What is killed when, by the seed: `kill -9`, or PostgreSQL's immediate stop; then it is started again."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

#: Seconds between two looks whether a kill is due.
_LOOK: Final = 0.1


class Victim(Protocol):
    """A process that can be killed and started again."""

    name: str

    async def kill(self) -> None: ...

    async def start_and_wait(self) -> None: ...


@dataclass
class Killer:
    """Kills one of `victims` (each with its share), one after the other: at most about every `interval` seconds, and
    only when one is `due`. Restarts would otherwise take most of a slow machine, and few payments would be made."""

    victims: list[tuple[Victim, int]]
    seed: int
    interval: float
    due: Callable[[], bool]
    counts: Counter[str] = field(default_factory=Counter)
    #: The longest time in seconds from a kill until the process was ready again, by name.
    longest_restart: dict[str, float] = field(default_factory=dict)

    @property
    def kills(self) -> int:
        return self.counts.total()

    async def run(self, until: Callable[[], bool]) -> None:
        """Raises RuntimeError if something does not start again."""
        drawn = random.Random(f"{self.seed}/kills")
        while not until():
            await asyncio.sleep(drawn.uniform(0.5, 1.5) * self.interval)
            while not (self.due() or until()):
                await asyncio.sleep(_LOOK)
            [victim] = drawn.choices([each for each, _ in self.victims], [share for _, share in self.victims])
            down_for = drawn.choice((0.0, 0.0, 0.0, drawn.uniform(0, 3)))
            if not until():
                await self._kill(victim, down_for)

    async def _kill(self, victim: Victim, down_for: float) -> None:
        await victim.kill()
        self.counts[victim.name] += 1
        began = time.monotonic()
        await asyncio.sleep(down_for)
        await victim.start_and_wait()
        took = time.monotonic() - began - down_for
        self.longest_restart[victim.name] = max(took, self.longest_restart.get(victim.name, 0.0))
