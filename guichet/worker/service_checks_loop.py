"""The loop that has the checks of `guichet doctor` made and kept, once a minute across all workers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from guichet.context import AppContext
from guichet.worker.queue_loop import Loop, Step

#: Seconds between two looks whether they are due.
_LOOK_EVERY: Final = 60.0


class ServiceChecks(Loop):
    """`keep`: makes the checks when they are due. The server's package has them, which this one does not know."""

    name = "checks"
    #: For the first seconds of a process the processor is the payments': what waited for its start is due.
    starts_after = 30.0

    def __init__(self, ctx: AppContext, keep: Callable[[AppContext], Awaitable[None]]) -> None:
        self.wake = asyncio.Event()
        self._ctx = ctx
        self._keep = keep

    async def step(self) -> Step:
        await self._keep(self._ctx)
        return Step(False, _LOOK_EVERY)
