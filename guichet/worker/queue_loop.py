"""The loop that empties a work queue: claims what is due, works on it side by side, is woken when more can be claimed.

Jobs are limited, so that one provider account or one merchant's server that does not answer delays only its own jobs:
by partition here, webhooks by the share of each merchant (`webhooks/dispatcher.py`).
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from guichet import metrics
from guichet.clock import SECOND, Clock, Instant, later
from guichet.db.engine import Database
from guichet.db.queues.work_queue import LEASE_DURATION, Claim, WorkQueue
from guichet.logs import log

#: Jobs of one queue that run at once in this process.
MAX_IN_FLIGHT: Final = 512
#: How often every loop looks for work without being woken, in seconds.
POLL_INTERVAL: Final = 1.0
#: Seconds until the next claim after one that saturated a partition, unless a job ends before. Most of what is due is
#: then likely to be of that partition, and claiming past it is the expensive part.
SATURATED_BACKOFF: Final = 0.005
#: Seconds from a claim that took all that was due to the next one, for a queue of which each claim is likely to be for
#: one row: a claim and the questions, leases and outcomes that follow from it cost little more for a dozen.
CLAIMS_APART: Final = 0.05
#: From a worker's start to the first question to a provider that nobody waits for, in seconds: what became due while no
#: process ran goes first. Where the providers are simulated, it also imports the simulator.
ASKS_AFTER: Final = 3.0

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Step(NamedTuple):
    """What one step of a loop did. `pause`: seconds until it is worth looking again, `rest`: even if it is woken."""

    worked: bool
    pause: float
    rest: float = 0.0


class Loop(Protocol):
    name: str
    wake: asyncio.Event
    #: Seconds from the worker's start to the first step.
    starts_after: float = 0.0

    async def step(self) -> Step:
        """Does, or starts, what is due now."""

    async def idle(self) -> None:
        """Returns when nothing that `step` started is still running. By default every step ends with its work done."""
        return


class QueueJobs(Protocol[T]):
    """The jobs of one queue: how they are claimed and done."""

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Collection[str]) -> Claim[T]:
        """Up to `most` jobs that are due `now`, leased `until`. `saturated`: partitions whose limit is
        reached."""

    async def work(self, job: T) -> Awaitable[None] | None:
        """Does the job. What it returns is awaited after the job no longer counts against the limits."""


class TableJobs(Generic[T]):
    """Those of a queue in a table, each done by one function."""

    def __init__(self, db: Database, queue: WorkQueue[T], do: Callable[[T], Awaitable[object]]) -> None:
        self._db = db
        self._queue = queue
        self._do = do

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Collection[str]) -> Claim[T]:
        return await self._queue.claim(self._db, now, until, most, saturated)

    async def work(self, job: T) -> None:
        await self._do(job)


class Limits(Protocol[T_contra]):
    """How many jobs of one queue may run at once."""

    @property
    def claim_size(self) -> int:
        """Jobs of one claim at most."""

    def saturated(self) -> Collection[str]:
        """What a claim leaves alone."""

    def is_saturated(self, job: T_contra) -> bool:
        """Whether jobs like this one cannot be claimed now."""

    def started(self, job: T_contra) -> None: ...

    def ended(self, job: T_contra) -> None: ...


class PartitionLimits(Generic[T]):
    """A limit by partition: what may be slow or dead by itself, such as a provider account."""

    def __init__(self, partition: Callable[[T], str], limit: int) -> None:
        """`limit`: how many jobs of one partition may run at once."""
        self.claim_size = limit // 2
        self._partition = partition
        # All jobs of a claim may be of one partition that was not saturated: its load then reaches the limit at most.
        self._saturated_above = limit - self.claim_size
        self._loads: Counter[str] = Counter()

    def saturated(self) -> list[str]:
        return [partition for partition, load in self._loads.items() if load > self._saturated_above]

    def is_saturated(self, job: T) -> bool:
        return self._loads[self._partition(job)] > self._saturated_above

    def started(self, job: T) -> None:
        self._loads[self._partition(job)] += 1

    def ended(self, job: T) -> None:
        partition = self._partition(job)
        self._loads[partition] -= 1
        if not self._loads[partition]:
            del self._loads[partition]


class OfAccount(Protocol):
    """A job that calls a provider."""

    @property
    def provider_account(self) -> str | None: ...


AccountJob = TypeVar("AccountJob", bound=OfAccount)


def account_of(job: OfAccount) -> str:
    """Its partition."""
    return job.provider_account or ""


class OneOfEach(Generic[T]):
    """A few long jobs at once, and one for each partition."""

    def __init__(self, partition: Callable[[T], object], at_once: int) -> None:
        """`partition`: what the queue is partitioned by."""
        self._partition = partition
        self._at_once = at_once
        self._running: Counter[str] = Counter()

    @property
    def claim_size(self) -> int:
        """One at a time, so that no claim takes two of one partition."""
        return min(1, self._at_once - self._running.total())

    def saturated(self) -> list[str]:
        return sorted(self._running)

    def is_saturated(self, job: T) -> bool:
        return False

    def started(self, job: T) -> None:
        self._running[str(self._partition(job))] += 1

    def ended(self, job: T) -> None:
        self._running[str(self._partition(job))] -= 1
        self._running += Counter()


class QueueLoop(Loop, Generic[T]):
    """Claims what is due in one queue and works on it side by side."""

    def __init__(
        self,
        name: str,
        wake: asyncio.Event,
        clock: Clock,
        jobs: QueueJobs[T],
        limits: Limits[T],
        *,
        rest: float = 0.0,
    ) -> None:
        """`rest`: seconds between two claims, the first of which took all that was due: what becomes due meanwhile is
        claimed together."""
        self.name = name
        self.wake = wake
        self._clock = clock
        self._jobs = jobs
        self._limits = limits
        self._rest = rest
        #: The jobs that run, those included whose result is being recorded.
        self.running: set[asyncio.Task[None]] = set()
        self._failures = metrics.LOOP_FAILURES.labels(name, "item")
        #: The last claim took all that it may: more is likely to wait, and is older than what comes now.
        self.is_behind = False

    async def step(self) -> Step:
        most = min(self._limits.claim_size, MAX_IN_FLIGHT - len(self.running))
        if most <= 0:
            return Step(False, POLL_INTERVAL)
        now = self._clock.now()
        claim = await self._jobs.claim(now, later(now, LEASE_DURATION), most, self._limits.saturated())
        self.is_behind = len(claim.jobs) == most
        for job in claim.jobs:
            self._start(job)
        # What is due but was not claimed waits for running jobs; the end of one of them wakes this loop.
        pause = _pause(claim.next_due, self._clock.now())
        rest = self._rest if pause else 0.0
        if pause == 0 and any(self._limits.is_saturated(job) for job in claim.jobs):
            self.wake.clear()  # By jobs that ended during the claim: their places are taken now.
            pause = SATURATED_BACKOFF
        return Step(bool(claim.jobs), pause, rest)

    async def idle(self) -> None:
        while self.running:
            await asyncio.wait(self.running)

    def adopt(self, jobs: Awaitable[Sequence[T]]) -> None:
        """Does jobs that are claimed already."""
        self._run_beside(self._adopt(jobs))

    async def _adopt(self, jobs: Awaitable[Sequence[T]]) -> None:
        try:
            for job in await jobs:
                self._start(job, adopted=True)
        except Exception as error:
            self._failed(error)

    def _start(self, job: T, *, adopted: bool = False) -> None:
        self._limits.started(job)
        self._run_beside(self._run(job, adopted=adopted))

    def _run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.running.add(task)
        task.add_done_callback(self._ended)

    async def _run(self, job: T, *, adopted: bool) -> None:
        try:
            try:
                follow_up = await self._jobs.work(job)
            finally:
                self._leave(job, adopted=adopted)
            if follow_up is not None:
                await follow_up
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """The job's lease runs out, and it is due again."""
        self._failures.inc()
        log.error("worker.item_failed", loop=self.name, error=repr(error))

    def _leave(self, job: T, *, adopted: bool) -> None:
        """The job no longer counts; wakes the loop where that lets it claim more. What was `adopted` left no place of a
        claim."""
        self._limits.ended(job)
        if not adopted and not self._limits.is_saturated(job):
            self.wake.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if len(self.running) >= MAX_IN_FLIGHT:
            self.wake.set()
        self.running.discard(task)


def _pause(next_due: Instant | None, now: Instant) -> float:
    if next_due is None:
        return POLL_INTERVAL
    return min(POLL_INTERVAL, max(0.0, (next_due - now) / SECOND))
