"""Events of one payment keep their order; a slow or dead server delays no other."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from guichet.db.queues.fair_share import FIRST_WINDOW
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import ReceivedRequest, ScriptedServer, hangs
from tests.fakes.passing_time import pass_seconds
from tests.patience import PATIENCE
from tests.service_fixture import ServiceFixture
from tests.webhooks.receivers import delivery_log, event, merchant_with_endpoint, receiver, status


@pytest.mark.both_databases
async def test_first_attempts_of_one_payment_keep_their_order(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    under_way = 0

    async def lingers(writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        nonlocal under_way
        under_way += 1
        assert under_way == 1, "an event left before the one before it was answered"
        await asyncio.sleep(0.05)
        under_way -= 1
        await status(500 if event(request) == "refund.succeeded" else 200)(writer, request)

    async with receiver(authority, lingers) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        payment = await merchant.pay("0000")
        service.worker.start()
        await until(lambda: len(server.received) == 1)
        await merchant.post(f"/payments/{payment['reference']}/refund")
        await until(lambda: len(server.received) == 3)
        await asyncio.sleep(0.1)
        await service.worker.stop()
    assert [event(request) for request in server.received] == [
        "payment.succeeded",
        "refund.succeeded",
        "payment.refunded",
    ]
    assert [each["status"] for each in await delivery_log(merchant)] == ["success", "pending", "success"]


async def test_a_silent_receiver_delays_only_the_events_of_its_payment(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    """Within the ten seconds of an attempt."""
    service = sqlite_service
    async with receiver(authority, hangs) as silent, receiver(authority) as account:
        merchant, _ = await merchant_with_endpoint(service, account)
        held = await merchant.pay("0000", callback_url=silent.url())
        service.worker.start()
        await until(lambda: len(silent.received) == 1)
        await merchant.post(f"/payments/{held['reference']}/refund")
        free = await merchant.pay("0000")
        await until(lambda: len(account.received) == 1)
        await merchant.post(f"/payments/{free['reference']}/refund")
        await until(lambda: len(account.received) == 3)
        assert len(silent.received) == 1, "not after the ten seconds of the silent one"
        await pass_seconds(10)
        await until(lambda: len(silent.received) == 2)
        first = (await delivery_log(merchant))[0]
        assert (first["status"], first["attempts"], first["response_code"]) == ("pending", 1, None)
        await service.worker.stop()
    assert [event(request) for request in silent.received] == ["payment.succeeded", "refund.succeeded"]


async def test_a_dead_endpoint_with_a_long_queue_delays_no_other_endpoint(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority, hangs) as dead, receiver(authority) as fast:
        sad, _ = await merchant_with_endpoint(service, dead)
        glad, _ = await merchant_with_endpoint(service, fast)
        for _ in range(10):
            await asyncio.gather(*(sad.post("/webhooks/test") for _ in range(50)))
        service.worker.start()
        await until(lambda: len(dead.received) >= FIRST_WINDOW)
        for number in range(1, 6):
            await glad.post("/webhooks/test")
            await until(partial(arrived, fast, number))
        await asyncio.sleep(0.2)
        assert len(dead.received) == FIRST_WINDOW, "before its ten seconds are over; its window does not grow"
        await service.worker.stop()
    assert [each["status"] for each in await delivery_log(glad)] == ["success"] * 5


def arrived(server: ScriptedServer, wanted: int) -> bool:
    return len(server.received) == wanted


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not met():
            await asyncio.sleep(0.005)
