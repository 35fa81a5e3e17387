"""Clocks that the test turns."""

import asyncio

from guichet.clock import DAY, HOUR, SECOND, Instant, SystemClock, later


def noon() -> Instant:
    """Of today, UTC: hours before and after it are of the same day, for every merchant."""
    return Instant(SystemClock().now() // DAY * DAY + 12 * HOUR)


class ManualClock:
    """Stands still until it is turned. Without a `start` it shows noon, whatever the hour at which the tests run."""

    def __init__(self, start: Instant | None = None) -> None:
        self._now = noon() if start is None else start
        self._passed = 0

    def now(self) -> Instant:
        return self._now

    def monotonic(self) -> int:
        return self._passed

    def advance(self, seconds: float) -> None:
        """Time passes."""
        self._passed += round(seconds * SECOND)
        self._now = later(self._now, round(seconds * SECOND))

    def jump(self, seconds: float) -> None:
        """Somebody sets the machine's clock: no time passes."""
        self._now = later(self._now, round(seconds * SECOND))

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)


def clock_of_the_machine() -> ManualClock:
    """Stands at the hour of the machine, which is that of commands and of other people's libraries: for a service whose
    times they read."""
    return ManualClock(SystemClock().now())


class TurningClock(ManualClock):
    """`sleep` returns once the test has turned the clock far enough: nothing sleeps for real."""

    def __init__(self, start: Instant | None = None) -> None:
        super().__init__(start)
        self._turned = asyncio.Event()
        #: How long those want to sleep who sleep now, in seconds.
        self.sleepers: list[float] = []

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()

    async def sleep(self, seconds: float) -> None:
        until = later(self.now(), round(seconds * SECOND))
        self.sleepers.append(seconds)
        try:
            while self.now() < until:
                await self._turned.wait()
        finally:
            self.sleepers.remove(seconds)


class RealClock(ManualClock):
    """The machine's clock, where a test promises something about real time."""

    def __init__(self) -> None:
        super().__init__(Instant(0))

    def now(self) -> Instant:
        return later(self._now, SystemClock().now())

    def monotonic(self) -> int:
        return SystemClock().monotonic()
