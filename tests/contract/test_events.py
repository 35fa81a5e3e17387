"""`GET /events`: what the webhooks carry, also without an endpoint, in an order in which nothing is skipped; and the
present address of an endpoint (docs/contract.md, "Events")."""

import asyncio
import json
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest
from sqlalchemy import func, select, update

from guichet.clock import DAY, MINUTE, iso, later
from guichet.db import migrate, tables
from guichet.settings import Settings
from guichet.worker.pruning import Pruning
from tests.contract.shapes import check_error, check_success, endpoint, refused_fields
from tests.contract.webhooks import listen
from tests.fakes.http_server import ScriptedServer, answers
from tests.service_fixture import MerchantClient, ServiceFixture

ROW = endpoint("GET", "/events")
REFUSED = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"


def paths(server: ScriptedServer) -> list[str]:
    return [request.line.split()[1] for request in server.received]


async def kept(service: ServiceFixture) -> int:
    [row] = await service.ctx.db.all(select(func.count()).select_from(tables.events))
    return int(row[0])


async def walked(merchant: MerchantClient, query: str = "", per_page: int = 2) -> list[Any]:
    """Every event of a walk, page by page."""
    found: list[Any] = []
    after = ""
    while True:
        page = await merchant.get(f"/events?per_page={per_page}{query}{after}")
        data = check_success(page, ROW)
        found += data
        if not page.body["meta"]["has_more"]:
            return found
        assert len(data) == per_page
        after = f"&after={found[-1]['id']}"


async def test_events_are_the_bytes_of_their_webhooks(service: ServiceFixture, receiver: ScriptedServer) -> None:
    merchant = await service.merchant()
    await listen(merchant, receiver)
    await merchant.pay("0000", external_id="a", metadata={"prix": 1.50})
    await service.run_worker()
    await merchant.post("/payments/a/refund")
    await merchant.post("/webhooks/test")
    await service.run_worker()
    events = await walked(merchant)
    sent = {request.headers["x-service-delivery"]: request.body for request in receiver.received}
    listed = await merchant.get("/events")
    in_order = b",".join(sent[event["id"]] for event in events)
    assert listed.raw.startswith(b'{"success":true,"data":[' + in_order + b"]")
    names = ["payment.succeeded", "refund.succeeded", "payment.refunded", "webhook.test"]
    assert [event["event"] for event in events] == names
    assert await walked(merchant, "&type=refund.succeeded") == events[1:2]
    assert (await merchant.get(f"/events?after={events[-1]['id']}")).data == []


async def test_a_merchant_without_an_endpoint_has_events(service: ServiceFixture) -> None:
    merchant, other = await service.merchant(), await service.merchant()
    for ending in ("0000", "0003", "0001"):
        await merchant.post("/payments", {"amount": 5000, "operator": "mtn", "phone_number": f"2299700{ending}"})
    await service.run_worker()
    events = await walked(merchant)
    # What a 402 told has no event.
    assert sorted(event["event"] for event in events) == ["payment.failed", "payment.succeeded"]
    assert (await merchant.get("/webhooks/deliveries")).data == []
    assert await walked(other) == await walked(merchant.live) == []
    unknown = await other.get(f"/events?after={events[0]['id']}")
    assert refused_fields(unknown) == {"after"}


