"""First attempts that the worker of the process makes right after the settlement, without a claim."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from guichet.clock import SECOND, Instant, later
from guichet.db.errors import ConnectionLost
from guichet.db.queues.fair_share import Shares
from guichet.domain.events import Delivery
from guichet.payments import polling
from guichet.webhooks import deliveries
from guichet.webhooks.dispatcher import PER_MERCHANT, DeliveryJobs
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import ScriptedServer
from tests.service_fixture import MerchantClient, ServiceFixture
from tests.webhooks.receivers import delivery_log, event, merchant_with_endpoint, receiver, status

AT_ONCE = "0000"
#: A claim of everything.
ALL = Shares({}, 9, [], 0)
NOTHING = {"answering": 0, "unproven": 0, "in_timeout": 0}


def jobs(service: ServiceFixture) -> DeliveryJobs:
    found = service.worker.deliveries._jobs
    assert isinstance(found, DeliveryJobs)
    return found


def answers_always(service: ServiceFixture, merchant: MerchantClient) -> None:
    """What the worker learns of a server that acknowledged many webhooks."""
    share, owner = jobs(service).limits.share, str(merchant.id)
    share.started(owner)
    for _ in range(PER_MERCHANT):
        share.learn(owner, success=True, timed_out=False)
    share.ended(owner)


@contextmanager
def begun(service: ServiceFixture) -> Iterator[list[Delivery]]:
    """The worker runs here; what is handed to it."""
    handed: list[Delivery] = []
    sender = service.worker._first_attempts
    begin = sender.begin

    def noted(reserved: Sequence[Delivery]) -> None:
        handed.extend(reserved)
        begin(reserved)

    sender.begin = noted  # type: ignore[method-assign]
    service.ctx.hand_over.worker = sender
    yield handed
    service.ctx.hand_over.worker = None


async def claimed(service: ServiceFixture) -> Sequence[Delivery]:
    now = service.clock.now()
    return (await deliveries.delivery_queue().claim(service.ctx.db, now, later(now, 30 * SECOND), 9, ALL)).jobs


async def all_arrived(server: ScriptedServer, count: int) -> None:
    async with asyncio.timeout(30):
        while len(server.received) < count:
            await asyncio.sleep(0.01)


@pytest.mark.both_databases
async def test_a_payment_of_a_running_worker_is_settled_and_told_once(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    async with receiver(authority) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        answers_always(service, merchant)
        with begun(service) as handed:
            paid = await asyncio.gather(*(merchant.pay(AT_ONCE) for _ in range(20)))
            await all_arrived(server, 20)
            await service.worker.deliveries.idle()
        await service.run_worker(40)
        log = await delivery_log(merchant)
        seen = {(await merchant.get(f"/payments/{each['reference']}")).data["status"] for each in paid}
    assert len(handed) == 20, "none was claimed"
    assert seen == {"succeeded"}
    assert [(each["status"], each["attempts"]) for each in log] == [("success", 1)] * 20
    assert sorted(each.headers["x-service-delivery"] for each in server.received) == sorted(
        each.reference for each in handed
    )
    assert jobs(service).limits.share.running() == NOTHING


@pytest.mark.both_databases
async def test_an_attempt_that_dies_with_its_process_counts_and_is_made_again(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    class Dies:
        def reserve(self, delivery: Delivery) -> Instant | None:
            return later(service.clock.now(), 30 * SECOND)

        def release(self, reserved: Sequence[Delivery]) -> None: ...

        def begin(self, reserved: Sequence[Delivery]) -> None: ...

    async with receiver(authority) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        service.ctx.hand_over.worker = Dies()
        await merchant.pay(AT_ONCE)
        await asyncio.gather(*service.ctx.awaited_polls)
        service.ctx.hand_over.worker = None
        await service.run_worker(29)
        assert server.received == [], "it belongs to the process that died"
        await service.run_worker(2)
        (entry,) = await delivery_log(merchant)
    assert (entry["status"], entry["attempts"], len(server.received)) == ("success", 2, 1)


async def test_a_test_payment_whose_process_dies_is_settled_by_the_next_one(
    sqlite_service: ServiceFixture, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = sqlite_service
    async with receiver(authority) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        monkeypatch.setattr(polling, "poll_soon", lambda *_: None)
        with begun(service):
            await merchant.pay(AT_ONCE)
        await service.run_worker()
        assert server.received == [], "as after a claim"
        await service.run_worker(60)
        assert [event(each) for each in server.received] == ["payment.succeeded"]


async def test_a_failure_is_tried_again_like_any_other(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority, status(500)) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        answers_always(service, merchant)
        with begun(service) as handed:
            await merchant.pay(AT_ONCE)
            await all_arrived(server, 1)
            await service.worker.deliveries.idle()
        await service.run_worker(10)
        (entry,) = await delivery_log(merchant)
    assert (len(handed), entry["attempts"], len(server.received)) == (1, 2, 2)


async def test_events_after_the_first_one_wait_their_turn(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    """Only what ends a payment's wait has nothing before it (D35)."""
    service = sqlite_service
    async with receiver(authority) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        answers_always(service, merchant)
        with begun(service) as handed:
            paid = await merchant.pay(AT_ONCE)
            await all_arrived(server, 1)
            await service.worker.deliveries.idle()
            await merchant.post(f"/payments/{paid['reference']}/refund", {"reason": "r"})
            await service.run_worker()
    assert event(server.received[0]) == "payment.succeeded"
    assert [each.event for each in handed] == ["payment.succeeded"]
    assert len(server.received) > 1


async def test_unknown_slow_and_busy_receivers_wait_their_turn(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        await merchant.post("/webhooks/test")
        (waiting,) = await claimed(service)
    limits = jobs(service).limits
    assert not limits.reserve(waiting), "nobody knows whether it answers"
    answers_always(service, merchant)
    reserved = [limits.reserve(waiting) for _ in range(PER_MERCHANT)]
    assert reserved.count(True) == PER_MERCHANT // 2, "a claim finds the other half of the window"
    for _ in range(PER_MERCHANT // 2):
        limits.release(waiting)
    assert limits.share.running() == NOTHING
    limits.share.learn(str(merchant.id), success=False, timed_out=True)
    assert not limits.reserve(waiting)


async def test_a_transaction_that_fails_keeps_no_place(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        await merchant.post("/webhooks/test")
        (waiting,) = await claimed(service)
    answers_always(service, merchant)

    def fails() -> None:
        with service.ctx.hand_over.after_commit() as batch:
            assert batch.reserve(waiting).attempts == 1
            raise RuntimeError

    with begun(service) as handed, pytest.raises(RuntimeError):
        fails()
    assert (handed, jobs(service).limits.share.running()) == ([], NOTHING)


async def test_only_what_is_left_to_the_queue_wakes_its_loop(sqlite_service: ServiceFixture) -> None:
    service = sqlite_service
    wake = service.ctx.wakeups.deliveries
    without_address = await service.merchant()
    wake.clear()
    with begun(service):
        paid = await without_address.pay(AT_ONCE)
        await asyncio.gather(*service.ctx.awaited_polls)
    assert not wake.is_set()
    assert (await without_address.get(f"/payments/{paid['reference']}")).data["status"] == "succeeded"

    def loses_its_answer() -> None:
        with service.ctx.hand_over.after_commit():
            raise ConnectionLost("after the commit")

    with pytest.raises(ConnectionLost):
        loses_its_answer()
    assert wake.is_set()
