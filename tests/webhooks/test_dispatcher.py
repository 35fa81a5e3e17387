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
from tests.fakes.certificates import Authority
from tests.fakes.clock import ManualClock
from tests.fakes.http_server import Peer, Received, Script, answers, hangs, hangs_up
from tests.fakes.scripted_provider import ScriptedOperator, done
from tests.invariants import check_books
from tests.service_fixture import Account, House, open_house

DELAYS = (10, 60, 300, 1800)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.create(tmp_path_factory.mktemp("ca"))


def status(code: int, *headers: str) -> Script:
    lines = [f"HTTP/1.1 {code} Whatever", *headers]
    if code != 204:
        lines.append("Content-Length: 0")
    return answers("\r\n".join([*lines, "", ""]).encode())


def in_turn(*scripts: Script) -> Script:
    """One script a request, the last one repeated."""
    waiting = list(scripts)

    async def script(writer: asyncio.StreamWriter, request: Received) -> None:
        await (waiting.pop(0) if len(waiting) > 1 else waiting[0])(writer, request)

    return script


def by_path(writer: asyncio.StreamWriter, request: Received) -> Any:
    """Answers the status that the path names."""
    return status(int(request.line.split(" ")[1].rpartition("/")[2]))(writer, request)


@asynccontextmanager
async def receiver(authority: Authority, script: Script | None = None) -> AsyncIterator[Peer]:
    made = Peer(tls=authority.server("localhost")) if script is None else Peer(script, authority.server("localhost"))
    async with made as peer:
        yield peer


async def listening(house: House, peer: Peer) -> tuple[Account, str]:
    """A merchant whose endpoint is `peer`, and its secret."""
    shop = await house.merchant()
    configured = (await shop.put("/webhooks/endpoint", {"url": peer.url()})).data
    return shop, configured["secret"]


async def log_of(shop: Account) -> list[Any]:
    """The delivery log, oldest first."""
    found = (await shop.get("/webhooks/deliveries?per_page=100")).data
    return list(reversed(found))


def genuine(request: Received, secret: str, now: int) -> bool:
    """What the contract tells merchants to do, written without looking at how we sign; `now` in Unix seconds."""
    parts = dict(part.split("=", 1) for part in request.headers["x-service-signature"].split(","))
    expected = hmac.new(secret.encode("utf-8"), parts["t"].encode() + b"." + request.body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, parts["v1"]) and abs(now - int(parts["t"])) <= 300


def event(request: Received) -> str:
    return request.headers["x-service-event"]


