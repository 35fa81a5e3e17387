"""The loops that make things happen by themselves: ask operators, disburse refunds, deliver webhooks, keep house.

Each loop claims, works, records, sleeps. Nothing that matters lives here: a claim is a lease in a table, and a process
that dies leaves work that comes due again. Loops are woken right after a commit of this process, and look by themselves
at least once a second for what other processes committed.
"""

import asyncio
from collections import Counter
from typing import Final, Generic, Protocol, TypeVar

from guichet import metrics
from guichet.clock import SECOND, Clock, Instant
from guichet.domain.events import Delivery, retry_delay
from guichet.domain.payments import Payment, Refund
from guichet.egress import Egress
from guichet.flows.core import Core
from guichet.flows.refresh import LEASE, ask_due
from guichet.flows.refund import disburse
from guichet.observability import log
from guichet.storage import counts, deliveries, ledger, merchants, payments, refunds, seals
from guichet.storage.engine import StorageError
from guichet.storage.vault import UnreadableSecret
from guichet.webhooks.sender import Attempt, send

#: Attempts and questions at once in this process.
MAX_IN_FLIGHT: Final = 512
#: Of these, towards one destination and to one operator: a dead one delays nobody else.
PER_DESTINATION: Final = 64
PER_CONNECTION: Final = 128
#: Rows of wallets handled at once.
BATCH: Final = 64
#: How often every loop looks for itself, in seconds.
POLL: Final = 1.0
#: How often postings are sealed while they are few.
SEAL_EVERY: Final = 10 * SECOND
#: How long running attempts may finish when the service stops, in seconds; what does not is sent again by its lease.
GRACE: Final = 1.2

T = TypeVar("T")


class Loop(Protocol):
    name: str
    wake: asyncio.Event

    async def step(self) -> float:
        """Does what is due now; seconds until it is worth looking again."""

    async def idle(self) -> None:
        """Returns when nothing that `step` started is still running."""


class Jobs(Protocol[T]):
    """One queue's work. What shares a `fate` shares a cap: a webhook's destination, an operator's connection."""

    async def claim(self, now: Instant, until: Instant, most: int, busy: list[str]) -> list[T]: ...

    async def next_due(self, busy: list[str]) -> Instant | None: ...

    def fate(self, job: T) -> str: ...

    async def work(self, job: T) -> None: ...


