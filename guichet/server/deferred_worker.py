"""The worker of a process that serves: its modules are imported in a thread once the port listens, because a first
request needs none of them."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from guichet.server.lazy import import_in_thread

#: Seconds that `/readyz` waits for the start of the loops.
_PATIENCE: Final = 2.0


class Loops(Protocol):
    """A worker (`worker/worker.py`)."""

    def start(self) -> None: ...

    async def stop(self, grace: float) -> None: ...

    async def is_alive(self) -> bool: ...


class DeferredWorker:
    """Runs from `start` on."""

    def __init__(self, modules: Sequence[str], make: Callable[[], Loops]) -> None:
        """`modules`: what `make` imports."""
        self._modules = modules
        self._make = make
        self._loops: Loops | None = None
        self._started = asyncio.Event()
        self._stopping = False

    async def start(self) -> None:
        await import_in_thread(self._modules)
        if not self._stopping:
            self._loops = self._make()
            self._loops.start()
        self._started.set()

    async def is_alive(self) -> bool:
        """Whether every loop is running. The start is waited for: nobody shall see a server that is not ready yet."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._started.wait()
        return self._loops is not None and await self._loops.is_alive()

    async def stop(self, grace: float) -> None:
        self._stopping = True
        if self._loops is not None:
            await self._loops.stop(grace)
