"""One attempt at one delivery, against real HTTPS receivers that verify as the contract tells merchants to."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest
from msgspec import structs

from guichet.clock import SECOND, Instant, later
from guichet.domain.events import Delivery
from guichet.domain.ids import DeliveryId, MerchantId, PaymentId
from guichet.http_client import HttpClient
from guichet.webhooks.sender import Attempt, send, verify
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import Script, ScriptedServer, answers, drips, hangs, hangs_up
from tests.fakes.name_server import ScriptedResolver
from tests.fakes.passing_time import pass_seconds
from tests.patience import PATIENCE
from tests.webhooks.receivers import status

SECRET = "whsec_3nYv0cJm5fQz8rTb2kWx3nYv0cJm5fQz8rTb2kWx"
NOW = Instant(1_795_255_200 * SECOND + 999_999)
HOST = "shop.test"
SHORT = 1.0
BODY = json.dumps({"id": "d1", "data": {"description": "Café à emporter"}}, ensure_ascii=False)
DELIVERY = Delivery(
    id=DeliveryId(1),
    merchant_id=MerchantId(1),
    env="test",
    reference="0d4f4a52-6f7e-4a5b-9f6d-2f1f0f1a8f10",
    payment_id=PaymentId(1),
    event="payment.succeeded",
    target="account",
    url="https://shop.test/hook",
    destination=HOST,
    status="pending",
    attempts=1,
    response_code=None,
    created_at=NOW,
    delivered_at=None,
    last_attempt_at=None,
    next_attempt_at=None,
)


@pytest.fixture
async def http_client(authority: CertificateAuthority) -> AsyncIterator[HttpClient]:
    """127.0.0.2 counts as a public address, that of `shop.test`; `home.test` is private."""
    names = ScriptedResolver(shop_test=[["127.0.0.2"]], home_test=[["127.0.0.1"]])
    made = HttpClient(allow=[ip_network("127.0.0.2/32")], ca_file=authority.file, resolver=names)
    yield made
    await made.aclose()


def to(server: ScriptedServer, host: str = HOST) -> Delivery:
    return structs.replace(DELIVERY, url=server.url(host))


async def test_the_request_has_the_documented_headers_and_body(
    http_client: HttpClient, authority: CertificateAuthority
) -> None:
    async with ScriptedServer(tls=authority.server(HOST)) as server:
        attempt = await send(http_client, to(server), BODY.encode(), [SECRET], NOW)
    assert attempt == Attempt(delivered=True, response_code=200, answer=b"ok")
    (request,) = server.received
    assert request.line == "POST /hook HTTP/1.1"
    assert request.body == BODY.encode()
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == "Guichet-Webhooks/1.0"
    assert request.headers["x-service-event"] == "payment.succeeded"
    assert request.headers["x-service-delivery"] == DELIVERY.reference
    signature = request.headers["x-service-signature"]
    assert signature.startswith("t=1795255200,v1=")
    assert verify(SECRET, signature, request.body, now=1_795_255_200)
    assert not verify("whsec_other", signature, request.body, now=1_795_255_200)


async def test_each_attempt_is_signed_anew_over_the_same_bytes(
    http_client: HttpClient, authority: CertificateAuthority
) -> None:
    async with ScriptedServer(tls=authority.server(HOST)) as server:
        await send(http_client, to(server), BODY.encode(), [SECRET], NOW)
        await send(http_client, to(server), BODY.encode(), ["whsec_" + "r" * 40], later(NOW, 360 * SECOND))
    first, second = server.received
    assert (first.body, first.headers["x-service-delivery"]) == (second.body, second.headers["x-service-delivery"])
    assert verify("whsec_" + "r" * 40, second.headers["x-service-signature"], second.body, now=1_795_255_560)


@pytest.mark.parametrize(
    ("code", "delivered"),
    [
        (200, True),
        (201, True),
        (202, True),
        (204, True),
        (299, True),
        (300, False),
        (304, False),
        (400, False),
        (401, False),
        (404, False),
        (410, False),
        (429, False),
        (500, False),
        (503, False),
    ],
)
async def test_only_a_2xx_acknowledges(
    http_client: HttpClient, authority: CertificateAuthority, code: int, delivered: bool
) -> None:
    async with ScriptedServer(status(code), tls=authority.server(HOST)) as server:
        assert await send(http_client, to(server), BODY.encode(), [SECRET], NOW) == Attempt(
            delivered, code, error=None if delivered else "bad_status"
        )
    assert len(server.received) == 1


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_is_not_followed(
    http_client: HttpClient, authority: CertificateAuthority, code: int
) -> None:
    tls = authority.server(HOST)
    async with (
        ScriptedServer(tls=tls) as elsewhere,
        ScriptedServer(status(code, f"Location: {elsewhere.url(HOST)}"), tls=tls) as server,
    ):
        assert await send(http_client, to(server), BODY.encode(), [SECRET], NOW) == Attempt(
            delivered=False, response_code=code, error="bad_status"
        )
    assert elsewhere.connections == 0


async def test_a_receiver_that_hangs_up_gives_no_status(
    http_client: HttpClient, authority: CertificateAuthority
) -> None:
    async with ScriptedServer(hangs_up, tls=authority.server(HOST)) as server:
        assert await send(http_client, to(server), BODY.encode(), [SECRET], NOW) == Attempt(
            delivered=False, response_code=None, error="answer_lost"
        )
    assert len(server.received) == 1


async def test_a_receiver_that_hangs_gives_no_status(http_client: HttpClient, authority: CertificateAuthority) -> None:
    async with ScriptedServer(hangs, tls=authority.server(HOST)) as server:
        attempt = await send(http_client, to(server), BODY.encode(), [SECRET], NOW, timeout=SHORT)
    assert attempt == Attempt(delivered=False, response_code=None, timed_out=True, error="timeout")


async def test_a_2xx_with_an_endless_body_acknowledges_without_waiting(
    http_client: HttpClient, authority: CertificateAuthority
) -> None:
    async with ScriptedServer(drips, tls=authority.server(HOST)) as server, asyncio.timeout(PATIENCE):
        assert await send(http_client, to(server), BODY.encode(), [SECRET], NOW, timeout=SHORT) == Attempt(
            delivered=True, response_code=200, timed_out=True
        )


async def test_an_error_with_a_truncated_body_keeps_its_status(
    http_client: HttpClient, authority: CertificateAuthority
) -> None:
    cut = answers(b"HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nTraceback", hang_up=True)
    async with ScriptedServer(cut, tls=authority.server(HOST)) as server:
        assert await send(http_client, to(server), BODY.encode(), [SECRET], NOW) == Attempt(
            delivered=False, response_code=500, error="bad_status"
        )


async def test_a_huge_response_counts_by_its_status(http_client: HttpClient, authority: CertificateAuthority) -> None:
    huge = answers(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n" + b"x" * 1_000_000)
    async with ScriptedServer(huge, tls=authority.server(HOST)) as server, asyncio.timeout(PATIENCE):
        attempt = await send(http_client, to(server), BODY.encode(), [SECRET], NOW)
    assert attempt == Attempt(delivered=True, response_code=200, answer=attempt.answer)
    assert len(attempt.answer) <= 64 * 1024


async def test_a_refused_connection_gives_no_status(http_client: HttpClient) -> None:
    with socket.create_server(("127.0.0.2", 0)) as reserved:
        port = reserved.getsockname()[1]
    delivery = structs.replace(DELIVERY, url=f"https://{HOST}:{port}/hook")
    assert await send(http_client, delivery, BODY.encode(), [SECRET], NOW) == Attempt(
        delivered=False, response_code=None, error="connection_failed"
    )


async def test_a_name_that_does_not_exist_gives_no_status(http_client: HttpClient) -> None:
    delivery = structs.replace(DELIVERY, url="https://unknown.test/hook")
    assert await send(http_client, delivery, BODY.encode(), [SECRET], NOW) == Attempt(
        delivered=False, response_code=None, error="address_refused"
    )


async def test_a_private_destination_is_never_contacted(
    http_client: HttpClient, authority: CertificateAuthority
) -> None:
    async with ScriptedServer(tls=authority.server("home.test")) as server:
        for url, error in (
            (server.url("home.test"), "address_refused"),
            (server.url("127.0.0.1"), "address_refused"),
            (server.url("localhost"), "address_refused"),
            ("http://shop.test/", "address_refused"),
            ("nonsense", "address_refused"),
        ):
            attempt = await send(http_client, structs.replace(DELIVERY, url=url), BODY.encode(), [SECRET], NOW)
            assert attempt == structs.replace(Attempt(delivered=False, response_code=None), error=error)
    assert server.connections == 0


async def test_a_receiver_with_an_invalid_certificate_receives_nothing(
    http_client: HttpClient, authority: CertificateAuthority
) -> None:
    async with ScriptedServer(tls=authority.server("other.test")) as server:
        assert await send(http_client, to(server), BODY.encode(), [SECRET], NOW) == Attempt(
            delivered=False, response_code=None, error="tls_failed"
        )
    assert server.received == []


async def test_a_response_counts_within_ten_seconds(http_client: HttpClient, authority: CertificateAuthority) -> None:
    """An answer after seven seconds counts, one that takes fourteen does not."""

    def after(seconds: float) -> Script:
        ok = status(204)

        async def script(writer, request):  # type: ignore[no-untyped-def]
            await asyncio.sleep(seconds)
            await ok(writer, request)

        return script

    tls = authority.server(HOST)
    async with ScriptedServer(after(7), tls=tls) as patient, ScriptedServer(after(14), tls=tls) as late:
        in_time, too_late = (
            asyncio.create_task(send(http_client, to(server), BODY.encode(), [SECRET], NOW))
            for server in (patient, late)
        )
        async with asyncio.timeout(PATIENCE):
            while not (patient.received and late.received):
                await asyncio.sleep(0.005)
        await pass_seconds(7)
        assert await in_time == Attempt(delivered=True, response_code=204)
        assert not too_late.done()
        await pass_seconds(3)
        assert await too_late == Attempt(delivered=False, response_code=None, timed_out=True, error="timeout")
