"""The dispatcher: sends the webhooks that are due and records how each attempt ended."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Collection, Sequence
from functools import partial
from typing import Final

from msgspec import structs
from sqlalchemy import select

from guichet import metrics
from guichet.clock import DAY, SECOND, Instant, later
from guichet.context import AppContext
from guichet.db.batching import GATHERED_WITHIN
from guichet.db.engine import Reader, require
from guichet.db.errors import StorageError
from guichet.db.queues.fair_share import FairShare
from guichet.db.queues.work_queue import Claim
from guichet.db.sql_functions import is_listed
from guichet.db.tables import payments
from guichet.domain.events import Delivery, retry_delay
from guichet.domain.ids import DeliveryId
from guichet.domain.sandbox_scenarios import scenario_in
from guichet.http_client import HttpClient
from guichet.logs import log
from guichet.merchants.vault import UnreadableSecret
from guichet.webhooks import deliveries
from guichet.webhooks.deliveries import DueDelivery, EndedAttempt
from guichet.webhooks.sender import Attempt, send

#: Attempts at once of one process.
SLOTS: Final = 512
#: Attempts at once for one merchant whose server answers, and towards one destination that merchants share.
PER_MERCHANT: Final = 144
PER_DESTINATION: Final = 144
#: Attempts of one claim at most. All may be of one merchant or destination, which must not pass its limit by it.
CLAIM_SIZE: Final = PER_MERCHANT // 2
#: Results recorded by one transaction; on SQLite each holds the event loop for about ten microseconds.
RECORDED_TOGETHER: Final = 128
#: Attempts that failed through our own fault do not count while the event is younger than this, and are made again
#: after OWN_FAULT_PAUSE.
UNCOUNTED_FOR: Final = DAY
OWN_FAULT_PAUSE: Final = 30 * SECOND
_PROVIDER_DATA: Final = select(payments.c.id, payments.c.provider_data).where(is_listed(payments.c.id, "ids"))


class DeliveryLimits:
    """Attempts at once: the share of each merchant, and a limit for each destination."""

    def __init__(self) -> None:
        #: Attempts that ended and are not recorded yet.
        self.unrecorded = 0
        self.share = FairShare(SLOTS, PER_MERCHANT)
        self._destinations: Counter[str] = Counter()
        for kind in self.share.running():
            metrics.WEBHOOK_SLOTS.labels(kind).set_function(partial(self._running, kind))

    def _running(self, kind: str) -> int:
        return self.share.running()[kind]

    @property
    def claim_size(self) -> int:
        return min(CLAIM_SIZE, SLOTS - self.unrecorded)

    def saturated(self) -> list[str]:
        most = PER_DESTINATION - CLAIM_SIZE
        return [destination for destination, load in self._destinations.items() if load > most]

    def reserve(self, delivery: Delivery) -> bool:
        """Whether its first attempt may start without a claim; then it counts, until `release`."""
        load = self._destinations[delivery.destination]
        if load >= PER_DESTINATION - CLAIM_SIZE or self.unrecorded >= SLOTS - CLAIM_SIZE:
            return False
        if not self.share.reserve(str(delivery.merchant_id)):
            return False
        self._destinations[delivery.destination] = load + 1
        return True

    def release(self, delivery: Delivery) -> None:
        self.share.ended(str(delivery.merchant_id))
        self._destinations[delivery.destination] -= 1
        if not self._destinations[delivery.destination]:
            del self._destinations[delivery.destination]

    def is_saturated(self, job: DueDelivery) -> bool:
        return self.share.is_full(str(job.delivery.merchant_id))

    def started(self, job: DueDelivery) -> None:
        self.share.started(str(job.delivery.merchant_id))
        self._destinations[job.delivery.destination] += 1

    def ended(self, job: DueDelivery) -> None:
        self.release(job.delivery)


class DeliveryJobs:
    """The worker's queue of webhooks (see `worker/queue_loop.py`): one attempt at each delivery that is due."""

    def __init__(self, ctx: AppContext, http_client: HttpClient) -> None:
        self._ctx = ctx
        self._http_client = http_client
        self._queue = deliveries.delivery_queue()
        self.limits = DeliveryLimits()
        #: Claimed attempts that were not made, and could not be released because the database did not answer.
        self._abandoned: list[Delivery] = []
        self._failures = metrics.LOOP_FAILURES.labels("deliveries", "item")
        #: Attempts that count and are to be recorded.
        self._ended: list[EndedAttempt] = []
        self._is_recording = False

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Collection[str]) -> Claim[DueDelivery]:
        await self._release_abandoned(now)
        claim = await self._queue.claim(self._ctx.db, now, until, most, self.limits.share.shares(), saturated)
        return Claim(await self._with_contents(claim.jobs, now) if claim.jobs else (), claim.next_due)

    async def reserved_contents(self, reserved: Sequence[Delivery]) -> Sequence[DueDelivery]:
        """What `claim` would have returned for these deliveries, without those whose lease ended during a long commit:
        they are due in the queue. The places reserved for them are released, for the loop counts what it starts."""
        now = self._ctx.clock.now()
        try:
            unexpired = [delivery for delivery in reserved if require(delivery.next_attempt_at) > now]
            return await self._with_contents(unexpired, now) if unexpired else ()
        finally:
            for delivery in reserved:
                self.limits.release(delivery)

    async def _with_contents(self, claimed: Sequence[Delivery], now: Instant) -> Sequence[DueDelivery]:
        try:
            return await deliveries.with_contents(self._ctx.db, claimed, now)
        except StorageError:
            self._abandoned += claimed
            raise

    async def _release_abandoned(self, now: Instant) -> None:
        if self._abandoned:
            await deliveries.release_claims(self._ctx.db, self._abandoned, now)
            self._abandoned = []

    async def work(self, job: DueDelivery) -> Awaitable[None] | None:
        """Makes the attempt. What is returned records it, or releases its claim: that keeps nobody's server busy."""
        began = time.perf_counter()
        attempt = await self._send(job)
        now = self._ctx.clock.now()
        delivery = job.delivery
        if not attempt.own_fault:
            merchant = str(delivery.merchant_id)
            self.limits.share.learn(merchant, success=attempt.delivered, timed_out=attempt.timed_out)
        elif now < later(delivery.created_at, UNCOUNTED_FOR):
            return self._release_claim(delivery, attempt, now)
        duration = round((time.perf_counter() - began) * SECOND)
        next_due = None if attempt.delivered else _next_due(delivery, now)
        self._ended.append(EndedAttempt(delivery, attempt, now, duration, next_due))
        self.limits.unrecorded = len(self._ended)
        return None if self._is_recording else self._record_ended()

    async def _record_ended(self) -> None:
        """Records what has ended, and what ends during a pause: one of the jobs does it for all. The pause delays
        nothing but a payment's second event."""
        self._is_recording = True
        try:
            while self._ended:
                if len(self._ended) < RECORDED_TOGETHER:
                    await asyncio.sleep(GATHERED_WITHIN)
                batch, self._ended = self._ended[:RECORDED_TOGETHER], self._ended[RECORDED_TOGETHER:]
                await self._record(batch)
                self.limits.unrecorded = len(self._ended)
        finally:
            self._is_recording = False

    async def _record(self, batch: Sequence[EndedAttempt]) -> None:
        try:
            twice = await _comes_twice(self._ctx.db, [ended.delivery for ended in batch if ended.attempt.delivered])
            recorded = [_repeated(ended) if ended.delivery.id in twice else ended for ended in batch]
            await deliveries.record(self._ctx.db, recorded)
        except Exception as error:  # Whatever it is: the leases run out, and all of them are due again.
            self._failures.inc(len(batch))
            log.error("worker.item_failed", loop="deliveries", items=len(batch), error=repr(error))
        else:
            for ended in batch:
                _log(ended)

    async def _release_claim(self, delivery: Delivery, attempt: Attempt, now: Instant) -> None:
        due = now if attempt.stopped else later(now, OWN_FAULT_PAUSE)
        try:
            await deliveries.release_claims(self._ctx.db, [delivery], due)
        except StorageError:
            self._abandoned.append(delivery)
            raise
        log.warning("delivery.not_sent", delivery=delivery.reference, webhook=delivery.event, stopped=attempt.stopped)

    async def _send(self, job: DueDelivery) -> Attempt:
        try:
            secrets = [self._ctx.vault.decrypt(secret) for secret in job.secrets]
        except UnreadableSecret as error:
            log.error("delivery.unsigned", delivery=job.delivery.reference, error=str(error))
            metrics.WEBHOOK_ATTEMPTS.labels("unsigned").inc()
            return Attempt(delivered=False, response_code=None, own_fault=True, error="own_fault")
        attempt = await send(self._http_client, job.delivery, job.body, secrets, self._ctx.clock.now())
        metrics.WEBHOOK_ATTEMPTS.labels(_metric(attempt)).inc()
        return attempt


