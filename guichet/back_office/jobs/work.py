"""The worker's jobs (`worker/queue_loop.py`): does what the staff asked for in the back office."""

import asyncio
from collections.abc import Awaitable, Collection
from typing import Final

import msgspec

from guichet.back_office.jobs import repository
from guichet.back_office.jobs.repository import JobTakenOver
from guichet.clock import Instant, later
from guichet.context import AppContext
from guichet.db.queues.work_queue import Claim
from guichet.domain.audit_log import CONSOLE, Actor
from guichet.domain.staff_jobs import MOST_ATTEMPTS, RETRY_AFTER, StaffJob
from guichet.logs import log
from guichet.merchants.vault import UnreadableSecret

#: Seconds between two renewals of a claim, of a lease of two minutes.
_RENEW_EVERY: Final = 30.0


class StaffJobs:
    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Collection[str]) -> Claim[StaffJob]:
        """Leased for longer than `until`: the claim is renewed while the job is done."""
        return await repository.claim(self._ctx.db, now, most, saturated)

    async def work(self, job: StaffJob) -> Awaitable[None] | None:
        ctx = self._ctx
        try:
            if job.attempts > MOST_ATTEMPTS:
                await self._give_up(job)
            else:
                await self._attempt(job)
        except JobTakenOver:
            log.warning("staff_job.taken_over", job=job.id)
        except UnreadableSecret as error:
            log.error("staff_job.unreadable", job=job.id, error=str(error))
            await repository.finish(ctx.db, job, None, ctx.clock.now())
        return None

    async def _attempt(self, job: StaffJob) -> None:
        """An error is raised again for the loop, which counts it."""
        try:
            await self._do(job)
        except (JobTakenOver, UnreadableSecret):
            raise
        except Exception as error:
            log.error("staff_job.failed", job=job.id, kind=job.kind, attempt=job.attempts, error=repr(error))
            # Where the database is away this fails too, and the lease bounds how soon the next attempt comes.
            if job.attempts < MOST_ATTEMPTS:
                at = later(self._ctx.clock.now(), RETRY_AFTER[job.attempts - 1])
                await repository.set_due(self._ctx.db, job, at)
            else:
                await self._give_up(job)
            raise

    async def _give_up(self, job: StaffJob) -> None:
        log.error("staff_job.given_up", job=job.id, kind=job.kind, attempts=job.attempts)
        await repository.finish(self._ctx.db, job, None, self._ctx.clock.now())

    async def _do(self, job: StaffJob) -> None:
        from guichet.back_office.jobs.tasks import read_task, run_task  # noqa: PLC0415 - jobs are rare

        ctx = self._ctx
        # In a thread: there may be a file of megabytes in it.
        task = await asyncio.to_thread(lambda: read_task(ctx.vault.decrypt_bytes(job.parameters or "")))
        actor = Actor(await repository.requester(ctx.db, job), CONSOLE)
        doing = asyncio.create_task(run_task(ctx, job, task, actor))
        try:
            while not (await asyncio.wait([doing], timeout=_RENEW_EVERY))[0]:
                await repository.renew(ctx.db, job, ctx.clock.now())
            result = doing.result()
        finally:
            doing.cancel()
        sealed = await asyncio.to_thread(lambda: ctx.vault.encrypt_bytes(msgspec.json.encode(result)))
        await repository.finish(ctx.db, job, sealed, ctx.clock.now())
