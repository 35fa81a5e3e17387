"""The worker: loops that poll providers, follow up callbacks, refund, deliver webhooks, reconcile and keep house.

Each loop claims, works, records and sleeps. Nothing that matters is kept here: a claim is a lease in a table, so the
work of a process that dies is due again. A loop is woken right after a commit of its own process; what other processes
committed it finds by itself within a second, or at once where they announce it (`worker/wakeups.py`).
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from guichet import metrics
from guichet.back_office.jobs.work import StaffJobs
from guichet.clock import Clock, Instant, later
from guichet.context import AppContext
from guichet.db.errors import StorageError
from guichet.db.queues.work_queue import LEASE_DURATION
from guichet.domain.events import Delivery
from guichet.domain.exports import Export
from guichet.domain.staff_jobs import StaffJob
from guichet.exports.files import ExportJobs
from guichet.http_client import HttpClient
from guichet.late_money.results import LateResultJobs
from guichet.logs import log
from guichet.mail.outbox import Mail, Outbox
from guichet.mail.sender import MailJobs
from guichet.payments.pending import QUEUE as PAYMENTS
from guichet.payments.polling import poll_due_payment
from guichet.provider_callbacks.receive import follow_callback
from guichet.provider_callbacks.repository import QUEUE as CALLBACKS
from guichet.refunds.disbursement import process_refund
from guichet.refunds.pending import QUEUE as REFUNDS
from guichet.webhooks.deliveries import DueDelivery
from guichet.webhooks.dispatcher import DeliveryJobs
from guichet.worker.availability_loop import Availability
from guichet.worker.housekeeping import Housekeeping
from guichet.worker.queue_loop import (
    CLAIMS_APART,
    POLL_INTERVAL,
    AccountJob,
    Loop,
    OneOfEach,
    PartitionLimits,
    QueueJobs,
    QueueLoop,
    TableJobs,
    account_of,
)
from guichet.worker.reconciliation_loop import Reconciliation
from guichet.worker.timed_loops import BalanceReader, DisputeLoop, HeadPublication

#: Seconds that running jobs have to finish when the worker stops; a job that does not is done again after its lease.
GRACE: Final = 1.2
#: Seconds that giving back unsent webhooks may take after that.
GIVE_BACK_LIMIT: Final = 0.5
#: Payments polled at once, callbacks asked about at once, and refunds worked on at once, for one provider account.
PER_PROVIDER_ACCOUNT: Final = 128

#: Mails of one kind that are sent at once.
MAILS_AT_ONCE: Final = 8
#: Exports that one process prepares at once, of as many merchants.
EXPORTS_AT_ONCE: Final = 2
#: Jobs of the staff that one process does at once, of as many kinds.
JOBS_AT_ONCE: Final = 2


class Worker:
    """All loops of one process."""

    def __init__(self, ctx: AppContext, http_client: HttpClient, *more: Loop) -> None:
        """`more`: loops of what this package does not know."""
        wakeups = ctx.wakeups
        polls = TableJobs(ctx.db, PAYMENTS, partial(poll_due_payment, ctx))
        callbacks = TableJobs(ctx.db, CALLBACKS, partial(follow_callback, ctx))
        refunds = TableJobs(ctx.db, REFUNDS, partial(process_refund, ctx))
        deliveries = DeliveryJobs(ctx, http_client)
        self._http_client = http_client
        self.deliveries = QueueLoop("deliveries", wakeups.deliveries, ctx.clock, deliveries, deliveries.limits)
        self.loops: list[Loop] = [
            _by_account("polling", wakeups.polling, ctx, polls),
            _by_account("callbacks", wakeups.callbacks, ctx, callbacks),
            _by_account("refunds", wakeups.refunds, ctx, refunds),
            _by_account("late results", wakeups.late_results, ctx, LateResultJobs(ctx)),
            self.deliveries,
            _mails(ctx),
            QueueLoop("exports", wakeups.exports, ctx.clock, ExportJobs(ctx), OneOfEach(_merchant, EXPORTS_AT_ONCE)),
            QueueLoop("staff jobs", wakeups.staff_jobs, ctx.clock, StaffJobs(ctx), OneOfEach(_kind, JOBS_AT_ONCE)),
            BalanceReader(ctx),
            DisputeLoop(ctx),
            Housekeeping(ctx),
            HeadPublication(ctx, http_client),
            Reconciliation(ctx),
            Availability(ctx),
            *more,
        ]
        self._hand_over = ctx.hand_over
        self._first_attempts = _FirstAttempts(ctx.clock, deliveries, self.deliveries)
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    def start(self) -> None:
        self._hand_over.worker = self._first_attempts
        self._tasks = [asyncio.create_task(self._run(loop), name=loop.name) for loop in self.loops]

    async def is_alive(self) -> bool:
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    async def stop(self, grace: float = GRACE) -> None:
        """Claims nothing more; jobs that are running have `grace` seconds to finish. Webhooks that are not sent by then
        are given back: their attempts do not count."""
        self._stopping = True
        self._hand_over.worker = None
        for loop in self.loops:
            loop.wake.set()
        try:
            async with asyncio.timeout(grace):
                await asyncio.gather(*self._tasks)  # A claim under way ends: what it claimed is done or given back.
                for loop in self.loops:
                    await loop.idle()
        except TimeoutError:
            log.warning("worker.stopped_with_jobs_running")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if unsent := self._http_client.stop_connecting(self.deliveries.running):
            await asyncio.wait(unsent, timeout=GIVE_BACK_LIMIT)

    async def run_until_idle(self) -> None:
        """Does everything that is due now, and what becomes due by it; for tests and demonstrations."""
        quiet = False
        while not quiet:
            quiet = True
            for loop in self.loops:
                while (await loop.step()).worked:
                    quiet = False
                await loop.idle()

    async def _run(self, loop: Loop) -> None:
        """Runs a loop until the worker stops. No error ends it: work that could not be done is due again."""
        turns, failures = metrics.LOOP_TURNS.labels(loop.name), metrics.LOOP_FAILURES.labels(loop.name, "turn")
        await self._pause(loop, loop.starts_after)
        while not self._stopping:
            loop.wake.clear()
            turns.inc()
            rest = 0.0
            try:
                _, pause, rest = await loop.step()
            except StorageError as error:
                failures.inc()
                log.error("worker.storage", loop=loop.name, error=str(error))
                pause = POLL_INTERVAL
            except Exception as error:
                failures.inc()
                log.error("worker.failed", loop=loop.name, error=repr(error), exc_info=True)
                pause = POLL_INTERVAL
            if rest:
                await asyncio.sleep(rest)
            await self._pause(loop, pause - rest)

    async def _pause(self, loop: Loop, seconds: float) -> None:
        if seconds > 0 and not self._stopping:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await loop.wake.wait()


class _FirstAttempts:
    """`context.LocalWorker`: attempts that the loop of webhooks makes without a claim."""

    def __init__(self, clock: Clock, jobs: DeliveryJobs, loop: QueueLoop[DueDelivery]) -> None:
        self._clock = clock
        self._jobs = jobs
        self._loop = loop

    def reserve(self, delivery: Delivery) -> Instant | None:
        if self._loop.is_behind or not self._jobs.limits.reserve(delivery):
            return None
        return later(self._clock.now(), LEASE_DURATION)

    def release(self, reserved: Sequence[Delivery]) -> None:
        for delivery in reserved:
            self._jobs.limits.release(delivery)

    def begin(self, reserved: Sequence[Delivery]) -> None:
        self._loop.adopt(self._jobs.reserved_contents(reserved))


def _merchant(export: Export) -> int:
    return export.merchant_id


def _kind(job: StaffJob) -> str:
    return job.kind


def _mails(ctx: AppContext) -> QueueLoop[Mail]:
    jobs = MailJobs(ctx, Outbox(ctx.vault))
    limits = PartitionLimits(jobs.partition, MAILS_AT_ONCE)
    # Nobody wakes it: a mail may leave a second later.
    return QueueLoop("mails", asyncio.Event(), ctx.clock, jobs, limits)


def _by_account(name: str, wake: asyncio.Event, ctx: AppContext, jobs: QueueJobs[AccountJob]) -> QueueLoop[AccountJob]:
    """A queue whose jobs are limited by their provider account."""
    return QueueLoop(name, wake, ctx.clock, jobs, PartitionLimits(account_of, PER_PROVIDER_ACCOUNT), rest=CLAIMS_APART)