async def _comes_twice(db: Reader, delivered: Sequence[Delivery]) -> set[DeliveryId]:
    """Which of these, which were just acknowledged, are sent once more as if the answer had been lost. One look-up by
    primary keys for the first attempts at events of test payments; live deliveries ask nothing."""
    first = {
        delivery.id: delivery.payment_id for delivery in delivered if delivery.env == "test" and delivery.attempts == 1
    }
    ids = sorted({payment_id for payment_id in first.values() if payment_id is not None})
    if not ids:
        return set()
    rows = await db.all(_PROVIDER_DATA, ids=json.dumps(ids))
    twice = {payment_id for payment_id, data in rows if scenario_in(data) == "webhook_twice"}
    return {delivery_id for delivery_id, payment_id in first.items() if payment_id in twice}


def _repeated(ended: EndedAttempt) -> EndedAttempt:
    """Sent again although it was acknowledged."""
    attempt = structs.replace(ended.attempt, delivered=False)
    return structs.replace(ended, attempt=attempt, next_due=_next_due(ended.delivery, ended.ended_at))


def _next_due(delivery: Delivery, ended_at: Instant) -> Instant | None:
    delay = retry_delay(delivery.attempts)
    return None if delay is None else later(ended_at, delay * SECOND)


def _log(ended: EndedAttempt) -> None:
    delivery, attempt = ended.delivery, ended.attempt
    facts = {"delivery": delivery.reference, "webhook": delivery.event, "attempt": delivery.attempts}
    if attempt.delivered:
        log.info("delivery.success", **facts, status=attempt.response_code)
    else:
        delay = retry_delay(delivery.attempts)
        log.warning("delivery.failed", **facts, status=attempt.response_code, next_in_seconds=delay)


def _metric(attempt: Attempt) -> str:
    if attempt.delivered:
        return "delivered"
    if attempt.own_fault:
        return "own_fault"
    return "unanswered" if attempt.response_code is None else "refused"
