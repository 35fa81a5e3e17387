"""The loops that make things happen by themselves: ask operators, disburse refunds, deliver webhooks, keep house.

Each loop claims, works, records, sleeps. Nothing that matters lives here: a claim is a lease in a table, and a process
that dies leaves work that comes due again. Loops are woken right after a commit of this process, and look by themselves
at least once a second for what other processes committed.
"""

import asyncio
from typing import Final

from guichet import metrics
from guichet.context import AppContext
from guichet.db.engine import StorageError
from guichet.http_client import HttpClient
from guichet.logs import log
from guichet.webhooks.dispatcher import PER_DESTINATION, PER_MERCHANT, Attempts
from guichet.worker.housekeeping import Housekeeping
from guichet.worker.loops import POLL, Loop, Queue
from guichet.worker.provider_jobs import PER_CONNECTION, Disbursements, Questions

#: How long running attempts may finish when the service stops, in seconds; what does not is sent again by its lease.
GRACE: Final = 1.2


class Worker:
    """All loops in one process. `alive` says whether each is still turning."""

    def __init__(self, ctx: AppContext, http_client: HttpClient) -> None:
        self.loops: list[Loop] = [
            Queue("polling", ctx.wakeups.polling, ctx.clock, Questions(ctx), PER_CONNECTION),
            Queue("refunds", ctx.wakeups.refunds, ctx.clock, Disbursements(ctx), PER_CONNECTION),
            Queue(
                "deliveries",
                ctx.wakeups.deliveries,
                ctx.clock,
                Attempts(ctx, http_client),
                PER_DESTINATION,
                PER_MERCHANT,
            ),
            Housekeeping(ctx),
        ]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(_turn(loop), name=loop.name) for loop in self.loops]

    @property
    def alive(self) -> bool:
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    async def stop(self, grace: float = GRACE) -> None:
        """Claims nothing more; running attempts and questions have `grace` seconds to finish."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(grace):
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
                while (await loop.step()).worked:
                    quiet = False
                await loop.idle()


async def _turn(loop: Loop) -> None:
    turns, failures = metrics.LOOP_TURNS.labels(loop.name), metrics.LOOP_FAILURES.labels(loop.name, "turn")
    while True:
        loop.wake.clear()
        turns.inc()
        try:
            pause = (await loop.step()).pause
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
