"""Attempts to deliver an event: what is sent, when it is sent again, and which answer is a success."""

import asyncio
import json
import socket

import pytest

from guichet.clock import SECOND
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import ReceivedRequest, answers, hangs_up
from tests.invariants import check_books
from tests.service_fixture import ServiceFixture
from tests.webhooks.receivers import (
    DELAYS,
    by_path,
    delivery_log,
    event,
    in_turn,
    is_genuine,
    merchant_with_endpoint,
    receiver,
    status,
)


@pytest.mark.both_databases
async def test_a_payment_event_is_sent_at_once_in_the_documented_form(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    async with receiver(authority) as server:
        merchant, secret = await merchant_with_endpoint(service, server)
        payment = await merchant.pay("0000", external_id="o-1", metadata={"b": 1.50, "a": [None]})
        await service.run_worker()
    (request,) = server.received
    assert request.line == "POST /hook HTTP/1.1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"].endswith("/1.0")
    assert event(request) == "payment.succeeded"
    assert is_genuine(request, secret, service.clock.now() // SECOND)
    assert not is_genuine(request, secret.removeprefix("whsec_"), service.clock.now() // SECOND)
    body = json.loads(request.body)
    assert set(body) == {"id", "event", "livemode", "created_at", "data"}
    assert (body["id"], body["event"]) == (request.headers["x-service-delivery"], "payment.succeeded")
    assert body["livemode"] is False
    assert (body["data"]["reference"], body["data"]["status"]) == (payment["reference"], "succeeded")
    assert {"country", "country_code"} <= set(body["data"]["payment_mode"])
    assert b'"metadata":{"b":1.5,"a":[null]}' in request.body
    (entry,) = await delivery_log(merchant)
    assert entry == {
        "id": body["id"],
        "event": "payment.succeeded",
        "url": server.url(),
        "status": "success",
        "attempts": 1,
        "response_code": 200,
        "created_at": body["created_at"],
        "delivered_at": entry["delivered_at"],
        "payment_reference": payment["reference"],
        "error": None,
        "next_attempt_at": None,
    }
    assert entry["delivered_at"] is not None
    await check_books(service.ctx.db, events_queued=True)


async def test_attempts_come_at_exactly_the_delays_of_the_contract(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    """Counted from the end of the previous attempt: the receiver takes three seconds to refuse."""
    ended: list[int] = []

    async def takes_three_seconds(writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        service.clock.advance(3)
        ended.append(service.clock.now())
        await status(503)(writer, request)

    async with receiver(authority, takes_three_seconds) as server:
        merchant, secret = await merchant_with_endpoint(service, server)
        await merchant.pay("0000")
        await service.run_worker()
        for number, delay in enumerate(DELAYS, 1):
            (entry,) = await delivery_log(merchant)
            assert (entry["status"], entry["attempts"], entry["response_code"]) == ("pending", number, 503)
            await service.run_worker(delay - 0.000001)
            assert len(server.received) == number, f"attempt {number + 1} came before its {delay} s"
            await service.run_worker(0.000001)
            assert len(server.received) == number + 1, f"attempt {number + 1} did not come after {delay} s"
            request, now = server.received[-1], ended[-1] // SECOND
            assert is_genuine(request, secret, now)
            assert int(request.headers["x-service-signature"][2:].split(",")[0]) >= now - 3
        (entry,) = await delivery_log(merchant)
        assert (entry["status"], entry["attempts"], entry["response_code"]) == ("failed", 5, 503)
        assert entry["delivered_at"] is None
        await service.run_worker(7 * 24 * 3600)
    assert len(server.received) == 5
    assert len({request.body for request in server.received}) == 1
    assert len({request.headers["x-service-delivery"] for request in server.received}) == 1
    assert len({request.headers["x-service-signature"] for request in server.received}) == 5


async def test_a_receiver_that_recovers_ends_the_retries(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority, in_turn(status(500), hangs_up, status(204))) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        await merchant.pay("0003")
        await service.run_worker()
        assert [(each["event"], each["response_code"]) for each in await delivery_log(merchant)] == [
            ("payment.failed", 500)
        ]
        await service.run_worker(10)
        assert (await delivery_log(merchant))[0]["response_code"] is None
        await service.run_worker(60)
        (entry,) = await delivery_log(merchant)
        assert (entry["status"], entry["attempts"], entry["response_code"]) == ("success", 3, 204)
        await service.run_worker(24 * 3600)
    assert len(server.received) == 3


async def test_only_a_2xx_acknowledges_a_delivery(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    codes = [200, 201, 202, 204, 206, 226, 299, 301, 302, 307, 400, 404, 409, 410, 418, 429, 500, 503]
    async with receiver(authority, by_path) as server:
        merchant = await service.merchant()
        for code in codes:
            await merchant.pay("0000", callback_url=server.url(path=f"/{code}"))
        await service.run_worker()
    entries = {int(each["url"].rpartition("/")[2]): each for each in await delivery_log(merchant)}
    assert sorted(entries) == codes
    for code, entry in entries.items():
        assert entry["response_code"] == code
        assert entry["status"] == ("success" if code < 300 else "pending")
        assert entry["attempts"] == 1


async def test_a_redirect_is_not_followed(sqlite_service: ServiceFixture, authority: CertificateAuthority) -> None:
    service = sqlite_service
    async with (
        receiver(authority) as elsewhere,
        receiver(authority, status(307, f"Location: {elsewhere.url()}")) as server,
    ):
        merchant, _ = await merchant_with_endpoint(service, server)
        await merchant.pay("0000")
        await service.run_worker()
        assert (await delivery_log(merchant))[0]["response_code"] == 307
    assert elsewhere.connections == 0


@pytest.mark.parametrize("fault", ["hangs up", "refuses", "is deaf", "is not known", "speaks no HTTP"])
async def test_a_receiver_without_a_response_has_no_response_code(
    sqlite_service: ServiceFixture, authority: CertificateAuthority, fault: str
) -> None:
    service = sqlite_service
    script = answers(b"SSH-2.0-OpenSSH_9.2\r\n", hang_up=True) if fault == "speaks no HTTP" else hangs_up
    async with receiver(authority, script) as server:
        server.deaf = fault == "is deaf"
        url = server.url()
        if fault == "refuses":
            with socket.create_server(("127.0.0.1", 0)) as reserved:
                url = f"https://localhost:{reserved.getsockname()[1]}/hook"
        if fault == "is not known":
            url = "https://nobody.invalid/hook"
        merchant = await service.merchant()
        await merchant.put("/webhooks/endpoint", {"url": url})
        await merchant.pay("0000")
        await service.run_worker()
        (entry,) = await delivery_log(merchant)
    assert (entry["status"], entry["attempts"], entry["response_code"]) == ("pending", 1, None)
