"""The worker's jobs (`worker/queue_loop.py`): prepares exports that are too long for a direct download."""

from collections import Counter
from collections.abc import Awaitable, Sequence
from typing import Final

from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.work_queue import Claim
from guichet.domain.exports import MOST_ATTEMPTS, Export
from guichet.exports import files, repository
from guichet.exports.errors import ExportTakenOver
from guichet.logs import log

#: Exports that one process prepares at once, of as many merchants.
AT_ONCE: Final = 2


class ExportLimits:
    """A few at once, and one for each merchant."""

    def __init__(self) -> None:
        self._merchants: Counter[str] = Counter()

    @property
    def claim_size(self) -> int:
        """One at a time, so that no claim takes two of one merchant."""
        return min(1, AT_ONCE - self._merchants.total())

    def saturated(self) -> list[list[str]]:
        return [sorted(self._merchants)]

    def is_saturated(self, job: Export) -> bool:
        return False

    def started(self, job: Export) -> None:
        self._merchants[str(job.merchant_id)] += 1

    def ended(self, job: Export) -> None:
        self._merchants[str(job.merchant_id)] -= 1
        self._merchants += Counter()


class ExportJobs:
    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Sequence[Sequence[str]]) -> Claim[Export]:
        """Leased for longer than `until`: each stored piece renews the claim."""
        return await repository.claim(self._ctx.db, now, most, [list(each) for each in saturated])

    async def work(self, job: Export) -> Awaitable[None] | None:
        try:
            if job.attempts > MOST_ATTEMPTS:
                log.error("export.given_up", export=job.id, attempts=job.attempts)
                await repository.finish(self._ctx.db, job, ready=False, expires=job.expires_at)
            else:
                await files.prepare(self._ctx, job)
        except ExportTakenOver:
            log.warning("export.taken_over", export=job.id)
        return None
