"""Where an event goes and with which secret it is signed; private addresses are refused (D38)."""

import asyncio
import json
from dataclasses import replace

from guichet.clock import SECOND
from guichet.domain.events import ANSWER_TIMEOUT
from guichet.settings import Settings
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.clock import ManualClock
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.invariants import check_books
from tests.service_fixture import ServiceFixture, open_service
from tests.webhooks.receivers import (
    DELAYS,
    delivery_log,
    event,
    in_turn,
    is_genuine,
    merchant_with_endpoint,
    receiver,
    status,
)


async def test_a_callback_url_replaces_the_endpoint_of_the_account(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    async with receiver(authority) as account, receiver(authority) as own:
        merchant, secret = await merchant_with_endpoint(service, account)
        payment = await merchant.pay("0000", callback_url=own.url())
        await merchant.pay("0000")
        await service.run_worker()
        await merchant.post(f"/payments/{payment['reference']}/refund")
        await merchant.post("/webhooks/test")
        await service.run_worker()
    assert [event(request) for request in own.received] == ["payment.succeeded", "refund.succeeded", "payment.refunded"]
    assert [event(request) for request in account.received] == ["payment.succeeded", "webhook.test"]
    assert all(is_genuine(request, secret, service.clock.now() // SECOND) for request in own.received)


async def test_a_rotated_secret_signs_from_the_next_attempt(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority, in_turn(status(500), status(200))) as server:
        merchant, old = await merchant_with_endpoint(service, server)
        await merchant.pay("0000")
        await service.run_worker()
        rotated = await merchant.put("/webhooks/endpoint", {"url": server.url(), "rotate_secret": True})
        new = rotated.data["secret"]
        assert new != old
        await service.run_worker(10)
    first, second = server.received
    now = service.clock.now() // SECOND
    assert is_genuine(first, old, now)
    assert is_genuine(second, new, now)
    assert not is_genuine(second, old, now)
    assert first.body == second.body


async def test_disabling_the_endpoint_fails_its_own_waiting_deliveries_only(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    async with (
        receiver(authority, status(500)) as account,
        receiver(authority, in_turn(status(500), status(200))) as own,
    ):
        merchant, _ = await merchant_with_endpoint(service, account)
        other, _ = await merchant_with_endpoint(service, account)

        async def states() -> dict[str, str]:
            return {each["url"]: each["status"] for each in await delivery_log(merchant)}

        await merchant.pay("0000")
        await merchant.pay("0000", callback_url=own.url())
        await other.pay("0000")
        await service.run_worker()
        assert (await merchant.put("/webhooks/endpoint", {"url": None})).data["url"] is None
        assert await states() == {account.url(): "failed", own.url(): "pending"}
        await service.run_worker(10)
        assert await states() == {account.url(): "failed", own.url(): "success"}
        assert [each["status"] for each in await delivery_log(other)] == ["pending"]
        await merchant.pay("0000")
        await service.run_worker()
        assert len(await delivery_log(merchant)) == 2, "without an address nothing is queued"
    assert len(account.received) == 3


async def test_an_attempt_goes_to_the_present_address(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority, in_turn(status(500))) as old, receiver(authority) as new:
        merchant, _ = await merchant_with_endpoint(service, old)
        await merchant.pay("0000")
        await service.run_worker()
        await merchant.put("/webhooks/endpoint", {"url": new.url()})
        await merchant.pay("0000")
        await service.run_worker(10)
    assert (len(old.received), len(new.received)) == (1, 2)


async def test_a_test_event_is_sent_or_reported_as_unsent(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    async with receiver(authority) as server:
        merchant, secret = await merchant_with_endpoint(service, server)
        sent = (await merchant.post("/webhooks/test")).data
        await service.run_worker()
        alone = await service.merchant()
        answer = (await alone.post("/webhooks/test")).data
    (request,) = server.received
    body = json.loads(request.body)
    assert sent == {"sent": True, "delivery_id": body["id"], "url": server.url()}
    assert (body["event"], body["livemode"], set(body["data"])) == ("webhook.test", False, {"message"})
    assert is_genuine(request, secret, service.clock.now() // SECOND)
    assert [(each["id"], each["status"]) for each in await delivery_log(merchant)] == [(body["id"], "success")]
    assert (answer["sent"], answer["delivery_id"], answer["url"]) == (False, None, None)
    assert answer["message"]


async def test_each_environment_has_its_own_endpoint_secret_and_log(
    settings: Settings, authority: CertificateAuthority
) -> None:
    operator = ScriptedProvider()
    operator.script("status", done)
    async with (
        open_service(settings, accounts={"op": operator}, routes={"mtn": ["op"]}) as service,
        receiver(authority) as server,
    ):
        merchant, test_secret = await merchant_with_endpoint(service, server)
        live_secret = (await merchant.live.put("/webhooks/endpoint", {"url": server.url()})).data["secret"]
        await merchant.live.pay()
        await merchant.pay("0000")
        await service.run_worker(10)
        now = service.clock.now() // SECOND
        assert sorted(json.loads(request.body)["livemode"] for request in server.received) == [False, True]
        for request in server.received:
            live = json.loads(request.body)["livemode"]
            assert is_genuine(request, live_secret if live else test_secret, now)
            assert not is_genuine(request, test_secret if live else live_secret, now)
        assert len(await delivery_log(merchant)) == len(await delivery_log(merchant.live)) == 1
        await check_books(service.ctx.db, events_queued=True)


async def test_in_production_only_public_addresses_are_contacted(
    sqlite_settings: Settings, authority: CertificateAuthority
) -> None:
    production = replace(
        sqlite_settings, profile="production", public_url="https://pay.test", egress_ca_file=authority.file
    )
    async with open_service(production, ManualClock()) as service, receiver(authority) as server:
        merchant = await service.merchant()
        hosts = ["127.0.0.1", "localhost", "[::1]", "127.1.2.3", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0"]
        urls = [server.url(host) for host in hosts]
        urls += [f"https://{host}/hook" for host in ("10.0.0.1", "192.168.1.1", "169.254.169.254", "[fd00::1]")]
        for url in urls:
            answer = await merchant.put("/webhooks/endpoint", {"url": url})
            if answer.status == 200:
                await merchant.post("/webhooks/test")
        async with asyncio.timeout(ANSWER_TIMEOUT):
            await service.run_worker()
        entries = await delivery_log(merchant)
        assert len(entries) >= 8
        assert {(each["status"], each["attempts"], each["response_code"]) for each in entries} == {("pending", 1, None)}
        for delay in DELAYS:
            await service.run_worker(delay)
        assert {each["status"] for each in await delivery_log(merchant)} == {"failed"}
    assert server.connections == 0