async def test_a_payment_is_told_at_once_as_the_contract_says(house: House, authority: Authority) -> None:
    async with receiver(authority) as peer:
        shop, secret = await listening(house, peer)
        payment = await shop.pay("0000", external_id="o-1", metadata={"b": 1.50, "a": [None]})
        await house.settle()
    (request,) = peer.received
    assert request.line == "POST /hook HTTP/1.1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"].endswith("/1.0")
    assert event(request) == "payment.succeeded"
    assert genuine(request, secret, house.clock.now() // SECOND)
    assert not genuine(request, secret.removeprefix("whsec_"), house.clock.now() // SECOND)
    body = json.loads(request.body)
    assert set(body) == {"id", "event", "livemode", "created_at", "data"}
    assert (body["id"], body["event"]) == (request.headers["x-service-delivery"], "payment.succeeded")
    assert body["livemode"] is False
    assert (body["data"]["reference"], body["data"]["status"]) == (payment["reference"], "succeeded")
    assert {"country", "country_code"} <= set(body["data"]["payment_mode"])
    assert b'"metadata":{"b":1.5,"a":[null]}' in request.body
    (entry,) = await log_of(shop)
    assert entry == {
        "id": body["id"],
        "event": "payment.succeeded",
        "url": peer.url(),
        "status": "success",
        "attempts": 1,
        "response_code": 200,
        "created_at": body["created_at"],
        "delivered_at": entry["delivered_at"],
    }
    assert entry["delivered_at"] is not None
    await check_books(house.ctx.db, told=True)


async def test_attempts_come_at_exactly_the_delays_of_the_contract(house: House, authority: Authority) -> None:
    """Counted from the end of the attempt before: the receiver takes three seconds to say no."""
    ended: list[int] = []

    async def takes_three_seconds(writer: asyncio.StreamWriter, request: Received) -> None:
        house.clock.advance(3)
        ended.append(house.clock.now())
        await status(503)(writer, request)

    async with receiver(authority, takes_three_seconds) as peer:
        shop, secret = await listening(house, peer)
        await shop.pay("0000")
        await house.settle()
        for number, delay in enumerate(DELAYS, 1):
            (entry,) = await log_of(shop)
            assert (entry["status"], entry["attempts"], entry["response_code"]) == ("pending", number, 503)
            await house.settle(delay - 0.000001)
            assert len(peer.received) == number, f"attempt {number + 1} came before its {delay} s"
            await house.settle(0.000001)
            assert len(peer.received) == number + 1, f"attempt {number + 1} did not come after {delay} s"
            request, now = peer.received[-1], ended[-1] // SECOND
            assert genuine(request, secret, now)
            assert int(request.headers["x-service-signature"][2:].split(",")[0]) >= now - 3
        (entry,) = await log_of(shop)
        assert (entry["status"], entry["attempts"], entry["response_code"]) == ("failed", 5, 503)
        assert entry["delivered_at"] is None
        await house.settle(7 * 24 * 3600)
    assert len(peer.received) == 5
    assert len({request.body for request in peer.received}) == 1
    assert len({request.headers["x-service-delivery"] for request in peer.received}) == 1
    assert len({request.headers["x-service-signature"] for request in peer.received}) == 5


async def test_a_receiver_that_recovers_ends_the_retries(sqlite_house: House, authority: Authority) -> None:
    house = sqlite_house
    async with receiver(authority, in_turn(status(500), hangs_up, status(204))) as peer:
        shop, _ = await listening(house, peer)
        await shop.pay("0003")
        await house.settle()
        assert [(each["event"], each["response_code"]) for each in await log_of(shop)] == [("payment.failed", 500)]
        await house.settle(10)
        assert (await log_of(shop))[0]["response_code"] is None
        await house.settle(60)
        (entry,) = await log_of(shop)
        assert (entry["status"], entry["attempts"], entry["response_code"]) == ("success", 3, 204)
        await house.settle(24 * 3600)
    assert len(peer.received) == 3


async def test_any_2xx_is_enough_and_nothing_else(sqlite_house: House, authority: Authority) -> None:
    house = sqlite_house
    codes = [200, 201, 202, 204, 206, 226, 299, 301, 302, 307, 400, 404, 409, 410, 418, 429, 500, 503]
    async with receiver(authority, by_path) as peer:
        shop = await house.merchant()
        for code in codes:
            await shop.pay("0000", callback_url=peer.url(path=f"/{code}"))
        await house.settle()
    entries = {int(each["url"].rpartition("/")[2]): each for each in await log_of(shop)}
    assert sorted(entries) == codes
    for code, entry in entries.items():
        assert entry["response_code"] == code
        assert entry["status"] == ("success" if code < 300 else "pending")
        assert entry["attempts"] == 1


async def test_a_redirect_is_not_followed(sqlite_house: House, authority: Authority) -> None:
    house = sqlite_house
    async with (
        receiver(authority) as elsewhere,
        receiver(authority, status(307, f"Location: {elsewhere.url()}")) as peer,
    ):
        shop, _ = await listening(house, peer)
        await shop.pay("0000")
        await house.settle()
        assert (await log_of(shop))[0]["response_code"] == 307
    assert elsewhere.connections == 0


@pytest.mark.parametrize("fault", ["hangs up", "refuses", "is deaf", "is not known", "speaks no HTTP"])
async def test_a_receiver_without_an_answer_has_no_code(sqlite_house: House, authority: Authority, fault: str) -> None:
    house = sqlite_house
    script = answers(b"SSH-2.0-OpenSSH_9.2\r\n", hang_up=True) if fault == "speaks no HTTP" else hangs_up
    async with receiver(authority, script) as peer:
        peer.deaf = fault == "is deaf"
        url = peer.url()
        if fault == "refuses":
            with socket.create_server(("127.0.0.1", 0)) as reserved:
                url = f"https://localhost:{reserved.getsockname()[1]}/hook"
        if fault == "is not known":
            url = "https://nobody.invalid/hook"
        shop = await house.merchant()
        await shop.put("/webhooks/endpoint", {"url": url})
        await shop.pay("0000")
        await house.settle()
        (entry,) = await log_of(shop)
    assert (entry["status"], entry["attempts"], entry["response_code"]) == ("pending", 1, None)


# --- where it goes and with which secret ------------------------------------------------------------------------------


async def test_a_payments_own_address_takes_the_place_of_the_accounts(house: House, authority: Authority) -> None:
    async with receiver(authority) as account, receiver(authority) as own:
        shop, secret = await listening(house, account)
        payment = await shop.pay("0000", callback_url=own.url())
        await shop.pay("0000")
        await house.settle()
        await shop.post(f"/payments/{payment['reference']}/refund")
        await shop.post("/webhooks/test")
        await house.settle()
    assert [event(request) for request in own.received] == ["payment.succeeded", "refund.succeeded", "payment.refunded"]
    assert [event(request) for request in account.received] == ["payment.succeeded", "webhook.test"]
    assert all(genuine(request, secret, house.clock.now() // SECOND) for request in own.received)


async def test_a_rotated_secret_signs_from_the_next_attempt(sqlite_house: House, authority: Authority) -> None:
    house = sqlite_house
    async with receiver(authority, in_turn(status(500), status(200))) as peer:
        shop, old = await listening(house, peer)
        await shop.pay("0000")
        await house.settle()
        rotated = await shop.put("/webhooks/endpoint", {"url": peer.url(), "rotate_secret": True})
        new = rotated.data["secret"]
        assert new != old
        await house.settle(10)
    first, second = peer.received
    now = house.clock.now() // SECOND
    assert genuine(first, old, now)
    assert genuine(second, new, now)
    assert not genuine(second, old, now)
    assert first.body == second.body


async def test_disabling_ends_what_waits_for_the_endpoint_only(house: House, authority: Authority) -> None:
    async with (
        receiver(authority, status(500)) as account,
        receiver(authority, in_turn(status(500), status(200))) as own,
    ):
        shop, _ = await listening(house, account)
        other, _ = await listening(house, account)

        async def states() -> dict[str, str]:
            return {each["url"]: each["status"] for each in await log_of(shop)}

        await shop.pay("0000")
        await shop.pay("0000", callback_url=own.url())
        await other.pay("0000")
        await house.settle()
        assert (await shop.put("/webhooks/endpoint", {"url": None})).data["url"] is None
        assert await states() == {account.url(): "failed", own.url(): "pending"}
        await house.settle(10)
        assert await states() == {account.url(): "failed", own.url(): "success"}
        assert [each["status"] for each in await log_of(other)] == ["pending"]
        await shop.pay("0000")
        await house.settle()
        assert len(await log_of(shop)) == 2, "without an address nothing is queued"
    assert len(account.received) == 3


async def test_an_address_is_frozen_when_it_is_queued(sqlite_house: House, authority: Authority) -> None:
    house = sqlite_house
    async with receiver(authority, in_turn(status(500), status(200))) as old, receiver(authority) as new:
        shop, _ = await listening(house, old)
        await shop.pay("0000")
        await house.settle()
        await shop.put("/webhooks/endpoint", {"url": new.url()})
        await shop.pay("0000")
        await house.settle(10)
    assert (len(old.received), len(new.received)) == (2, 1)


async def test_the_test_event(house: House, authority: Authority) -> None:
    async with receiver(authority) as peer:
        shop, secret = await listening(house, peer)
        sent = (await shop.post("/webhooks/test")).data
        await house.settle()
        alone = await house.merchant()
        answer = (await alone.post("/webhooks/test")).data
    (request,) = peer.received
    body = json.loads(request.body)
    assert sent == {"sent": True, "delivery_id": body["id"], "url": peer.url()}
    assert (body["event"], body["livemode"], set(body["data"])) == ("webhook.test", False, {"message"})
    assert genuine(request, secret, house.clock.now() // SECOND)
    assert [(each["id"], each["status"]) for each in await log_of(shop)] == [(body["id"], "success")]
    assert (answer["sent"], answer["delivery_id"], answer["url"]) == (False, None, None)
    assert answer["message"]


async def test_each_environment_has_its_own_endpoint_secret_and_log(settings: Settings, authority: Authority) -> None:
    operator = ScriptedOperator()
    operator.script("status", done)
    async with (
        open_house(settings, accounts={"op": operator}, routes={"mtn": ["op"]}) as house,
        receiver(authority) as peer,
    ):
        shop, test_secret = await listening(house, peer)
        live_secret = (await shop.live.put("/webhooks/endpoint", {"url": peer.url()})).data["secret"]
        await shop.live.pay()
        await shop.pay("0000")
        await house.settle(10)
        now = house.clock.now() // SECOND
        assert sorted(json.loads(request.body)["livemode"] for request in peer.received) == [False, True]
        for request in peer.received:
            live = json.loads(request.body)["livemode"]
            assert genuine(request, live_secret if live else test_secret, now)
            assert not genuine(request, test_secret if live else live_secret, now)
        assert len(await log_of(shop)) == len(await log_of(shop.live)) == 1
        await check_books(house.ctx.db, told=True)


# --- order and fairness -----------------------------------------------------------------------------------------------


async def test_first_attempts_of_one_payment_keep_their_order(house: House, authority: Authority) -> None:
    under_way = 0

    async def lingers(writer: asyncio.StreamWriter, request: Received) -> None:
        nonlocal under_way
        under_way += 1
        assert under_way == 1, "an event left before the one before it was answered"
        await asyncio.sleep(0.05)
        under_way -= 1
        await status(500 if event(request) == "refund.succeeded" else 200)(writer, request)

    async with receiver(authority, lingers) as peer:
        shop, _ = await listening(house, peer)
        payment = await shop.pay("0000")
        house.worker.start()
        await until(lambda: len(peer.received) == 1)
        await shop.post(f"/payments/{payment['reference']}/refund")
        await until(lambda: len(peer.received) == 3)
        await asyncio.sleep(0.1)
        await house.worker.stop()
    assert [event(request) for request in peer.received] == [
        "payment.succeeded",
        "refund.succeeded",
        "payment.refunded",
    ]
    assert [each["status"] for each in await log_of(shop)] == ["success", "pending", "success"]


@pytest.mark.slow
async def test_ten_seconds_of_silence_hold_back_only_their_own_payment(
    sqlite_house: House, authority: Authority
) -> None:
    """The real limit, once."""
    house = sqlite_house
    async with receiver(authority, hangs) as silent, receiver(authority) as account:
        shop, _ = await listening(house, account)
        held = await shop.pay("0000", callback_url=silent.url())
        house.worker.start()
        await until(lambda: len(silent.received) == 1)
        since = time.perf_counter()
        await shop.post(f"/payments/{held['reference']}/refund")
        free = await shop.pay("0000")
        await until(lambda: len(account.received) == 1)
        await shop.post(f"/payments/{free['reference']}/refund")
        await until(lambda: len(account.received) == 3)
        assert time.perf_counter() - since < 3
        assert len(silent.received) == 1
        await until(lambda: len(silent.received) == 2, seconds=12)
        assert 9 < time.perf_counter() - since < 11.5
        first = (await log_of(shop))[0]
        assert (first["status"], first["attempts"], first["response_code"]) == ("pending", 1, None)
        await house.worker.stop()
    assert [event(request) for request in silent.received] == ["payment.succeeded", "refund.succeeded"]


async def test_a_dead_endpoint_with_a_long_queue_delays_nobody_else(sqlite_house: House, authority: Authority) -> None:
    house = sqlite_house
    async with receiver(authority, hangs) as dead, receiver(authority) as fast:
        sad, _ = await listening(house, dead)
        glad, _ = await listening(house, fast)
        for _ in range(10):
            await asyncio.gather(*(sad.post("/webhooks/test") for _ in range(50)))
        house.worker.start()
        await until(lambda: len(dead.received) >= PER_DESTINATION // 2)
        since = time.perf_counter()
        for number in range(1, 6):
            await glad.post("/webhooks/test")
            await until(partial(arrived, fast, number))
        assert time.perf_counter() - since < 2
        await asyncio.sleep(0.2)
        assert PER_DESTINATION // 2 <= len(dead.received) <= PER_DESTINATION
        await house.worker.stop()
    assert [each["status"] for each in await log_of(glad)] == ["success"] * 5


def arrived(peer: Peer, wanted: int) -> bool:
    return len(peer.received) == wanted


async def until(met: Callable[[], bool], seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not met():
            await asyncio.sleep(0.005)


# --- crashes ----------------------------------------------------------------------------------------------------------


async def killed_between_claim_and_record(house: House) -> Sequence[Delivery]:
    """What a process that dies during an attempt leaves behind: a claim. Its lease has run out afterwards."""
    now = house.clock.now()
    claim = await deliveries.claim_due(house.ctx.db, now, now + 30 * SECOND, 10)
    house.clock.advance(30)
    return claim.jobs


@pytest.mark.parametrize("deaths", range(6))
async def test_never_more_than_five_sends_whatever_dies(house: House, authority: Authority, deaths: int) -> None:
    async with receiver(authority, status(500)) as peer:
        shop, _ = await listening(house, peer)
        await shop.post("/webhooks/test")
        for death in range(deaths):
            assert len(await killed_between_claim_and_record(house)) == (1 if death < 5 else 0)
        for delay in (0, *DELAYS, 3600):
            await house.settle(delay)
        (entry,) = await log_of(shop)
    assert (entry["status"], entry["attempts"]) == ("failed", 5)
    assert len(peer.received) == max(0, 5 - deaths), "a send that may have happened counts"


async def test_an_attempt_that_outlived_its_lease_does_not_undo_the_next_one(
    sqlite_house: House, authority: Authority
) -> None:
    house = sqlite_house
    async with receiver(authority, status(500)) as peer:
        shop, _ = await listening(house, peer)
        await shop.post("/webhooks/test")
        (slow,) = await killed_between_claim_and_record(house)
        (fast,) = await killed_between_claim_and_record(house)
        now = house.clock.now()
        too_late = AttemptResult(slow, delivered=False, response_code=500, ended_at=now, next_due=now + 10 * SECOND)
        await deliveries.record(house.ctx.db, [too_late])
        assert (await log_of(shop))[0]["response_code"] is None, "the earlier attempt's failure came too late"
        await deliveries.record(house.ctx.db, [AttemptResult(fast, delivered=True, response_code=200, ended_at=now)])
        await deliveries.record(house.ctx.db, [replace(too_late, next_due=None)])
        assert [(each["status"], each["response_code"]) for each in await log_of(shop)] == [("success", 200)]


# --- the guard (D38) --------------------------------------------------------------------------------------------------


async def test_in_production_only_public_addresses_are_contacted(
    sqlite_settings: Settings, authority: Authority
) -> None:
    production = replace(
        sqlite_settings, profile="production", public_url="https://pay.test", egress_ca_file=authority.file
    )
    async with open_house(production, ManualClock()) as house, receiver(authority) as peer:
        shop = await house.merchant()
        hosts = ["127.0.0.1", "localhost", "[::1]", "127.1.2.3", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0"]
        urls = [peer.url(host) for host in hosts]
        urls += [f"https://{host}/hook" for host in ("10.0.0.1", "192.168.1.1", "169.254.169.254", "[fd00::1]")]
        for url in urls:
            answer = await shop.put("/webhooks/endpoint", {"url": url})
            if answer.status == 200:
                await shop.post("/webhooks/test")
        async with asyncio.timeout(5):
            await house.settle()
        entries = await log_of(shop)
        assert len(entries) >= 8
        assert {(each["status"], each["attempts"], each["response_code"]) for each in entries} == {("pending", 1, None)}
        for delay in DELAYS:
            await house.settle(delay)
        assert {each["status"] for each in await log_of(shop)} == {"failed"}
    assert peer.connections == 0
