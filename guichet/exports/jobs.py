"""The worker's jobs (`worker/queue_loop.py`): prepares exports that are too long for a direct download."""

from collections.abc import Awaitable, Collection

from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.queues.work_queue import Claim
from guichet.domain.exports import MOST_ATTEMPTS, Export
from guichet.exports import repository
from guichet.exports.errors import ExportTakenOver
from guichet.logs import log


class ExportJobs:
    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Collection[str]) -> Claim[Export]:
        """Leased for longer than `until`: each stored piece renews the claim."""
        return await repository.claim(self._ctx.db, now, most, saturated)

    async def work(self, job: Export) -> Awaitable[None] | None:
        try:
            if job.attempts > MOST_ATTEMPTS:
                log.error("export.given_up", export=job.id, attempts=job.attempts)
                await repository.finish(self._ctx.db, job, ready=False, expires=job.expires_at)
            else:
                from guichet.exports import files  # noqa: PLC0415 - few exports are prepared

                await files.prepare(self._ctx, job)
        except ExportTakenOver:
            log.warning("export.taken_over", export=job.id)
        return None
