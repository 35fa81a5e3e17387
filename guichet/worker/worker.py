"""The worker: loops that poll providers, follow up callbacks, refund, deliver webhooks, reconcile and keep house.

Each loop claims, works, records and sleeps. Nothing that matters is kept here: a claim is a lease in a table, so the
work of a process that dies is due again. A loop is woken right after a commit of its own process; what other processes
committed it finds by itself within a second, or at once where they announce it (`worker/wakeups.py`).
"""

import asyncio
from typing import Final

from guichet import metrics
from guichet.context import AppContext
from guichet.db.errors import StorageError
from guichet.http_client import HttpClient
from guichet.logs import log
from guichet.payments.disbursement import RefundJobs
from guichet.payments.late_results import LateResultJobs
from guichet.payments.polling import PollingJobs
from guichet.payments.provider_callbacks import CallbackJobs
from guichet.webhooks.dispatcher import PER_DESTINATION, PER_MERCHANT, DeliveryJobs
from guichet.worker.availability_loop import Availability
from guichet.worker.balance_reader import BalanceReader
from guichet.worker.dispute_loop import DisputeLoop
from guichet.worker.head_publication import HeadPublication
from guichet.worker.housekeeping import Housekeeping
from guichet.worker.queue_loop import POLL_INTERVAL, Loop, QueueLoop
from guichet.worker.reconciliation_loop import Reconciliation

#: Seconds that running jobs have to finish when the worker stops; a job that does not is done again after its lease.
GRACE: Final = 1.2
#: Payments polled at once, callbacks asked about at once, and refunds worked on at once, for one provider account.
PER_PROVIDER_ACCOUNT: Final = 128


class Worker:
    """All loops of one process."""

    def __init__(self, ctx: AppContext, http_client: HttpClient) -> None:
        wakeups, clock = ctx.wakeups, ctx.clock
        deliveries = DeliveryJobs(ctx, http_client)
        self.loops: list[Loop] = [
            QueueLoop("polling", wakeups.polling, clock, PollingJobs(ctx), PER_PROVIDER_ACCOUNT),
            QueueLoop("callbacks", wakeups.callbacks, clock, CallbackJobs(ctx), PER_PROVIDER_ACCOUNT),
            QueueLoop("refunds", wakeups.refunds, clock, RefundJobs(ctx), PER_PROVIDER_ACCOUNT),
            QueueLoop("late results", wakeups.late_results, clock, LateResultJobs(ctx), PER_PROVIDER_ACCOUNT),
            QueueLoop("deliveries", wakeups.deliveries, clock, deliveries, PER_DESTINATION, PER_MERCHANT),
            BalanceReader(ctx),
            DisputeLoop(ctx),
            Housekeeping(ctx),
            HeadPublication(ctx, http_client),
            Reconciliation(ctx),
            Availability(ctx),
        ]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(_run(loop), name=loop.name) for loop in self.loops]

    @property
    def alive(self) -> bool:
        """Whether every loop is still running."""
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    async def stop(self, grace: float = GRACE) -> None:
        """Claims nothing more; jobs that are running have `grace` seconds to finish."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(grace):
                for loop in self.loops:
                    await loop.idle()
        except TimeoutError:
            log.warning("worker.stopped_with_jobs_running")

    async def run_until_idle(self) -> None:
        """Does everything that is due now, and what becomes due by it; for tests and demonstrations."""
        quiet = False
        while not quiet:
            quiet = True
            for loop in self.loops:
                while (await loop.step()).worked:
                    quiet = False
                await loop.idle()


async def _run(loop: Loop) -> None:
    """Runs a loop until it is cancelled. No error ends it: work that could not be done is due again."""
    turns, failures = metrics.LOOP_TURNS.labels(loop.name), metrics.LOOP_FAILURES.labels(loop.name, "turn")
    while True:
        loop.wake.clear()
        turns.inc()
        try:
            pause = (await loop.step()).pause
        except StorageError as error:
            failures.inc()
            log.error("worker.storage", loop=loop.name, error=str(error))
            pause = POLL_INTERVAL
        except Exception as error:
            failures.inc()
            log.error("worker.failed", loop=loop.name, error=repr(error), exc_info=True)
            pause = POLL_INTERVAL
        if pause > 0:
            try:
                async with asyncio.timeout(pause):
                    await loop.wake.wait()
            except TimeoutError:
                continue
