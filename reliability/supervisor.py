"""What systemd does on real machines: a program that ended is started again."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from reliability.processes import ManagedProcess

#: Seconds until a program is started again, as in the units (`RestartSec`).
RESTART: Final = 1.0


@dataclass
class Supervisor:
    """`restarts`: how often a program that nobody had killed was started again, by name."""

    restarts: Counter[str] = field(default_factory=Counter)
    _watched: list[ManagedProcess] = field(default_factory=list)
    _watching: asyncio.Task[None] | None = None

    def watch(self, processes: Iterable[ManagedProcess]) -> None:
        self._watched += processes
        self._watching = self._watching or asyncio.create_task(self._watch())

    async def kill(self, process: ManagedProcess, down: float = RESTART) -> None:
        """kill -9, and a start after `down` seconds; returns when the program is ready."""
        self._watched.remove(process)
        await process.kill()
        await asyncio.sleep(down)
        await process.start()
        self._watched.append(process)
        with suppress(RuntimeError):  # Not ready yet, or it ended again: it is watched.
            await process.wait_until_ready()

    async def stop(self) -> None:
        """From now on, what ends stays down."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(RESTART)
            for process in self._watched:
                if not process.running:
                    self.restarts[process.name] += 1
                    await process.start()
