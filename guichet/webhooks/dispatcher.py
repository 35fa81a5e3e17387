"""The dispatcher: sends the webhooks that are due and records how each attempt ended."""

from collections.abc import Awaitable, Sequence
from typing import Final

from guichet import metrics
from guichet.clock import SECOND, Instant, later
from guichet.context import AppContext
from guichet.db.batching import Batching
from guichet.db.work_queue import Claim
from guichet.domain.events import Delivery, retry_delay
from guichet.domain.records import Record
from guichet.http_client import HttpClient
from guichet.logs import log
from guichet.merchants import repository as merchants
from guichet.merchants.vault import UnreadableSecret
from guichet.webhooks import deliveries
from guichet.webhooks.deliveries import AttemptResult
from guichet.webhooks.sender import Attempt, send

#: Attempts at once towards one destination, and for one merchant: a server that hangs delays nobody else.
PER_DESTINATION: Final = 96
PER_MERCHANT: Final = 256
#: Results recorded by one transaction; on SQLite each holds the event loop for about ten microseconds.
RECORDED_TOGETHER: Final = 128


class DueDelivery(Record, frozen=True):
    """A claimed delivery, and the encrypted secret that was in force at the claim (D34)."""

    delivery: Delivery
    secret: str


class DeliveryJobs:
    """The worker's queue of webhooks (see `worker/queue_loop.py`): one attempt at each delivery that is due."""

    def __init__(self, ctx: AppContext, http_client: HttpClient) -> None:
        self._ctx = ctx
        self._http_client = http_client
        self._log = log.bind()
        self._results: Batching[AttemptResult, None] = Batching(self._record, RECORDED_TOGETHER)

    async def claim(
        self, now: Instant, until: Instant, most: int, saturated: Sequence[Sequence[str]]
    ) -> Claim[DueDelivery]:
        claim = await deliveries.claim_due(self._ctx.db, now, until, most, saturated)
        if not claim.jobs:
            return Claim((), claim.next_due)
        endpoints = await merchants.endpoints_of(self._ctx.db, {job.merchant_id for job in claim.jobs})
        due = [DueDelivery(job, endpoints[job.merchant_id, job.env].secret) for job in claim.jobs]
        return Claim(due, claim.next_due)

    def partition_key(self, job: DueDelivery) -> tuple[str, ...]:
        return job.delivery.destination, str(job.delivery.merchant_id)

    async def work(self, job: DueDelivery) -> Awaitable[None]:
        """Makes the attempt. Recording its result is returned as the rest: it keeps nobody's server busy (D76)."""
        attempt = await self._send(job)
        return self._conclude(job.delivery, attempt, self._ctx.clock.now())

    async def _conclude(self, delivery: Delivery, attempt: Attempt, now: Instant) -> None:
        delay = None if attempt.delivered else retry_delay(delivery.attempts)
        next_attempt_at = None if delay is None else later(now, delay * SECOND)
        result = AttemptResult(delivery, attempt.delivered, attempt.response_code, now, next_attempt_at)
        await self._results.add(result)
        facts = {"delivery": delivery.reference, "webhook": delivery.event, "attempt": delivery.attempts}
        if attempt.delivered:
            self._log.info("delivery.success", **facts, status=attempt.response_code)
        else:
            log.warning("delivery.failed", **facts, status=attempt.response_code, next_in_seconds=delay)

    async def _send(self, job: DueDelivery) -> Attempt:
        try:
            secret = self._ctx.vault.decrypt(job.secret)
        except UnreadableSecret as error:
            log.error("delivery.unsigned", delivery=job.delivery.reference, error=str(error))
            metrics.WEBHOOK_ATTEMPTS_BY_RESULT["unsigned"].inc()
            return Attempt(delivered=False, response_code=None)
        attempt = await send(self._http_client, job.delivery, secret, self._ctx.clock.now())
        failed = "unanswered" if attempt.response_code is None else "refused"
        metrics.WEBHOOK_ATTEMPTS_BY_RESULT["delivered" if attempt.delivered else failed].inc()
        return attempt

    async def _record(self, results: list[AttemptResult]) -> list[None]:
        await deliveries.record(self._ctx.db, results)
        return [None] * len(results)
