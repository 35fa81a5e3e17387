"""Webhooks that come twice, or late, because the payment was made with such a `test_scenario`."""

import json

from tests.fakes.certificates import CertificateAuthority
from tests.service_fixture import ServiceFixture
from tests.webhooks.receivers import delivery_log, event, is_genuine, merchant_with_endpoint, receiver, status


async def test_a_webhook_comes_twice(service: ServiceFixture, authority: CertificateAuthority) -> None:
    async with receiver(authority, status(200)) as server:
        merchant, secret = await merchant_with_endpoint(service, server)
        payment = await merchant.pay("0000", test_scenario="webhook_twice")
        await merchant.pay("0000")
        await service.run_worker()
        assert len(server.received) == 2
        log = sorted((each["status"], each["response_code"]) for each in await delivery_log(merchant))
        assert log == [("pending", 200), ("success", 200)]
        await service.run_worker(9)
        assert len(server.received) == 2
        await service.run_worker(1)
        again = server.received[2]
        assert again.body in [each.body for each in server.received[:2]]
        assert json.loads(again.body)["data"]["reference"] == payment["reference"]
        assert json.loads(again.body)["id"] == again.headers["x-service-delivery"]
        assert is_genuine(again, secret, service.clock.now() // 1_000_000)
        await merchant.post(f"/payments/{payment['reference']}/refund")
        await service.run_worker()
        await service.run_worker(10)
        refunding = sorted(event(each) for each in server.received[3:])
        assert refunding == ["payment.refunded"] * 2 + ["refund.succeeded"] * 2
        await service.run_worker(3600)
        assert len(server.received) == 7
    assert {each["status"] for each in await delivery_log(merchant)} == {"success"}


async def test_a_refused_webhook_is_tried_as_ever(service: ServiceFixture, authority: CertificateAuthority) -> None:
    async with receiver(authority, status(500)) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        await merchant.pay("0000", test_scenario="webhook_twice")
        await service.run_worker()
        for delay in (10, 60, 300, 1800):
            await service.run_worker(delay)
        assert len(server.received) == 5
    [logged] = await delivery_log(merchant)
    assert (logged["status"], logged["attempts"]) == ("failed", 5)


async def test_newer_events_overtake_older_ones(service: ServiceFixture, authority: CertificateAuthority) -> None:
    async with receiver(authority, status(200)) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        payment = await merchant.pay("0000", test_scenario="webhook_out_of_order")
        await service.run_worker()
        assert server.received == []
        await merchant.post(f"/payments/{payment['reference']}/refund")
        await service.run_worker(59)
        assert [event(each) for each in server.received] == ["payment.refunded"]
        await service.run_worker(60)
        assert sorted(event(each) for each in server.received[1:]) == ["payment.succeeded", "refund.succeeded"]
    assert {each["status"] for each in await delivery_log(merchant)} == {"success"}
