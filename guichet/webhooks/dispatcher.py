"""Sends webhooks and records what came back."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Final

from guichet import metrics
from guichet.clock import SECOND, Instant
from guichet.context import AppContext
from guichet.db.batching import Batching
from guichet.db.work_queue import Claim
from guichet.domain.events import Delivery, retry_delay
from guichet.http_client import HttpClient
from guichet.logs import log
from guichet.merchants import repository as merchants
from guichet.merchants.vault import UnreadableSecret
from guichet.webhooks import deliveries
from guichet.webhooks.deliveries import Outcome
from guichet.webhooks.sender import Attempt, send

#: Attempts at once towards one destination, and for one merchant: what hangs delays nobody else.
PER_DESTINATION: Final = 64
PER_MERCHANT: Final = 256
#: Outcomes written together; on SQLite they hold the event loop for about ten microseconds each.
RECORDED_AT_ONCE: Final = 128


@dataclass(frozen=True, slots=True)
class Due:
    """A claimed delivery and what signs it, encrypted: the secret in force at the claim (D34)."""

    delivery: Delivery
    secret: str


class Attempts:
    """One attempt at each delivery that is due."""

    def __init__(self, ctx: AppContext, http_client: HttpClient) -> None:
        self._db = ctx.db
        self._clock = ctx.clock
        self._vault = ctx.vault
        self._http_client = http_client
        self._log = log.bind()
        self._outcomes: Batching[Outcome, None] = Batching(self._record, RECORDED_AT_ONCE)

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Sequence[Sequence[str]]) -> Claim[Due]:
        claim = await deliveries.claim_due(self._db, now, until, most, saturated)
        if not claim.jobs:
            return Claim((), claim.next_due)
        endpoints = await merchants.endpoints_of(self._db, {job.merchant_id for job in claim.jobs})
        return Claim([Due(job, endpoints[job.merchant_id, job.env].secret) for job in claim.jobs], claim.next_due)

    def partition_key(self, job: Due) -> tuple[str, ...]:
        return job.delivery.destination, str(job.delivery.merchant_id)

    async def work(self, job: Due) -> Awaitable[None]:
        """What is left is to record what came back: that keeps nobody's server busy."""
        attempt = await self._send(job)
        return self._conclude(job.delivery, attempt, self._clock.now())

    async def _conclude(self, delivery: Delivery, attempt: Attempt, now: Instant) -> None:
        delay = None if attempt.delivered else retry_delay(delivery.attempts)
        next_due = None if delay is None else now + delay * SECOND
        await self._outcomes.add(Outcome(delivery, attempt.delivered, attempt.response_code, now, next_due))
        said = {"delivery": delivery.reference, "webhook": delivery.event, "attempt": delivery.attempts}
        if attempt.delivered:
            self._log.info("delivery.success", **said, status=attempt.response_code)
        else:
            log.warning("delivery.failed", **said, status=attempt.response_code, next_in_seconds=delay)

    async def _send(self, job: Due) -> Attempt:
        try:
            secret = self._vault.decrypt(job.secret)
        except UnreadableSecret as error:
            log.error("delivery.unsigned", delivery=job.delivery.reference, error=str(error))
            metrics.WEBHOOK_ATTEMPTS.labels("unsigned").inc()
            return Attempt(delivered=False, response_code=None)
        attempt = await send(self._http_client, job.delivery, secret, self._clock.now())
        answered = "unanswered" if attempt.response_code is None else "refused"
        metrics.WEBHOOK_ATTEMPTS.labels("delivered" if attempt.delivered else answered).inc()
        return attempt

    async def _record(self, outcomes: list[Outcome]) -> list[None]:
        await deliveries.record(self._db, outcomes)
        return [None] * len(outcomes)
