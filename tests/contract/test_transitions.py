"""Every transition of docs/contract.md with its event: in the test environment and, with an operator, in production."""

from collections.abc import Callable
from typing import Any

import pytest

from guichet.clock import SECOND
from tests.contract.shapes import check_error, check_resource, order
from tests.contract.tables import table
from tests.contract.webhooks import listen, notifications
from tests.fakes.http_server import ScriptedServer
from tests.fakes.scripted_provider import ScriptedProvider, done, refused
from tests.service_fixture import MerchantClient, ServiceFixture

PAYMENT = {row["Trigger"]: row for row in table("payment-transitions")}
REFUND = {row["Trigger"]: row for row in table("refund-transitions")}


async def _events(
    service: ServiceFixture, account: MerchantClient, server: ScriptedServer, secret: str
) -> list[tuple[str, str]]:
    """(event, status in its data) of everything delivered; the log says the same."""
    await service.run_worker()
    received = notifications(server, secret, service.clock.now() // SECOND)
    log = (await account.get("/webhooks/deliveries?per_page=100")).data
    assert [(each["id"], each["event"]) for each in log[::-1]] == [(each.id, each.event) for each in received]
    assert all(check_resource("webhook-delivery", each)["status"] == "success" for each in log)
    assert all(each.livemode is (account.env == "live") for each in received)
    return [(each.event, each.data["status"]) for each in received]


async def test_payment_transitions_in_the_test_environment(service: ServiceFixture, receiver: ScriptedServer) -> None:
    merchant = await service.merchant()
    secret = await listen(merchant, receiver)
    created = await merchant.pay("0000", external_id="good")
    assert created["status"] == PAYMENT["created"]["To"]
    assert (await merchant.post("/payments", order(phone_number="22997000001", external_id="never"))).status == 402
    statuses = {p["external_id"]: p["status"] for p in (await merchant.get("/payments")).data}
    assert statuses == {"good": "pending", "never": PAYMENT["refused_at_initiation"]["To"]}
    confirmed = (PAYMENT["confirmed"]["Event"], "succeeded")
    assert await _events(service, merchant, receiver, secret) == [confirmed]
    assert (await merchant.pay("0003", external_id="bad"))["status"] == "pending"
    assert await _events(service, merchant, receiver, secret) == [confirmed, (PAYMENT["refused"]["Event"], "failed")]
    service.clock.advance(1)
    assert (await merchant.post("/payments/good/refund")).status == 201
    assert (await _events(service, merchant, receiver, secret))[2:] == [
        (REFUND["disbursed"]["Event"], "succeeded"),
        (PAYMENT["refunded"]["Event"], "refunded"),
    ]


async def test_updated_at_changes_with_the_status_only(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    created = await merchant.pay("1234", external_id="a")
    assert created["updated_at"] == created["created_at"]
    service.clock.advance(5)
    assert (await merchant.get("/payments/a")).data["updated_at"] == created["updated_at"]
    service.clock.advance(5)
    succeeded = (await merchant.get("/payments/a")).data
    assert succeeded["updated_at"] > created["updated_at"]
    service.clock.advance(5)
    assert (await merchant.get("/payments/a")).data == succeeded
    assert (await merchant.post("/payments/a/refund")).status == 201
    refunded = (await merchant.get("/payments/a")).data
    assert refunded["updated_at"] > succeeded["updated_at"]
    assert refunded == created | {"status": "refunded", "updated_at": refunded["updated_at"]}


@pytest.mark.parametrize(
    ("operators_word", "trigger"), [(done, "confirmed"), (refused, "refused")], ids=["confirmed", "refused"]
)
async def test_a_live_payment_becomes_what_the_operator_says(
    live_service: ServiceFixture,
    operator: ScriptedProvider,
    receiver: ScriptedServer,
    operators_word: Callable[..., Any],
    trigger: str,
) -> None:
    merchant = (await live_service.merchant()).live
    secret = await listen(merchant, receiver)
    await merchant.pay(external_id="a")
    assert (await merchant.get("/payments/a")).data["status"] == "pending"
    assert await _events(live_service, merchant, receiver, secret) == []
    operator.script("status", operators_word)
    read = check_resource("payment", (await merchant.get("/payments/a")).data)
    assert read["status"] == PAYMENT[trigger]["To"]
    assert await _events(live_service, merchant, receiver, secret) == [(PAYMENT[trigger]["Event"], read["status"])]


async def test_a_final_payment_never_changes_again(live_service: ServiceFixture, operator: ScriptedProvider) -> None:
    merchant = (await live_service.merchant()).live
    await merchant.pay(external_id="a")
    operator.script("status", refused)
    failed = (await merchant.get("/payments/a")).data
    operator.script("status", done)
    await live_service.run_worker(100_000)
    assert (await merchant.get("/payments/a")).data == failed
    check_error(await merchant.post("/payments/a/refund"), "conflict")


async def _live_success(service: ServiceFixture, operator: ScriptedProvider) -> MerchantClient:
    merchant = (await service.merchant()).live
    await merchant.pay(external_id="a")
    operator.script("status", done)
    assert (await merchant.get("/payments/a")).data["status"] == "succeeded"
    return merchant


async def test_a_live_refund_is_pending_until_it_was_disbursed(
    live_service: ServiceFixture, operator: ScriptedProvider, receiver: ScriptedServer
) -> None:
    merchant = await _live_success(live_service, operator)
    secret = await listen(merchant, receiver)
    requested = check_resource("refund", (await merchant.post("/payments/a/refund", {"reason": "Retour"})).data)
    assert (requested["status"], requested["processed_at"]) == (REFUND["requested"]["To"], None)
    assert requested["amount"] == (await merchant.get("/payments/a")).data["total_amount"]
    assert await _events(live_service, merchant, receiver, secret) == []
    check_error(await merchant.post("/payments/a/refund"), "conflict")

    operator.script("refund_status", done)
    live_service.clock.advance(60)
    read = check_resource("refund", (await merchant.get(f"/refunds/{requested['reference']}")).data)
    assert read == requested | {"status": REFUND["disbursed"]["To"], "processed_at": read["processed_at"]}
    assert read["processed_at"] > read["created_at"]
    assert (await merchant.get("/payments/a")).data["status"] == PAYMENT["refunded"]["To"]
    assert await _events(live_service, merchant, receiver, secret) == [
        (REFUND["disbursed"]["Event"], "succeeded"),
        (PAYMENT["refunded"]["Event"], "refunded"),
    ]
    assert len(operator.refund_requests) == 1


async def test_a_live_refund_that_the_operator_refuses(
    live_service: ServiceFixture, operator: ScriptedProvider, receiver: ScriptedServer
) -> None:
    merchant = await _live_success(live_service, operator)
    secret = await listen(merchant, receiver)
    operator.script("refund", refused)
    assert (await merchant.get("/balance")).data["balance"] == 5000
    refund = (await merchant.post("/payments/a/refund")).data
    assert (await merchant.get("/balance")).data["balance"] == 0
    assert await _events(live_service, merchant, receiver, secret) == [
        (REFUND["refused"]["Event"], REFUND["refused"]["To"])
    ]
    read = check_resource("refund", (await merchant.get(f"/refunds/{refund['reference']}")).data)
    assert read["status"] == "failed"
    assert (await merchant.get("/payments/a")).data["status"] == "succeeded"
    assert (await merchant.get("/balance")).data["balance"] == 5000
    check_error(await merchant.post("/payments/a/refund"), "conflict")
