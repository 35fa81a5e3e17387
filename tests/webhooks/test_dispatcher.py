"""Webhooks from the change to the merchant's server: the worker, real HTTPS receivers, a clock that the test turns."""

import asyncio
import hashlib
import hmac
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from guichet.clock import SECOND
from guichet.domain.events import Delivery
from guichet.settings import Settings
from guichet.webhooks import deliveries
from guichet.webhooks.deliveries import AttemptResult
from guichet.webhooks.dispatcher import PER_DESTINATION
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.clock import ManualClock
from tests.fakes.http_server import ReceivedRequest, Script, ScriptedServer, answers, hangs, hangs_up
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.invariants import check_books
from tests.service_fixture import MerchantClient, ServiceFixture, open_service

DELAYS = (10, 60, 300, 1800)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path_factory.mktemp("ca"))


def status(code: int, *headers: str) -> Script:
    lines = [f"HTTP/1.1 {code} Whatever", *headers]
    if code != 204:
        lines.append("Content-Length: 0")
    return answers("\r\n".join([*lines, "", ""]).encode())


def in_turn(*scripts: Script) -> Script:
    """One script a request, the last one repeated."""
    waiting = list(scripts)

    async def script(writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        await (waiting.pop(0) if len(waiting) > 1 else waiting[0])(writer, request)

    return script


def by_path(writer: asyncio.StreamWriter, request: ReceivedRequest) -> Any:
    """Answers the status that the path names."""
    return status(int(request.line.split(" ")[1].rpartition("/")[2]))(writer, request)


@asynccontextmanager
async def receiver(authority: CertificateAuthority, script: Script | None = None) -> AsyncIterator[ScriptedServer]:
    made = (
        ScriptedServer(tls=authority.server("localhost"))
        if script is None
        else ScriptedServer(script, authority.server("localhost"))
    )
    async with made as server:
        yield server


async def listening(service: ServiceFixture, server: ScriptedServer) -> tuple[MerchantClient, str]:
    """A merchant whose endpoint is `server`, and its secret."""
    merchant = await service.merchant()
    configured = (await merchant.put("/webhooks/endpoint", {"url": server.url()})).data
    return merchant, configured["secret"]


async def log_of(merchant: MerchantClient) -> list[Any]:
    """The delivery log, oldest first."""
    found = (await merchant.get("/webhooks/deliveries?per_page=100")).data
    return list(reversed(found))


def genuine(request: ReceivedRequest, secret: str, now: int) -> bool:
    """What the contract tells merchants to do, written without looking at how we sign; `now` in Unix seconds."""
    parts = dict(part.split("=", 1) for part in request.headers["x-service-signature"].split(","))
    expected = hmac.new(secret.encode("utf-8"), parts["t"].encode() + b"." + request.body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, parts["v1"]) and abs(now - int(parts["t"])) <= 300


def event(request: ReceivedRequest) -> str:
    return request.headers["x-service-event"]


async def test_a_payment_is_told_at_once_as_the_contract_says(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    async with receiver(authority) as server:
        merchant, secret = await listening(service, server)
        payment = await merchant.pay("0000", external_id="o-1", metadata={"b": 1.50, "a": [None]})
        await service.run_worker()
    (request,) = server.received
    assert request.line == "POST /hook HTTP/1.1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"].endswith("/1.0")
    assert event(request) == "payment.succeeded"
    assert genuine(request, secret, service.clock.now() // SECOND)
    assert not genuine(request, secret.removeprefix("whsec_"), service.clock.now() // SECOND)
    body = json.loads(request.body)
    assert set(body) == {"id", "event", "livemode", "created_at", "data"}
    assert (body["id"], body["event"]) == (request.headers["x-service-delivery"], "payment.succeeded")
    assert body["livemode"] is False
    assert (body["data"]["reference"], body["data"]["status"]) == (payment["reference"], "succeeded")
    assert {"country", "country_code"} <= set(body["data"]["payment_mode"])
    assert b'"metadata":{"b":1.5,"a":[null]}' in request.body
    (entry,) = await log_of(merchant)
    assert entry == {
        "id": body["id"],
        "event": "payment.succeeded",
        "url": server.url(),
        "status": "success",
        "attempts": 1,
        "response_code": 200,
        "created_at": body["created_at"],
        "delivered_at": entry["delivered_at"],
    }
    assert entry["delivered_at"] is not None
    await check_books(service.ctx.db, events_queued=True)


async def test_attempts_come_at_exactly_the_delays_of_the_contract(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    """Counted from the end of the attempt before: the receiver takes three seconds to say no."""
    ended: list[int] = []

    async def takes_three_seconds(writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        service.clock.advance(3)
        ended.append(service.clock.now())
        await status(503)(writer, request)

    async with receiver(authority, takes_three_seconds) as server:
        merchant, secret = await listening(service, server)
        await merchant.pay("0000")
        await service.run_worker()
        for number, delay in enumerate(DELAYS, 1):
            (entry,) = await log_of(merchant)
            assert (entry["status"], entry["attempts"], entry["response_code"]) == ("pending", number, 503)
            await service.run_worker(delay - 0.000001)
            assert len(server.received) == number, f"attempt {number + 1} came before its {delay} s"
            await service.run_worker(0.000001)
            assert len(server.received) == number + 1, f"attempt {number + 1} did not come after {delay} s"
            request, now = server.received[-1], ended[-1] // SECOND
            assert genuine(request, secret, now)
            assert int(request.headers["x-service-signature"][2:].split(",")[0]) >= now - 3
        (entry,) = await log_of(merchant)
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
        merchant, _ = await listening(service, server)
        await merchant.pay("0003")
        await service.run_worker()
        assert [(each["event"], each["response_code"]) for each in await log_of(merchant)] == [("payment.failed", 500)]
        await service.run_worker(10)
        assert (await log_of(merchant))[0]["response_code"] is None
        await service.run_worker(60)
        (entry,) = await log_of(merchant)
        assert (entry["status"], entry["attempts"], entry["response_code"]) == ("success", 3, 204)
        await service.run_worker(24 * 3600)
    assert len(server.received) == 3


async def test_any_2xx_is_enough_and_nothing_else(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    codes = [200, 201, 202, 204, 206, 226, 299, 301, 302, 307, 400, 404, 409, 410, 418, 429, 500, 503]
    async with receiver(authority, by_path) as server:
        merchant = await service.merchant()
        for code in codes:
            await merchant.pay("0000", callback_url=server.url(path=f"/{code}"))
        await service.run_worker()
    entries = {int(each["url"].rpartition("/")[2]): each for each in await log_of(merchant)}
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
        merchant, _ = await listening(service, server)
        await merchant.pay("0000")
        await service.run_worker()
        assert (await log_of(merchant))[0]["response_code"] == 307
    assert elsewhere.connections == 0


@pytest.mark.parametrize("fault", ["hangs up", "refuses", "is deaf", "is not known", "speaks no HTTP"])
async def test_a_receiver_without_an_answer_has_no_code(
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
        (entry,) = await log_of(merchant)
    assert (entry["status"], entry["attempts"], entry["response_code"]) == ("pending", 1, None)


# --- where it goes and with which secret ------------------------------------------------------------------------------


async def test_a_payments_own_address_takes_the_place_of_the_accounts(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    async with receiver(authority) as account, receiver(authority) as own:
        merchant, secret = await listening(service, account)
        payment = await merchant.pay("0000", callback_url=own.url())
        await merchant.pay("0000")
        await service.run_worker()
        await merchant.post(f"/payments/{payment['reference']}/refund")
        await merchant.post("/webhooks/test")
        await service.run_worker()
    assert [event(request) for request in own.received] == ["payment.succeeded", "refund.succeeded", "payment.refunded"]
    assert [event(request) for request in account.received] == ["payment.succeeded", "webhook.test"]
    assert all(genuine(request, secret, service.clock.now() // SECOND) for request in own.received)


async def test_a_rotated_secret_signs_from_the_next_attempt(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority, in_turn(status(500), status(200))) as server:
        merchant, old = await listening(service, server)
        await merchant.pay("0000")
        await service.run_worker()
        rotated = await merchant.put("/webhooks/endpoint", {"url": server.url(), "rotate_secret": True})
        new = rotated.data["secret"]
        assert new != old
        await service.run_worker(10)
    first, second = server.received
    now = service.clock.now() // SECOND
    assert genuine(first, old, now)
    assert genuine(second, new, now)
    assert not genuine(second, old, now)
    assert first.body == second.body


async def test_disabling_ends_what_waits_for_the_endpoint_only(
    service: ServiceFixture, authority: CertificateAuthority
) -> None:
    async with (
        receiver(authority, status(500)) as account,
        receiver(authority, in_turn(status(500), status(200))) as own,
    ):
        merchant, _ = await listening(service, account)
        other, _ = await listening(service, account)

        async def states() -> dict[str, str]:
            return {each["url"]: each["status"] for each in await log_of(merchant)}

        await merchant.pay("0000")
        await merchant.pay("0000", callback_url=own.url())
        await other.pay("0000")
        await service.run_worker()
        assert (await merchant.put("/webhooks/endpoint", {"url": None})).data["url"] is None
        assert await states() == {account.url(): "failed", own.url(): "pending"}
        await service.run_worker(10)
        assert await states() == {account.url(): "failed", own.url(): "success"}
        assert [each["status"] for each in await log_of(other)] == ["pending"]
        await merchant.pay("0000")
        await service.run_worker()
        assert len(await log_of(merchant)) == 2, "without an address nothing is queued"
    assert len(account.received) == 3


async def test_an_address_is_frozen_when_it_is_queued(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority, in_turn(status(500), status(200))) as old, receiver(authority) as new:
        merchant, _ = await listening(service, old)
        await merchant.pay("0000")
        await service.run_worker()
        await merchant.put("/webhooks/endpoint", {"url": new.url()})
        await merchant.pay("0000")
        await service.run_worker(10)
    assert (len(old.received), len(new.received)) == (2, 1)


async def test_the_test_event(service: ServiceFixture, authority: CertificateAuthority) -> None:
    async with receiver(authority) as server:
        merchant, secret = await listening(service, server)
        sent = (await merchant.post("/webhooks/test")).data
        await service.run_worker()
        alone = await service.merchant()
        answer = (await alone.post("/webhooks/test")).data
    (request,) = server.received
    body = json.loads(request.body)
    assert sent == {"sent": True, "delivery_id": body["id"], "url": server.url()}
    assert (body["event"], body["livemode"], set(body["data"])) == ("webhook.test", False, {"message"})
    assert genuine(request, secret, service.clock.now() // SECOND)
    assert [(each["id"], each["status"]) for each in await log_of(merchant)] == [(body["id"], "success")]
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
        merchant, test_secret = await listening(service, server)
        live_secret = (await merchant.live.put("/webhooks/endpoint", {"url": server.url()})).data["secret"]
        await merchant.live.pay()
        await merchant.pay("0000")
        await service.run_worker(10)
        now = service.clock.now() // SECOND
        assert sorted(json.loads(request.body)["livemode"] for request in server.received) == [False, True]
        for request in server.received:
            live = json.loads(request.body)["livemode"]
            assert genuine(request, live_secret if live else test_secret, now)
            assert not genuine(request, test_secret if live else live_secret, now)
        assert len(await log_of(merchant)) == len(await log_of(merchant.live)) == 1
        await check_books(service.ctx.db, events_queued=True)


# --- order and fairness -----------------------------------------------------------------------------------------------


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
        merchant, _ = await listening(service, server)
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
    assert [each["status"] for each in await log_of(merchant)] == ["success", "pending", "success"]


@pytest.mark.slow
async def test_ten_seconds_of_silence_hold_back_only_their_own_payment(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    """The real limit, once."""
    service = sqlite_service
    async with receiver(authority, hangs) as silent, receiver(authority) as account:
        merchant, _ = await listening(service, account)
        held = await merchant.pay("0000", callback_url=silent.url())
        service.worker.start()
        await until(lambda: len(silent.received) == 1)
        since = time.perf_counter()
        await merchant.post(f"/payments/{held['reference']}/refund")
        free = await merchant.pay("0000")
        await until(lambda: len(account.received) == 1)
        await merchant.post(f"/payments/{free['reference']}/refund")
        await until(lambda: len(account.received) == 3)
        assert time.perf_counter() - since < 3
        assert len(silent.received) == 1
        await until(lambda: len(silent.received) == 2, seconds=12)
        assert 9 < time.perf_counter() - since < 11.5
        first = (await log_of(merchant))[0]
        assert (first["status"], first["attempts"], first["response_code"]) == ("pending", 1, None)
        await service.worker.stop()
    assert [event(request) for request in silent.received] == ["payment.succeeded", "refund.succeeded"]


async def test_a_dead_endpoint_with_a_long_queue_delays_nobody_else(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority, hangs) as dead, receiver(authority) as fast:
        sad, _ = await listening(service, dead)
        glad, _ = await listening(service, fast)
        for _ in range(10):
            await asyncio.gather(*(sad.post("/webhooks/test") for _ in range(50)))
        service.worker.start()
        await until(lambda: len(dead.received) >= PER_DESTINATION // 2)
        since = time.perf_counter()
        for number in range(1, 6):
            await glad.post("/webhooks/test")
            await until(partial(arrived, fast, number))
        assert time.perf_counter() - since < 2
        await asyncio.sleep(0.2)
        assert PER_DESTINATION // 2 <= len(dead.received) <= PER_DESTINATION
        await service.worker.stop()
    assert [each["status"] for each in await log_of(glad)] == ["success"] * 5


def arrived(server: ScriptedServer, wanted: int) -> bool:
    return len(server.received) == wanted


async def until(met: Callable[[], bool], seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not met():
            await asyncio.sleep(0.005)


# --- crashes ----------------------------------------------------------------------------------------------------------


async def killed_between_claim_and_record(service: ServiceFixture) -> Sequence[Delivery]:
    """What a process that dies during an attempt leaves behind: a claim. Its lease has run out afterwards."""
    now = service.clock.now()
    claim = await deliveries.claim_due(service.ctx.db, now, now + 30 * SECOND, 10)
    service.clock.advance(30)
    return claim.jobs


@pytest.mark.parametrize("deaths", range(6))
async def test_never_more_than_five_sends_whatever_dies(
    service: ServiceFixture, authority: CertificateAuthority, deaths: int
) -> None:
    async with receiver(authority, status(500)) as server:
        merchant, _ = await listening(service, server)
        await merchant.post("/webhooks/test")
        for death in range(deaths):
            assert len(await killed_between_claim_and_record(service)) == (1 if death < 5 else 0)
        for delay in (0, *DELAYS, 3600):
            await service.run_worker(delay)
        (entry,) = await log_of(merchant)
    assert (entry["status"], entry["attempts"]) == ("failed", 5)
    assert len(server.received) == max(0, 5 - deaths), "a send that may have happened counts"


async def test_an_attempt_that_outlived_its_lease_does_not_undo_the_next_one(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority, status(500)) as server:
        merchant, _ = await listening(service, server)
        await merchant.post("/webhooks/test")
        (slow,) = await killed_between_claim_and_record(service)
        (fast,) = await killed_between_claim_and_record(service)
        now = service.clock.now()
        too_late = AttemptResult(slow, delivered=False, response_code=500, ended_at=now, next_due=now + 10 * SECOND)
        await deliveries.record(service.ctx.db, [too_late])
        assert (await log_of(merchant))[0]["response_code"] is None, "the earlier attempt's failure came too late"
        await deliveries.record(service.ctx.db, [AttemptResult(fast, delivered=True, response_code=200, ended_at=now)])
        await deliveries.record(service.ctx.db, [replace(too_late, next_due=None)])
        assert [(each["status"], each["response_code"]) for each in await log_of(merchant)] == [("success", 200)]


# --- the guard (D38) --------------------------------------------------------------------------------------------------


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
        async with asyncio.timeout(5):
            await service.run_worker()
        entries = await log_of(merchant)
        assert len(entries) >= 8
        assert {(each["status"], each["attempts"], each["response_code"]) for each in entries} == {("pending", 1, None)}
        for delay in DELAYS:
            await service.run_worker(delay)
        assert {each["status"] for each in await log_of(merchant)} == {"failed"}
    assert server.connections == 0