async def test_events_of_thirty_days_by_their_dates(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    begin = service.clock.now()
    for _ in range(5):
        await merchant.pay("0000")
        await service.run_worker(11 * 86400)
    events = await walked(merchant)
    assert len(events) == 3
    middle = quote(events[1]["created_at"])
    assert await walked(merchant, f"&from={middle}") == events[1:]
    assert await walked(merchant, f"&to={middle}") == events[:2]
    assert await walked(merchant, f"&from={iso(begin)}") == events
    assert refused_fields(await merchant.get("/events?from=x&type=x&per_page=0")) == {"type", "from", "per_page"}
    # Kept for thirty days at least, and no longer than that without a delivery.
    pruning = Pruning(service.ctx.db, service.ctx.settings)
    await pruning.step(later(service.clock.now(), 91 * DAY))
    assert await kept(service) == 0


@pytest.mark.both_databases
async def test_many_settlements_at_once_and_a_walk_among_them(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    seen: list[Any] = []

    async def follow() -> None:
        after = ""
        for _ in range(60):
            page = (await merchant.get(f"/events?per_page=5{after}")).data
            seen.extend(page)
            after = f"&after={seen[-1]['id']}" if seen else ""
            await asyncio.sleep(0)

    async def pay(number: int) -> None:
        payment = await merchant.pay("0000", external_id=str(number))
        await merchant.get(f"/payments/{payment['reference']}")

    await asyncio.gather(follow(), *(pay(number) for number in range(40)))
    after = f"&after={seen[-1]['id']}" if seen else ""
    seen += await walked(merchant, after, per_page=100)
    ids = [event["id"] for event in seen]
    assert len(ids) == len(set(ids)) == 40


@pytest.mark.both_databases
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_what_commits_late_is_not_skipped(service: ServiceFixture, settings: Settings) -> None:
    """A transaction that began before another and commits after a reader has seen that one."""
    merchant = await service.merchant()
    slow = await asyncpg.connect(settings.database_url)
    transaction = slow.transaction()
    await transaction.start()
    await slow.execute(
        "INSERT INTO events (merchant_id, env, reference, event, body, created_at) "
        "VALUES ($1, 'test', '00000000-0000-4000-8000-000000000001', 'webhook.test', $2, $3)",
        merchant.id,
        json.dumps({"id": "late"}),
        service.clock.now(),
    )
    await merchant.pay("0000")
    await service.run_worker()
    before = (await merchant.get("/events")).data
    await transaction.commit()
    await slow.close()
    after = f"?after={before[-1]['id']}" if before else ""
    shown = [*before, *(await merchant.get(f"/events{after}")).data]
    assert [each["id"] == "late" for each in shown] == [True, False]


@pytest.mark.both_databases
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_a_restored_dump_is_listed_after_migrate(service: ServiceFixture, settings: Settings) -> None:
    merchant = await service.merchant()
    for _ in range(3):
        await merchant.pay("0000")
        await service.run_worker()
    events = await walked(merchant)
    number = tables.events.c.transaction_id
    await service.ctx.db.write(update(tables.events).values(transaction_id=number + 1_000_000_000))
    assert await walked(merchant) == []
    await migrate.upgrade(settings)
    await merchant.pay("0000")
    await service.run_worker()
    assert (await walked(merchant))[:3] == events
    assert len(await walked(merchant)) == 4


# --- The present address, and sending again -----------------------------------------------------------------------


async def test_a_wrong_address_is_repaired(service: ServiceFixture, receiver: ScriptedServer) -> None:
    merchant = await service.merchant()
    async with ScriptedServer(answers(REFUSED), host="127.0.0.1") as wrong:
        wrong_url, right_url = wrong.url(path="/wrong"), receiver.url(path="/right")
        await merchant.put("/webhooks/endpoint", {"url": wrong_url})
        await merchant.pay("0000", external_id="a")
        await service.run_worker()
        [delivery] = (await merchant.get("/webhooks/deliveries")).data
        await merchant.put("/webhooks/endpoint", {"url": right_url})
        assert (await merchant.get("/webhooks/deliveries")).data == [delivery]
        assert delivery["url"] == wrong_url
        await service.run_worker(10)
        [delivery] = (await merchant.get("/webhooks/deliveries")).data
    assert (delivery["url"], delivery["status"], delivery["attempts"]) == (right_url, "success", 2)
    assert paths(receiver) == ["/right"]


async def test_a_callback_url_is_the_payments(service: ServiceFixture, receiver: ScriptedServer) -> None:
    merchant = await service.merchant()
    receiver.script = answers(REFUSED)
    await merchant.put("/webhooks/endpoint", {"url": receiver.url(path="/account")})
    await merchant.pay("0000", callback_url=receiver.url(path="/own"))
    await service.run_worker()
    await merchant.put("/webhooks/endpoint", {"url": receiver.url(path="/other")})
    await service.run_worker(10)
    assert paths(receiver) == ["/own"] * 2


async def test_a_delivery_is_sent_again_to_the_present_address(
    service: ServiceFixture, receiver: ScriptedServer
) -> None:
    merchant = await service.merchant()
    await listen(merchant, receiver)
    await merchant.pay("0000", external_id="a")
    await service.run_worker()
    [delivery] = (await merchant.get("/webhooks/deliveries")).data
    moved = receiver.url(path="/moved")
    await merchant.put("/webhooks/endpoint", {"url": moved})
    path = f"/webhooks/deliveries/{delivery['id']}/resend"
    again = check_success(await merchant.post(path), endpoint("POST", "/webhooks/deliveries/{id}/resend"))
    assert (again["status"], again["attempts"], again["url"]) == ("pending", 0, delivery["url"])
    pending = check_error(await merchant.post(path), "conflict")
    assert pending["reason"] == "delivery_pending"
    await service.run_worker()
    first, second = receiver.received
    assert (first.body, paths(receiver)[1]) == (second.body, "/moved")
    assert (await merchant.get("/webhooks/deliveries")).data[0]["url"] == moved
    await merchant.put("/webhooks/endpoint", {"url": None})
    assert check_error(await merchant.post(path), "conflict")["reason"] == "endpoint_disabled"
    other = await service.merchant()
    for missing in (await other.post(path), await merchant.post("/webhooks/deliveries/x/resend")):
        check_error(missing, "not_found")


@pytest.mark.both_databases
async def test_filters_by_status_and_date(service: ServiceFixture, receiver: ScriptedServer) -> None:
    merchant = await service.merchant()
    await listen(merchant, receiver)
    for scenario in ("refund_failed", "refund_pending", None):
        fields = {} if scenario is None else {"test_scenario": scenario}
        payment = await merchant.pay("0000", external_id=str(scenario), **fields)
        await service.run_worker()
        await merchant.post(f"/payments/{payment['reference']}/refund")
        await service.run_worker(60)
    everything = {path: (await merchant.get(path)).data for path in ("/refunds", "/webhooks/deliveries")}
    for path, rows in everything.items():
        for status in {row["status"] for row in rows} | {"pending"}:
            answer = await merchant.get(f"{path}?status={status}")
            expected = [row for row in rows if row["status"] == status]
            assert (answer.data, answer.body["meta"]["total"]) == (expected, len(expected)), (path, status)
        at = rows[1]["created_at"]
        assert (await merchant.get(f"{path}?from={at}")).data == [row for row in rows if row["created_at"] >= at]
        assert (await merchant.get(f"{path}?to={at}")).data == [row for row in rows if row["created_at"] <= at]
        assert refused_fields(await merchant.get(f"{path}?status=x&from=y")) == {"status", "from"}
    assert [row["status"] for row in everything["/refunds"]] == ["succeeded", "pending", "failed"]
    payment = everything["/refunds"][0]["payment_reference"]
    assert (await merchant.get(f"/refunds?payment_reference={payment}&status=failed")).data == []


@pytest.mark.both_databases
async def test_events_stay_when_their_deliveries_do(service: ServiceFixture, receiver: ScriptedServer) -> None:
    merchant = await service.merchant()
    await listen(merchant, receiver)
    await merchant.pay("0000")
    await service.run_worker()
    keep = service.ctx.settings.keep_deliveries_days
    for age, left in ((keep * DAY - MINUTE, 1), (keep * DAY + MINUTE, 0)):
        pruning = Pruning(service.ctx.db, service.ctx.settings)
        await pruning.step(later(service.clock.now(), age))
        assert await kept(service) == left
