"""The loop that reads disputes from the providers that have any: every quarter of an hour, and after a callback."""

from typing import Final

from guichet.clock import MINUTE, SECOND, Instant, later
from guichet.context import AppContext
from guichet.disputes.disputes import read_disputes
from guichet.worker.queue_loop import POLL_INTERVAL, Loop, Step

#: Between two readings: while nothing happens, after a callback, and after an account that did not answer.
_EVERY: Final = 15 * MINUTE
_AFTER_CALLBACK: Final = 5 * SECOND
_AFTER_FAILURE: Final = MINUTE


class DisputeLoop(Loop):
    """Every worker reads by itself: what it records is applied once, whoever reads it first."""

    name = "disputes"

    def __init__(self, ctx: AppContext) -> None:
        self.wake = ctx.wakeups.disputes
        self._ctx = ctx
        self._last = Instant(0)
        self._due = Instant(0)
        self._asked = False

    async def step(self) -> Step:
        now = self._ctx.clock.now()
        if self.wake.is_set():
            self._asked = True
            self.wake.clear()
        if self._asked:
            self._due = min(self._due, later(self._last, _AFTER_CALLBACK))
        if now >= self._due:
            self._asked, self._last = False, now
            complete = await read_disputes(self._ctx)
            self._due = later(now, _EVERY if complete else _AFTER_FAILURE)
        return Step(False, POLL_INTERVAL)
