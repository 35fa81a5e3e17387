"""Makes time pass for the timers of the running event loop, so that no test waits for a time limit."""

import asyncio
from collections.abc import Callable

#: Turns of the loop after which everything that was due has happened: timers, what they cancel, and who waits for that.
_TURNS = 20


async def pass_seconds(seconds: float) -> None:
    """Returns once everything has happened that was to happen on the running loop within so many seconds."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, asyncio.BaseEventLoop), "uvloop's timers look at no clock of ours: it would really wait"
    before: Callable[[], float] = loop.time
    loop.time = lambda: before() + seconds  # type: ignore[method-assign]
    for _ in range(_TURNS):
        await asyncio.sleep(0)
