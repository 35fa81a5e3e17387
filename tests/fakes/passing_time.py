"""Makes time pass for the timers of the running event loop, so that no test waits for a time limit."""

import asyncio
from collections.abc import Callable


def pass_seconds(seconds: float) -> None:
    """What was to happen on the running loop within so many seconds happens at its next turns."""
    loop = asyncio.get_running_loop()
    before: Callable[[], float] = loop.time
    loop.time = lambda: before() + seconds  # type: ignore[method-assign]
    loop.call_soon(lambda: None)  # A turn that looks at the timers.
