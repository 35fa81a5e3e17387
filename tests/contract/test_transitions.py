"""Every transition of docs/contract.md with its event: in the test environment and, with an operator, in production."""

from collections.abc import Callable
from typing import Any

import pytest

from guichet.clock import SECOND
from tests.contract.shapes import check_error, check_resource, order
from tests.contract.tables import table
from tests.contract.webhooks import listen, notifications
from tests.fakes.http_server import Peer
from tests.fakes.scripted_provider import ScriptedOperator, done, refused
from tests.service_fixture import Account, House

PAYMENT = {row["Trigger"]: row for row in table("payment-transitions")}
REFUND = {row["Trigger"]: row for row in table("refund-transitions")}


async def _events(house: House, account: Account, peer: Peer, secret: str) -> list[tuple[str, str]]:
    """(event, status in its data) of everything delivered; the log says the same."""
    await house.settle()
    received = notifications(peer, secret, house.clock.now() // SECOND)
    log = (await account.get("/webhooks/deliveries?per_page=100")).data
    assert [(each["id"], each["event"]) for each in log[::-1]] == [(each.id, each.event) for each in received]
    assert all(check_resource("webhook-delivery", each)["status"] == "success" for each in log)
    assert all(each.livemode is (account.env == "live") for each in received)
    return [(each.event, each.data["status"]) for each in received]


async def test_payment_transitions_in_the_test_environment(house: House, receiver: Peer) -> None:
    shop = await house.merchant()
    secret = await listen(shop, receiver)
    created = await shop.pay("0000", external_id="good")
    assert created["status"] == PAYMENT["created"]["To"]
    assert (await shop.post("/payments", order(phone_number="22997000001", external_id="never"))).status == 402
    statuses = {p["external_id"]: p["status"] for p in (await shop.get("/payments")).data}
    assert statuses == {"good": "pending", "never": PAYMENT["refused_at_initiation"]["To"]}
    confirmed = (PAYMENT["confirmed"]["Event"], "succeeded")
    assert await _events(house, shop, receiver, secret) == [confirmed]
    assert (await shop.pay("0003", external_id="bad"))["status"] == "pending"
    assert await _events(house, shop, receiver, secret) == [confirmed, (PAYMENT["refused"]["Event"], "failed")]
    house.clock.advance(1)
    assert (await shop.post("/payments/good/refund")).status == 201
    assert (await _events(house, shop, receiver, secret))[2:] == [
        (REFUND["disbursed"]["Event"], "succeeded"),
        (PAYMENT["refunded"]["Event"], "refunded"),
    ]


async def test_updated_at_changes_with_the_status_only(house: House) -> None:
    shop = await house.merchant()
    created = await shop.pay("1234", external_id="a")
    assert created["updated_at"] == created["created_at"]
    house.clock.advance(5)
    assert (await shop.get("/payments/a")).data["updated_at"] == created["updated_at"]
    house.clock.advance(5)
    succeeded = (await shop.get("/payments/a")).data
    assert succeeded["updated_at"] > created["updated_at"]
    house.clock.advance(5)
    assert (await shop.get("/payments/a")).data == succeeded
    assert (await shop.post("/payments/a/refund")).status == 201
    refunded = (await shop.get("/payments/a")).data
    assert refunded["updated_at"] > succeeded["updated_at"]
    assert refunded == created | {"status": "refunded", "updated_at": refunded["updated_at"]}


@pytest.mark.parametrize(
    ("operators_word", "trigger"), [(done, "confirmed"), (refused, "refused")], ids=["confirmed", "refused"]
)
async def test_a_live_payment_becomes_what_the_operator_says(
    live_house: House, operator: ScriptedOperator, receiver: Peer, operators_word: Callable[..., Any], trigger: str
) -> None:
    shop = (await live_house.merchant()).live
    secret = await listen(shop, receiver)
    await shop.pay(external_id="a")
    assert (await shop.get("/payments/a")).data["status"] == "pending"
    assert await _events(live_house, shop, receiver, secret) == []
    operator.script("status", operators_word)
    read = check_resource("payment", (await shop.get("/payments/a")).data)
    assert read["status"] == PAYMENT[trigger]["To"]
    assert await _events(live_house, shop, receiver, secret) == [(PAYMENT[trigger]["Event"], read["status"])]


async def test_a_final_payment_never_changes_again(live_house: House, operator: ScriptedOperator) -> None:
    shop = (await live_house.merchant()).live
    await shop.pay(external_id="a")
    operator.script("status", refused)
    failed = (await shop.get("/payments/a")).data
    operator.script("status", done)
    await live_house.settle(100_000)
    assert (await shop.get("/payments/a")).data == failed
    check_error(await shop.post("/payments/a/refund"), "conflict")


async def _live_success(house: House, operator: ScriptedOperator) -> Account:
    shop = (await house.merchant()).live
    await shop.pay(external_id="a")
    operator.script("status", done)
    assert (await shop.get("/payments/a")).data["status"] == "succeeded"
    return shop


async def test_a_live_refund_is_pending_until_it_was_disbursed(
    live_house: House, operator: ScriptedOperator, receiver: Peer
) -> None:
    shop = await _live_success(live_house, operator)
    secret = await listen(shop, receiver)
    requested = check_resource("refund", (await shop.post("/payments/a/refund", {"reason": "Retour"})).data)
    assert (requested["status"], requested["processed_at"]) == (REFUND["requested"]["To"], None)
    assert requested["amount"] == (await shop.get("/payments/a")).data["total_amount"]
    assert await _events(live_house, shop, receiver, secret) == []
    check_error(await shop.post("/payments/a/refund"), "conflict")

    operator.script("refund_status", done)
    live_house.clock.advance(60)
    read = check_resource("refund", (await shop.get(f"/refunds/{requested['reference']}")).data)
    assert read == requested | {"status": REFUND["disbursed"]["To"], "processed_at": read["processed_at"]}
    assert read["processed_at"] > read["created_at"]
    assert (await shop.get("/payments/a")).data["status"] == PAYMENT["refunded"]["To"]
    assert await _events(live_house, shop, receiver, secret) == [
        (REFUND["disbursed"]["Event"], "succeeded"),
        (PAYMENT["refunded"]["Event"], "refunded"),
    ]
    assert len(operator.reversals) == 1


async def test_a_live_refund_that_the_operator_refuses(
    live_house: House, operator: ScriptedOperator, receiver: Peer
) -> None:
    shop = await _live_success(live_house, operator)
    secret = await listen(shop, receiver)
    operator.script("refund", refused)
    assert (await shop.get("/balance")).data["balance"] == 5000
    refund = (await shop.post("/payments/a/refund")).data
    assert (await shop.get("/balance")).data["balance"] == 0
    assert await _events(live_house, shop, receiver, secret) == [(REFUND["refused"]["Event"], REFUND["refused"]["To"])]
    read = check_resource("refund", (await shop.get(f"/refunds/{refund['reference']}")).data)
    assert read["status"] == "failed"
    assert (await shop.get("/payments/a")).data["status"] == "succeeded"
    assert (await shop.get("/balance")).data["balance"] == 5000
    check_error(await shop.post("/payments/a/refund"), "conflict")