class Queue(Generic[T]):
    """Claims what is due and works on it side by side (on SQLite it then shares commits)."""

    def __init__(self, name: str, wake: asyncio.Event, clock: Clock, jobs: Jobs[T], cap: int) -> None:
        self.name = name
        self.wake = wake
        self._clock = clock
        self._jobs = jobs
        self._cap = cap
        self._running: set[asyncio.Task[None]] = set()
        self._load: Counter[str] = Counter()
        self._failures = metrics.LOOP_FAILURES.labels(name, "item")

    async def step(self) -> float:
        at_once = self._cap // 2
        most = min(at_once, MAX_IN_FLIGHT - len(self._running))
        if most <= 0:
            return POLL
        # A claim may be all for one fate that is not busy: its load then reaches the cap and no more.
        busy = sorted(fate for fate, load in self._load.items() if load > self._cap - at_once)
        now = self._clock.now()
        claimed = await self._jobs.claim(now, now + LEASE, most, busy)
        for job in claimed:
            self._load[self._jobs.fate(job)] += 1
            task = asyncio.create_task(self._do(job))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        if claimed:
            return 0.0
        # What is due but was not claimed waits for work that is running: its end wakes this loop.
        return _pause(await self._jobs.next_due(busy), self._clock.now()) or POLL

    async def idle(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    async def _do(self, job: T) -> None:
        try:
            await self._jobs.work(job)
        except Exception as error:  # Its lease brings it back.
            self._failures.inc()
            log.error("worker.item_failed", loop=self.name, error=repr(error))
        finally:
            self._ended(self._jobs.fate(job))

    def _ended(self, fate: str) -> None:
        """Wakes the loop where that lets it claim more: a look at a fate that stays busy would only pass over its
        queue, once for every job that ends."""
        self._load[fate] -= 1
        if self._load[fate] <= self._cap - self._cap // 2 or len(self._running) >= MAX_IN_FLIGHT:
            self.wake.set()
        if not self._load[fate]:
            del self._load[fate]


class _Questions:
    """Asks operators about payments whose next question is due."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def claim(self, now: Instant, until: Instant, most: int, busy: list[str]) -> list[Payment]:
        return await payments.claim_due(self._core.db, now, until, most, busy)

    async def next_due(self, busy: list[str]) -> Instant | None:
        return await payments.next_due(self._core.db, busy)

    def fate(self, job: Payment) -> str:
        return job.connection or ""

    async def work(self, job: Payment) -> None:
        await ask_due(self._core, job)


class _Disbursements:
    """Sends refunds, and asks what became of those that were sent."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def claim(self, now: Instant, until: Instant, most: int, busy: list[str]) -> list[Refund]:
        return await refunds.claim_due(self._core.db, now, until, most, busy)

    async def next_due(self, busy: list[str]) -> Instant | None:
        return await refunds.next_due(self._core.db, busy)

    def fate(self, job: Refund) -> str:
        return job.connection or ""

    async def work(self, job: Refund) -> None:
        await disburse(self._core, job)


class _Attempts:
    """Sends webhooks."""

    def __init__(self, core: Core, egress: Egress) -> None:
        self._db = core.db
        self._clock = core.clock
        self._vault = core.vault
        self._egress = egress

    async def claim(self, now: Instant, until: Instant, most: int, busy: list[str]) -> list[Delivery]:
        return await deliveries.claim_due(self._db, now, until, most, busy)

    async def next_due(self, busy: list[str]) -> Instant | None:
        return await deliveries.next_due(self._db, busy)

    def fate(self, job: Delivery) -> str:
        return job.destination

    async def work(self, job: Delivery) -> None:
        await self._record(job, await self._send(job))

    async def _send(self, delivery: Delivery) -> Attempt:
        endpoint = await merchants.endpoint(self._db, delivery.merchant_id, delivery.env)
        try:
            secret = self._vault.decrypt(endpoint.secret)
        except UnreadableSecret as error:
            log.error("delivery.unsigned", delivery=delivery.reference, error=str(error))
            metrics.WEBHOOK_ATTEMPTS.labels("unsigned").inc()
            return Attempt(delivered=False, response_code=None)
        attempt = await send(self._egress, delivery, secret, self._clock.now())
        answered = "unanswered" if attempt.response_code is None else "refused"
        metrics.WEBHOOK_ATTEMPTS.labels("delivered" if attempt.delivered else answered).inc()
        return attempt

    async def _record(self, delivery: Delivery, attempt: Attempt) -> None:
        now = self._clock.now()
        outcome = {"delivery": delivery.reference, "webhook": delivery.event, "attempt": delivery.attempts}
        if attempt.delivered:
            assert attempt.response_code is not None
            await deliveries.record_success(self._db, delivery, attempt.response_code, now)
            log.info("delivery.success", **outcome, status=attempt.response_code)
            return
        delay = retry_delay(delivery.attempts)
        next_due = None if delay is None else now + delay * SECOND
        await deliveries.record_failure(self._db, delivery, attempt.response_code, now, next_due)
        log.warning("delivery.failed", **outcome, status=attempt.response_code, next_in_seconds=delay)


class Housekeeping:
    """Folds wallet entries into their wallets and list entries into their counts, credits what waited for a frozen
    wallet, ends deliveries whose fifth attempt nobody recorded, seals postings."""

    name = "housekeeping"

    def __init__(self, core: Core) -> None:
        self.wake = asyncio.Event()
        self._core = core
        self._seal_at: Instant = 0

    async def step(self) -> float:
        released = await ledger.release_suspended(self._core.db, self._core.clock.now(), BATCH)
        folded = await ledger.fold(self._core.db, 10 * BATCH)
        counted = await counts.fold(self._core.db, 10 * BATCH)
        await deliveries.give_up_exhausted(self._core.db, self._core.clock.now())
        sealed = await self._seal(self._core.clock.now())
        full = released == BATCH or 10 * BATCH in (folded, counted) or sealed == seals.BATCH
        return 0.0 if full else POLL

    async def _seal(self, now: Instant) -> int:
        """Few postings are sealed together every SEAL_EVERY, many as soon as a seal is full."""
        if now < self._seal_at:
            return 0
        sealed = await seals.seal_next(self._core.db, now)
        if sealed < seals.BATCH:
            self._seal_at = now + SEAL_EVERY
        return sealed

    async def idle(self) -> None:
        """Every step ends with its work done."""


class Worker:
    """All loops in one process. `alive` says whether each is still turning."""

    def __init__(self, core: Core, egress: Egress) -> None:
        self.loops: list[Loop] = [
            Queue("asking", core.wake.questions, core.clock, _Questions(core), PER_CONNECTION),
            Queue("disbursing", core.wake.refunds, core.clock, _Disbursements(core), PER_CONNECTION),
            Queue("delivering", core.wake.deliveries, core.clock, _Attempts(core, egress), PER_DESTINATION),
            Housekeeping(core),
        ]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(_turn(loop), name=loop.name) for loop in self.loops]

    @property
    def alive(self) -> bool:
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    async def stop(self) -> None:
        """Claims nothing more, lets running attempts finish for a moment."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(GRACE):
                for loop in self.loops:
                    await loop.idle()
        except TimeoutError:
            log.warning("worker.stopped_with_attempts_running")

    async def run_until_idle(self) -> None:
        """Does everything that is due now, and what that makes due; for tests and demonstrations."""
        quiet = False
        while not quiet:
            quiet = True
            for loop in self.loops:
                while await loop.step() == 0.0:
                    quiet = False
                await loop.idle()


async def _turn(loop: Loop) -> None:
    turns, failures = metrics.LOOP_TURNS.labels(loop.name), metrics.LOOP_FAILURES.labels(loop.name, "turn")
    while True:
        loop.wake.clear()
        turns.inc()
        try:
            pause = await loop.step()
        except StorageError as error:
            failures.inc()
            log.error("worker.storage", loop=loop.name, error=str(error))
            pause = POLL
        except Exception as error:  # A loop never ends: what it could not do now comes due again.
            failures.inc()
            log.error("worker.failed", loop=loop.name, error=repr(error), exc_info=True)
            pause = POLL
        if pause > 0:
            try:
                async with asyncio.timeout(pause):
                    await loop.wake.wait()
            except TimeoutError:
                continue


def _pause(next_due: Instant | None, now: Instant) -> float:
    if next_due is None:
        return POLL
    return min(POLL, max(0.0, (next_due - now) / SECOND))
