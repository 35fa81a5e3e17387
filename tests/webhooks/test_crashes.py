"""A process that dies during an attempt: the attempt counts, and a late result changes nothing."""

from collections.abc import Sequence

import msgspec
import pytest

from guichet.clock import SECOND, later
from guichet.db.queues.fair_share import Shares
from guichet.domain.events import Delivery
from guichet.webhooks import deliveries
from guichet.webhooks.deliveries import EndedAttempt
from guichet.webhooks.lease_release import release_webhooks
from guichet.webhooks.sender import Attempt
from tests.fakes.certificates import CertificateAuthority
from tests.service_fixture import ServiceFixture
from tests.webhooks.receivers import DELAYS, delivery_log, merchant_with_endpoint, receiver, status


async def killed_between_claim_and_record(service: ServiceFixture) -> Sequence[Delivery]:
    """What a process that dies during an attempt leaves behind: a claim. Its lease has run out afterwards."""
    now = service.clock.now()
    claim = await deliveries.delivery_queue().claim(
        service.ctx.db, now, later(now, 30 * SECOND), 10, Shares({}, 10, [], 0)
    )
    service.clock.advance(30)
    return claim.jobs


@pytest.mark.both_databases
@pytest.mark.parametrize("deaths", [0, 1, 4, 5])
async def test_a_delivery_is_sent_at_most_five_times_despite_crashes(
    service: ServiceFixture, authority: CertificateAuthority, deaths: int
) -> None:
    async with receiver(authority, status(500)) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        await merchant.post("/webhooks/test")
        for death in range(deaths):
            assert len(await killed_between_claim_and_record(service)) == (1 if death < 5 else 0)
        for delay in (0, *DELAYS, 3600):
            await service.run_worker(delay)
        (entry,) = await delivery_log(merchant)
    assert (entry["status"], entry["attempts"]) == ("failed", 5)
    assert len(server.received) == max(0, 5 - deaths), "a send that may have happened counts"


async def test_a_result_after_the_end_of_the_lease_is_ignored(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority, status(500)) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        await merchant.post("/webhooks/test")
        (slow,) = await killed_between_claim_and_record(service)
        (fast,) = await killed_between_claim_and_record(service)
        now = service.clock.now()
        due = later(now, 10 * SECOND)
        too_late = EndedAttempt(slow, Attempt(False, 500), now, duration=5, next_due=due)
        await deliveries.record(service.ctx.db, [too_late])
        assert (await delivery_log(merchant))[0]["response_code"] is None, "the earlier attempt's failure came too late"
        await deliveries.record(service.ctx.db, [EndedAttempt(fast, Attempt(True, 200), now, duration=5)])
        await deliveries.record(service.ctx.db, [msgspec.structs.replace(too_late, next_due=None)])
        assert [(each["status"], each["response_code"]) for each in await delivery_log(merchant)] == [("success", 200)]


@pytest.mark.both_databases
async def test_a_start_releases_first_attempts_alone(service: ServiceFixture, authority: CertificateAuthority) -> None:
    """A service that dies at each start does not use up all attempts within seconds."""

    async def claimed() -> list[int]:
        now = service.clock.now()
        await release_webhooks(service.ctx.db, now)
        claim = await deliveries.delivery_queue().claim(
            service.ctx.db, now, later(now, 30 * SECOND), 9, Shares({}, 9, [], 0)
        )
        return [each.attempts for each in claim.jobs]

    async with receiver(authority, status(500)) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        await merchant.post("/webhooks/test")
        await service.run_worker()
        waiting = (await delivery_log(merchant))[0]
        await merchant.post("/webhooks/test")
        assert await claimed() == [1]
        assert await claimed() == [2], "the attempt that died counts"
        assert await claimed() == []
        assert (await delivery_log(merchant))[0] == waiting, "its delay has not passed"
    assert len(server.received) == 1
