"""What every loop of the worker is, and the one that empties a queue."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from guichet import metrics
from guichet.clock import SECOND, Clock, Instant
from guichet.db.work_queue import Claim
from guichet.logs import log
from guichet.payments.poll_schedule import LEASE_DURATION

#: What a queue works on at once in this process.
MAX_IN_FLIGHT: Final = 512
#: How often every loop looks for itself, in seconds.
POLL: Final = 1.0
#: Seconds until the next look after one that closed a lane, unless its work ends before: most of what is due now is
#: likely to stand in that lane, and a look past it is the costly one.
SATURATED_BACKOFF: Final = 0.005

T = TypeVar("T")


class Turn(NamedTuple):
    """What one step did, and the seconds until it is worth looking again."""

    worked: bool
    pause: float


class Loop(Protocol):
    name: str
    wake: asyncio.Event

    async def step(self) -> Turn:
        """Does, or starts, what is due now."""

    async def idle(self) -> None:
        """Returns when nothing that `step` started is still running."""


class QueueJobs(Protocol[T]):
    """One queue's work. Each part of a job's lane (a webhook's destination, its merchant; an operator's connection) has
    a cap on how much of it is in flight."""

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Sequence[Sequence[str]]) -> Claim[T]: ...

    def partition_key(self, job: T) -> tuple[str, ...]: ...

    async def work(self, job: T) -> Awaitable[None] | None:
        """What is left to do, if anything, once the job has left its lane."""


class Queue(Generic[T]):
    """Claims what is due and works on it side by side."""

    def __init__(self, name: str, wake: asyncio.Event, clock: Clock, jobs: QueueJobs[T], *caps: int) -> None:
        """`caps`: one for each part of a lane, the first the smallest."""
        self.name = name
        self.wake = wake
        self._clock = clock
        self._jobs = jobs
        self._at_once = caps[0] // 2
        # A claim may be all for one lane that is open: its load then reaches the cap and no more.
        self._open_up_to = tuple(cap - self._at_once for cap in caps)
        self._loads: tuple[Counter[str], ...] = tuple(Counter() for _ in caps)
        self._running: set[asyncio.Task[None]] = set()
        self._failures = metrics.LOOP_FAILURES.labels(name, "item")

    async def step(self) -> Turn:
        most = min(self._at_once, MAX_IN_FLIGHT - len(self._running))
        if most <= 0:
            return Turn(False, POLL)
        now = self._clock.now()
        claim = await self._jobs.claim(now, now + LEASE_DURATION, most, self._saturated())
        for job in claim.jobs:
            self._start(job)
        # What is due but was not claimed waits for work that is running: its end wakes this loop.
        pause = _pause(claim.next_due, self._clock.now())
        if pause == 0 and not all(self._is_open(job) for job in claim.jobs):
            pause = SATURATED_BACKOFF
        return Turn(bool(claim.jobs), pause)

    async def idle(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    def _saturated(self) -> list[list[str]]:
        return [
            [part for part, load in loads.items() if load > most]
            for loads, most in zip(self._loads, self._open_up_to, strict=True)
        ]

    def _is_open(self, job: T) -> bool:
        parts = zip(self._loads, self._jobs.partition_key(job), self._open_up_to, strict=True)
        return all(loads[part] <= most for loads, part, most in parts)

    def _start(self, job: T) -> None:
        for loads, part in zip(self._loads, self._jobs.partition_key(job), strict=True):
            loads[part] += 1
        task = asyncio.create_task(self._do(job))
        self._running.add(task)
        task.add_done_callback(self._ended)

    async def _do(self, job: T) -> None:
        try:
            try:
                rest = await self._jobs.work(job)
            finally:
                self._leave_partition(job)
            if rest is not None:
                await rest
        except Exception as error:  # Its lease brings it back.
            self._failures.inc()
            log.error("worker.item_failed", loop=self.name, error=repr(error))

    def _leave_partition(self, job: T) -> None:
        """Wakes the loop where that lets it claim more."""
        for loads, part in zip(self._loads, self._jobs.partition_key(job), strict=True):
            loads[part] -= 1
            if not loads[part]:
                del loads[part]
        if self._is_open(job):
            self.wake.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if len(self._running) >= MAX_IN_FLIGHT:
            self.wake.set()
        self._running.discard(task)


def _pause(next_due: Instant | None, now: Instant) -> float:
    if next_due is None:
        return POLL
    return min(POLL, max(0.0, (next_due - now) / SECOND))
