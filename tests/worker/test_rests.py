"""How often a queue is claimed: what becomes due within a rest is claimed together, what is due already at once."""

import asyncio
from collections.abc import Collection

from guichet.clock import Instant
from guichet.db.queues.work_queue import Claim
from guichet.worker.queue_loop import PartitionLimits, QueueLoop
from guichet.worker.worker import Worker
from tests.patience import PATIENCE
from tests.service_fixture import ServiceFixture


class _Jobs:
    """Hands out the jobs of `due`, three at a time, and says whether more are due."""

    def __init__(self, due: list[int]) -> None:
        self.due = due
        self.claims: list[list[int]] = []
        self.done: list[int] = []

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Collection[str]) -> Claim[int]:
        jobs, self.due = self.due[:3], self.due[3:]
        self.claims.append(jobs)
        return Claim(jobs, now if self.due else None)

    async def work(self, job: int) -> None:
        self.done.append(job)


async def test_ends_of_jobs_and_wake_ups_within_a_rest_make_no_claim_but_what_is_due_does(
    service: ServiceFixture,
) -> None:
    jobs, wake = _Jobs(list(range(8))), asyncio.Event()
    loop = QueueLoop("rests", wake, service.ctx.clock, jobs, PartitionLimits(lambda _: "", 128), rest=10 * PATIENCE)
    worker = Worker(service.ctx, service.ctx.http_client, loop)
    worker.loops = [loop]
    worker.start()
    async with asyncio.timeout(PATIENCE):
        while len(jobs.done) < 8:
            await asyncio.sleep(0)
    jobs.due = [8, 9]
    for _ in range(50):
        wake.set()
        await asyncio.sleep(0)
    await worker.stop(grace=0)
    assert jobs.claims == [[0, 1, 2], [3, 4, 5], [6, 7]]


async def test_what_becomes_due_within_a_rest_is_claimed_together_after_it(service: ServiceFixture) -> None:
    jobs, wake = _Jobs([0]), asyncio.Event()
    loop = QueueLoop("rests", wake, service.ctx.clock, jobs, PartitionLimits(lambda _: "", 128), rest=0.05)
    worker = Worker(service.ctx, service.ctx.http_client, loop)
    worker.loops = [loop]
    worker.start()
    async with asyncio.timeout(PATIENCE):
        while not jobs.done:
            await asyncio.sleep(0)
        for job in (1, 2):
            jobs.due.append(job)
            wake.set()
            await asyncio.sleep(0)
        while len(jobs.done) < 3:
            await asyncio.sleep(0)
    await worker.stop(grace=0)
    assert [claim for claim in jobs.claims if claim] == [[0], [1, 2]]
