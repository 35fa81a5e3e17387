"""Decisions D32 to D38 of docs/decisions.md, as a merchant's server sees them: a test is named after each."""

import asyncio
import re
import time

import pytest

from guichet.clock import SECOND
from guichet.domain.audit_log import Actor
from guichet.domain.events import ANSWER_TIMEOUT
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.webhooks import endpoints
from guichet.webhooks.sender import verify
from tests.contract.shapes import check_resource, check_success, endpoint
from tests.contract.tables import table
from tests.contract.webhooks import listen, notifications
from tests.fakes.http_server import ScriptedServer, answers
from tests.service_fixture import ServiceFixture

DELAYS = [int(row["Delay (seconds)"]) for row in table("retry-schedule")]
REFUSES = answers(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
REDIRECTS = answers(b"HTTP/1.1 307 Elsewhere\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n")


def _now(service: ServiceFixture) -> int:
    return service.clock.now() // SECOND


async def test_d32_a_callback_url_takes_the_place_of_the_endpoint(
    service: ServiceFixture, receiver: ScriptedServer
) -> None:
    merchant = await service.merchant()
    async with ScriptedServer(host="127.0.0.1") as own:
        secret = await listen(merchant, receiver)
        await merchant.pay("0000", external_id="a", callback_url=own.url())
        await merchant.pay("0000", external_id="b")
        await service.run_worker()
        await merchant.post("/payments/a/refund")
        await service.run_worker()
        to_callback = notifications(own, secret, _now(service))
        assert [each.event for each in to_callback] == ["payment.succeeded", "refund.succeeded", "payment.refunded"]
        [to_account] = notifications(receiver, secret, _now(service))
        assert to_account.data["external_id"] == "b"
        urls = {each["url"] for each in (await merchant.get("/webhooks/deliveries")).data}
        assert urls == {own.url(), receiver.url()}


async def test_d32_a_callback_url_needs_no_endpoint(service: ServiceFixture, receiver: ScriptedServer) -> None:
    merchant = await service.merchant()
    await merchant.pay("0003", callback_url=receiver.url())
    await merchant.pay("0003")
    await service.run_worker()
    assert [received.headers["x-service-event"] for received in receiver.received] == ["payment.failed"]


async def test_d33_one_secret_for_each_environment_shown_while_configured(
    service: ServiceFixture, receiver: ScriptedServer
) -> None:
    merchant = await service.merchant()
    await merchant.pay("0000", callback_url=receiver.url())
    await service.run_worker()
    assert (await merchant.get("/webhooks/endpoint")).data["secret"] is None
    secret = await listen(merchant, receiver)
    assert re.fullmatch(r"whsec_[A-Za-z0-9]{32,}", secret)
    assert [each.event for each in notifications(receiver, secret, _now(service))] == ["payment.succeeded"]
    assert (await listen(merchant.live, receiver)) != secret
    assert (await merchant.put("/webhooks/endpoint", {"url": None})).data["secret"] is None
    await merchant.pay("0003", callback_url=receiver.url())
    await service.run_worker()
    events = [each.event for each in notifications(receiver, secret, _now(service))]
    assert events == ["payment.succeeded", "payment.failed"]
    assert await listen(merchant, receiver) == secret


async def test_d34_every_attempt_is_signed_anew_over_the_same_bytes(
    service: ServiceFixture, receiver: ScriptedServer
) -> None:
    """Five attempts after the delays of the contract, then `failed`; a rotation counts from the next attempt."""
    merchant = await service.merchant()
    old = await listen(merchant, receiver)
    receiver.script = REFUSES
    await merchant.post("/webhooks/test")
    secrets = [old]
    for attempt, delay in enumerate(DELAYS, 1):
        if delay:
            await service.run_worker(delay - 0.001)
            assert len(receiver.received) == attempt - 1
        if attempt == 3:
            await merchant.put("/webhooks/endpoint", {"url": receiver.url(), "rotate_secret": True})
            secrets.append((await merchant.get("/webhooks/endpoint")).data["secret"])
        await service.run_worker(0.001 if delay else 0)
        assert len(receiver.received) == attempt
        last = receiver.received[-1]
        assert verify(secrets[-1], last.headers["x-service-signature"], last.body, _now(service), tolerance=0)
        [entry] = (await merchant.get("/webhooks/deliveries")).data
        check_resource("webhook-delivery", entry)
        expected = "failed" if attempt == len(DELAYS) else "pending"
        assert (entry["status"], entry["attempts"], entry["response_code"]) == (expected, attempt, 503)
        assert entry["delivered_at"] is None
    assert not verify(old, last.headers["x-service-signature"], last.body, _now(service))
    assert len({received.body for received in receiver.received}) == 1
    assert len({received.headers["x-service-delivery"] for received in receiver.received}) == 1
    assert len({received.headers["x-service-signature"] for received in receiver.received}) == len(DELAYS)
    await service.run_worker(100_000)
    assert len(receiver.received) == len(DELAYS)


async def test_d34_a_redirect_is_a_failure_and_a_later_success_counts(
    service: ServiceFixture, receiver: ScriptedServer
) -> None:
    merchant = await service.merchant()
    secret = await listen(merchant, receiver)
    receiver.script = REDIRECTS
    await merchant.post("/webhooks/test")
    await service.run_worker()
    [entry] = (await merchant.get("/webhooks/deliveries")).data
    assert (entry["status"], entry["response_code"]) == ("pending", 307)
    assert {received.line for received in receiver.received} == {"POST /hook HTTP/1.1"}
    receiver.script = answers(b"HTTP/1.1 204 No Content\r\n\r\n")
    await service.run_worker(10)
    [entry] = (await merchant.get("/webhooks/deliveries")).data
    assert (entry["status"], entry["attempts"], entry["response_code"]) == ("success", 2, 204)
    assert check_resource("webhook-delivery", entry)["delivered_at"] is not None
    assert len(notifications(receiver, secret, _now(service))) == 2


async def test_d35_events_of_one_payment_leave_in_the_order_of_the_facts(
    service: ServiceFixture, receiver: ScriptedServer
) -> None:
    """Also when the first of them fails: it was tried before the next one left."""
    merchant = await service.merchant()
    await listen(merchant, receiver)
    receiver.script = REFUSES
    references = []
    for number in range(8):
        payment = await merchant.pay("0000", external_id=f"{number}")
        references.append(payment["reference"])
    for reference in references:
        assert (await merchant.get(f"/payments/{reference}")).data["status"] == "succeeded"
        await merchant.post(f"/payments/{reference}/refund")
    await service.run_worker()
    for reference in references:
        events = [each.headers["x-service-event"] for each in receiver.received if reference.encode() in each.body]
        assert events == ["payment.succeeded", "refund.succeeded", "payment.refunded"]


async def test_d36_disabling_ends_what_waits_for_the_endpoint_only(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    async with ScriptedServer(REFUSES, host="127.0.0.1") as broken:
        await listen(merchant, broken)
        await merchant.pay("0000", external_id="account")
        await merchant.pay("0000", external_id="own", callback_url=broken.url(path="/own"))
        await service.run_worker()
        await service.run_worker(10)
        await merchant.put("/webhooks/endpoint", {"url": None})
        by_url = {each["url"]: each for each in (await merchant.get("/webhooks/deliveries")).data}
        assert (by_url[broken.url()]["status"], by_url[broken.url()]["attempts"]) == ("failed", 2)
        broken.script = answers(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await service.run_worker(60)
        by_url = {each["url"]: each for each in (await merchant.get("/webhooks/deliveries")).data}
        assert (by_url[broken.url()]["status"], by_url[broken.url()]["attempts"]) == ("failed", 2)
        assert (by_url[broken.url(path="/own")]["status"], by_url[broken.url(path="/own")]["attempts"]) == (
            "success",
            3,
        )


async def test_d37_a_test_event_is_queued_or_reported_as_unsent(
    service: ServiceFixture, receiver: ScriptedServer
) -> None:
    merchant = await service.merchant()
    row = endpoint("POST", "/webhooks/test")
    unsent = check_success(await merchant.post("/webhooks/test"), row, also=["message"])
    assert unsent == {"sent": False, "delivery_id": None, "url": None, "message": unsent["message"]}
    assert unsent["message"]
    for account in (merchant, merchant.live):
        secret = await listen(account, receiver)
        for body in (None, b"", b"not json"):
            receiver.received.clear()
            sent = check_success(await account.post("/webhooks/test", body), row)
            assert (sent["sent"], sent["url"]) == (True, receiver.url())
            [queued] = (await account.get("/webhooks/deliveries?per_page=1")).data
            assert (queued["id"], queued["status"], queued["attempts"]) == (sent["delivery_id"], "pending", 0)
            await service.run_worker()
            [arrived] = notifications(receiver, secret, _now(service))
            assert (arrived.id, arrived.event) == (sent["delivery_id"], "webhook.test")
            assert arrived.livemode is (account.env == "live")
            assert isinstance(arrived.data["message"], str)


@pytest.mark.parametrize("url", ["https://10.0.0.1/h", "https://169.254.169.254/latest", "https://[fd00::1]/h"])
async def test_d38_no_webhook_goes_to_a_private_address(sqlite_service: ServiceFixture, url: str) -> None:
    merchant = await sqlite_service.merchant()
    assert (await merchant.put("/webhooks/endpoint", {"url": url})).status == 200
    await merchant.post("/webhooks/test")
    started = time.monotonic()
    await sqlite_service.run_worker()
    assert time.monotonic() - started < ANSWER_TIMEOUT
    [entry] = (await merchant.get("/webhooks/deliveries")).data
    assert (entry["status"], entry["attempts"], entry["response_code"]) == ("pending", 1, None)


@pytest.mark.both_databases
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_d34_a_rotation_keeps_the_address_that_is_being_written(service: ServiceFixture) -> None:
    """Rotated by a person while a program disables the endpoint: it stays disabled."""
    merchant, ctx = await service.merchant(), service.ctx
    whose: tuple[MerchantId, Environment] = (merchant.id, "test")
    await endpoints.configure(ctx.db, ctx.vault, *whose, "https://a.test/", ctx.clock.now(), rotate=False)
    async with ctx.db.transaction() as tx:
        await endpoints.change(tx, ctx.vault, *whose, None, ctx.clock.now(), rotate=False)
        rotation = asyncio.create_task(
            endpoints.rotate_secret(ctx.db, ctx.vault, *whose, Actor("Awa", "owner"), ctx.clock.now())
        )
        await asyncio.wait([rotation], timeout=1)
    await rotation
    assert (await endpoints.read(ctx.db, ctx.vault, *whose)).url is None
