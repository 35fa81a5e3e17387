"""The loops that make things happen by themselves: ask operators, disburse refunds, deliver webhooks, keep house.

Each loop claims, works, records, sleeps. Nothing that matters lives here: a claim is a lease in a table, and a process
that dies leaves work that comes due again. Loops are woken right after a commit of this process, and look by themselves
at least once a second for what other processes committed.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from guichet.clock import SECOND, Clock, Instant
from guichet.domain.events import Delivery, retry_delay
from guichet.egress import Egress
from guichet.flows.core import Core
from guichet.flows.refresh import LEASE, ask_due
from guichet.flows.refund import disburse
from guichet.observability import log
from guichet.storage import deliveries, ledger, merchants, payments, refunds
from guichet.storage.engine import StorageError
from guichet.storage.vault import UnreadableSecret
from guichet.webhooks.sender import Attempt, send

#: Rows claimed at once.
BATCH: Final = 64
#: Attempts at once in this process, and towards one destination: a dead endpoint cannot delay the others.
MAX_IN_FLIGHT: Final = 512
PER_DESTINATION: Final = 32
#: How often every loop looks for itself, in seconds.
POLL: Final = 1.0
#: How long running attempts may finish when the service stops, in seconds; what does not is sent again by its lease.
GRACE: Final = 1.2


class Loop(Protocol):
    name: str
    wake: asyncio.Event

    async def step(self) -> float:
        """Does what is due now; seconds until it is worth looking again."""

    async def idle(self) -> None:
        """Returns when nothing that `step` started is still running."""


class _Batches:
    """Claims due rows and works on them side by side (on SQLite they then share one commit)."""

    def __init__(
        self,
        name: str,
        wake: asyncio.Event,
        clock: Clock,
        claim: Callable[[Instant, Instant, int], Awaitable[list[Awaitable[object]]]],
        next_due: Callable[[], Awaitable[Instant | None]],
    ) -> None:
        self.name = name
        self.wake = wake
        self._clock = clock
        self._claim = claim
        self._next_due = next_due

    async def step(self) -> float:
        now = self._clock.now()
        work = await self._claim(now, now + LEASE, BATCH)
        for outcome in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(outcome, BaseException):
                log.error("worker.item_failed", loop=self.name, error=repr(outcome))
        if len(work) == BATCH:
            return 0.0
        return _pause(await self._next_due(), self._clock.now())

    async def idle(self) -> None:
        """Every step ends with its work done."""


def asking(core: Core) -> Loop:
    """Asks operators about payments whose next question is due."""

    async def claim(now: Instant, until: Instant, most: int) -> list[Awaitable[object]]:
        return [ask_due(core, payment) for payment in await payments.claim_due(core.db, now, until, most)]

    return _Batches("asking", core.wake.questions, core.clock, claim, lambda: payments.next_due(core.db))


def disbursing(core: Core) -> Loop:
    """Sends refunds, and asks what became of those that were sent."""

    async def claim(now: Instant, until: Instant, most: int) -> list[Awaitable[object]]:
        return [disburse(core, refund) for refund in await refunds.claim_due(core.db, now, until, most)]

    return _Batches("disbursing", core.wake.refunds, core.clock, claim, lambda: refunds.next_due(core.db))


class Delivering:
    """Sends webhooks; many at once, few to one destination."""

    name = "delivering"

    def __init__(self, core: Core, egress: Egress) -> None:
        self.wake = core.wake.deliveries
        self._db = core.db
        self._clock = core.clock
        self._vault = core.vault
        self._egress = egress
        self._running: set[asyncio.Task[None]] = set()
        self._load: Counter[str] = Counter()

    async def step(self) -> float:
        free = MAX_IN_FLIGHT - len(self._running)
        if free <= 0:
            return POLL
        busy = [destination for destination, attempts in self._load.items() if attempts >= PER_DESTINATION]
        now = self._clock.now()
        claimed = await deliveries.claim_due(self._db, now, now + LEASE, min(free, PER_DESTINATION), busy)
        for delivery in claimed:
            self._load[delivery.destination] += 1
            task = asyncio.create_task(self._attempt(delivery))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        if claimed:
            return 0.0
        # What is due but was not claimed waits for an attempt that is running: its end wakes this loop.
        pause = _pause(await deliveries.next_due(self._db, busy), self._clock.now())
        return pause or POLL

    async def idle(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    async def _attempt(self, delivery: Delivery) -> None:
        try:
            attempt = await self._send(delivery)
            await self._record(delivery, attempt)
        except StorageError as error:
            log.error("delivery.not_recorded", delivery=delivery.reference, error=str(error))
        finally:
            self._load[delivery.destination] -= 1
            if not self._load[delivery.destination]:
                del self._load[delivery.destination]
            self.wake.set()

    async def _send(self, delivery: Delivery) -> Attempt:
        endpoint = await merchants.endpoint(self._db, delivery.merchant_id, delivery.env)
        try:
            secret = self._vault.decrypt(endpoint.secret)
        except UnreadableSecret as error:
            log.error("delivery.unsigned", delivery=delivery.reference, error=str(error))
            return Attempt(delivered=False, response_code=None)
        return await send(self._egress, delivery, secret, self._clock.now())

    async def _record(self, delivery: Delivery, attempt: Attempt) -> None:
        now = self._clock.now()
        outcome = {"delivery": delivery.reference, "event": delivery.event, "attempt": delivery.attempts}
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
    """Folds wallet entries into their wallets, and credits what waited for a frozen wallet."""

    name = "housekeeping"

    def __init__(self, core: Core) -> None:
        self.wake = asyncio.Event()
        self._core = core

    async def step(self) -> float:
        released = await ledger.release_suspended(self._core.db, self._core.clock.now(), BATCH)
        folded = await ledger.fold(self._core.db, 10 * BATCH)
        return 0.0 if released == BATCH or folded == 10 * BATCH else POLL

    async def idle(self) -> None:
        """Every step ends with its work done."""


class Worker:
    """All loops in one process. `alive` says whether each is still turning."""

    def __init__(self, core: Core, egress: Egress) -> None:
        self.loops: list[Loop] = [asking(core), disbursing(core), Delivering(core, egress), Housekeeping(core)]
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
    while True:
        loop.wake.clear()
        try:
            pause = await loop.step()
        except StorageError as error:
            log.error("worker.storage", loop=loop.name, error=str(error))
            pause = POLL
        except Exception as error:  # A loop never ends: what it could not do now comes due again.
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
