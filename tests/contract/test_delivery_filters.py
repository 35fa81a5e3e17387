"""`GET /webhooks/deliveries` by status, event and payment, and what a delivery says of itself; refunds by payment."""

from typing import Any

import pytest

from tests.contract.shapes import check_resource, check_success, endpoint, refused_fields
from tests.contract.webhooks import listen
from tests.fakes.http_server import ScriptedServer, answers
from tests.service_fixture import MerchantClient, ServiceFixture

REFUSES = answers(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
NOTHING = "11111111-2222-4333-8444-555555555555"


async def _refunded(merchant: MerchantClient) -> Any:
    """A payment with the three events payment.succeeded, refund.succeeded, payment.refunded."""
    payment = await merchant.pay("0000")
    assert (await merchant.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
    assert (await merchant.post(f"/payments/{payment['reference']}/refund")).status == 201
    return payment


@pytest.mark.both_databases
async def test_every_filter_and_combination(service: ServiceFixture, receiver: ScriptedServer) -> None:
    merchant = await service.merchant()
    await listen(merchant, receiver)
    first = await _refunded(merchant)
    await service.run_worker()
    receiver.script = REFUSES
    second = await _refunded(merchant)
    await merchant.pay("0003")
    await merchant.post("/webhooks/test")
    await service.run_worker()
    everything = (await merchant.get("/webhooks/deliveries")).data
    assert len(everything) == 8

    for status in (None, "pending", "success", "failed"):
        for event in (None, "payment.succeeded", "payment.failed", "refund.succeeded", "webhook.test", "dispute.won"):
            for payment in (None, first["reference"], second["reference"]):
                wanted = {"status": status, "event": event, "payment_reference": payment}
                query = "&".join(f"{name}={value}" for name, value in wanted.items() if value is not None)
                expected = [
                    each
                    for each in everything
                    if all(each[name] == value for name, value in wanted.items() if value is not None)
                ]
                answer = await merchant.get(f"/webhooks/deliveries?{query}")
                assert check_success(answer, endpoint("GET", "/webhooks/deliveries")) == expected, query
                assert answer.body["meta"]["total"] == len(expected), query
                oldest = await merchant.get(f"/webhooks/deliveries?{query}&order=asc&per_page=2")
                assert oldest.data == expected[::-1][:2], query
                if len(expected) > 2:
                    after = f"&order=asc&after={expected[::-1][1]['id']}"
                    rest = await merchant.get(f"/webhooks/deliveries?{query}{after}")
                    assert rest.data == expected[::-1][2:], query


async def test_totals_follow_what_becomes_of_the_deliveries(service: ServiceFixture, receiver: ScriptedServer) -> None:
    """Before and after the worker has added the changes up; and once they are gone."""
    merchant = await service.merchant()
    await listen(merchant, receiver)

    async def totals() -> list[int]:
        found = [await merchant.get(f"/webhooks/deliveries?status={s}") for s in ("pending", "success", "failed")]
        assert all(len(each.data) == each.body["meta"]["total"] for each in found)
        return [each.body["meta"]["total"] for each in found]

    await merchant.post("/webhooks/test")
    await merchant.post("/webhooks/test")
    assert await totals() == [2, 0, 0]
    await service.run_worker()
    assert await totals() == [0, 2, 0]
    receiver.script = REFUSES
    await merchant.post("/webhooks/test")
    await service.run_worker()
    assert await totals() == [1, 2, 0]
    await merchant.put("/webhooks/endpoint", {"url": None})
    assert await totals() == [0, 2, 1]
    await service.run_worker(100 * 86_400)
    assert await totals() == [0, 0, 0]
    assert (await merchant.get("/webhooks/deliveries?event=webhook.test")).body["meta"]["total"] == 0


async def test_a_delivery_says_why_it_failed_and_when_it_is_tried_again(
    service: ServiceFixture, receiver: ScriptedServer
) -> None:
    merchant = await service.merchant()
    await listen(merchant, receiver)
    payment = await merchant.pay("0000")
    await merchant.get(f"/payments/{payment['reference']}")
    [waiting] = (await merchant.get("/webhooks/deliveries")).data
    assert check_resource("webhook-delivery", waiting)["payment_reference"] == payment["reference"]
    assert (waiting["error"], waiting["next_attempt_at"]) == (None, waiting["created_at"])
    receiver.script = REFUSES
    await service.run_worker()
    [refused] = (await merchant.get("/webhooks/deliveries")).data
    assert (refused["response_code"], refused["error"]) == (503, "Votre serveur a répondu par un autre statut que 2xx.")
    assert refused["next_attempt_at"] > refused["created_at"]
    receiver.script = answers(b"HTTP/1.1 204 No Content\r\n\r\n")
    await service.run_worker(10)
    [arrived] = (await merchant.get("/webhooks/deliveries")).data
    assert (arrived["status"], arrived["error"], arrived["next_attempt_at"]) == ("success", None, None)


async def test_a_delivery_that_reaches_nobody_says_so(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.put("/webhooks/endpoint", {"url": "https://10.0.0.1/h"})
    await merchant.post("/webhooks/test")
    await service.run_worker()
    [entry] = (await merchant.get("/webhooks/deliveries")).data
    assert (entry["payment_reference"], entry["response_code"]) == (None, None)
    assert "ne mène à aucune adresse publique" in entry["error"]
    await merchant.put("/webhooks/endpoint", {"url": None})
    [entry] = (await merchant.get("/webhooks/deliveries")).data
    assert (entry["status"], entry["next_attempt_at"]) == ("failed", None)
    assert "désactivés" in entry["error"]


@pytest.mark.parametrize("path", ["/webhooks/deliveries", "/refunds"])
async def test_a_payment_that_is_not_there_has_nothing(shared_service: ServiceFixture, path: str) -> None:
    merchant, other = await shared_service.merchant(), await shared_service.merchant()
    await merchant.put("/webhooks/endpoint", {"url": "http://127.0.0.1:9/h"})
    payment = await _refunded(merchant)
    unpaid = await other.pay()
    assert (await merchant.get(f"{path}?payment_reference={payment['reference'].upper()}")).body["meta"]["total"] > 0
    for account, reference in (
        (merchant, NOTHING),
        (merchant, "x"),
        (merchant, "%00"),
        (merchant, ""),
        (merchant, unpaid["reference"]),
        (other, payment["reference"]),
        (other, unpaid["reference"]),
        (merchant.live, payment["reference"]),
    ):
        answer = await account.get(f"{path}?payment_reference={reference}")
        assert (answer.data, answer.body["meta"]["total"]) == ([], 0), reference


async def test_the_refund_of_a_payment(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    first, second = await _refunded(merchant), await _refunded(merchant)
    [of_first] = (await merchant.get(f"/refunds?payment_reference={first['reference']}")).data
    assert check_resource("refund", of_first)["payment_reference"] == first["reference"]
    [of_second] = (await merchant.get(f"/refunds?payment_reference={second['reference']}")).data
    base = f"/refunds?payment_reference={second['reference']}"
    for query, found in (("&page=2", False), (f"&order=asc&after={of_first['reference']}", True), ("", True)):
        answer = await merchant.get(f"{base}{query}")
        assert (answer.data, answer.body["meta"]["total"]) == ([of_second] if found else [], 1)
    assert (await merchant.get(f"{base}&after={of_second['reference']}")).data == []


@pytest.mark.parametrize("name", ["status", "event"])
async def test_other_words_are_refused(shared_service: ServiceFixture, name: str) -> None:
    merchant = await shared_service.merchant()
    for word in ("", "x", "SUCCESS", "payment", "%00"):
        assert refused_fields(await merchant.get(f"/webhooks/deliveries?{name}={word}")) == {name}
    both = await merchant.get("/webhooks/deliveries?status=x&event=x&page=0")
    assert refused_fields(both) == {"status", "event", "page"}
