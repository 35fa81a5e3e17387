"""FedaPay on the wire: transactions, tokens, the request for the PIN, the page, payouts and signed events."""

import json
from typing import Any

import pytest

from guichet.clock import SystemClock
from guichet.providers.shared.signatures import verify_signature
from guichet_simulator.app import SECRETS
from tests.guichet_simulator.conftest import CallbackReceiver, Simulator

KEY = {"Authorization": "Bearer sk_live_simulator"}
SANDBOX = {"Authorization": "Bearer sk_sandbox_simulator"}
TRANSACTIONS, PAYOUTS = "/fedapay/v1/transactions", "/fedapay/v1/payouts"
PHONE = {"number": "+2290161000000", "country": "bj"}


def order(reference: str | None = "ref-1", **changes: Any) -> dict[str, Any]:
    ours = {"merchant_reference": reference, "custom_metadata": {"reference": reference}}
    return {"description": "Commande 1", "amount": 500, "currency": {"iso": "XOF"}, **ours, **changes}


async def created(simulator: Simulator, reference: str = "ref-1", **changes: Any) -> Any:
    """A transaction, and its token."""
    body = await simulator.json("POST", TRANSACTIONS, json=order(reference, **changes), headers=KEY)
    found = body["v1/transaction"]
    token = await simulator.json("POST", f"{TRANSACTIONS}/{found['id']}/token", json={}, headers=KEY)
    return found | token


async def push(simulator: Simulator, token: str, status: int = 200, mode: str = "moov", **phone: str) -> Any:
    body = {"token": token, "phone_number": {**PHONE, **phone}}
    return await simulator.json("POST", f"/fedapay/v1/{mode}", status, json=body, headers=KEY)


async def read(simulator: Simulator, number: int) -> Any:
    return (await simulator.json("GET", f"{TRANSACTIONS}/{number}", headers=KEY))["v1/transaction"]


async def test_money_moves_only_after_the_pin(simulator: Simulator) -> None:
    made = await created(simulator)
    assert (made["status"], made["merchant_reference"]) == ("pending", "ref-1")
    assert (await simulator.truth())["transactions"] == []
    await push(simulator, made["token"])
    [held] = (await simulator.truth())["transactions"]
    await simulator.press(held["id"], "approve")
    paid = await read(simulator, made["id"])
    assert (paid["status"], paid["mode"], paid["amount"], paid["metadata"]) == ("approved", "moov", 500, {})
    assert await simulator.debits(reference="ref-1") == 1
    await push(simulator, made["token"], 400)


async def test_our_reference_is_unique_and_finds_the_first(simulator: Simulator) -> None:
    made = await created(simulator)
    refused = await simulator.json("POST", TRANSACTIONS, 422, json=order(), headers=KEY)
    assert "merchant_reference" in refused["errors"]
    path = f"{TRANSACTIONS}/merchant/ref-1"
    found = (await simulator.json("GET", path, params={"include": "currency"}, headers=KEY))["v1/transaction"]
    assert (found["id"], found["currency"]["iso"], found["currency_id"]) == (made["id"], "XOF", 1)
    for unknown in (f"{TRANSACTIONS}/merchant/ref-2", f"{TRANSACTIONS}/99", f"{PAYOUTS}/merchant/ref-1"):
        await simulator.json("GET", unknown, 404, headers=KEY)


@pytest.mark.parametrize(
    ("changes", "status"),
    [({"amount": 99}, 400), ({"amount": "500"}, 400), ({"currency": {"iso": "EUR"}}, 400), ({"description": ""}, 400)],
)
async def test_wrong_fields_are_refused(simulator: Simulator, changes: dict[str, Any], status: int) -> None:
    await simulator.json("POST", TRANSACTIONS, status, json=order(**changes), headers=KEY)


async def test_a_network_that_is_not_open_and_a_wrong_number_are_refused(simulator: Simulator) -> None:
    token = (await created(simulator))["token"]
    assert (await push(simulator, token, 400, mode="wave_ci"))["message"] == "Opération non autorisée"
    await push(simulator, token, 400, number="+2250701020304")
    await push(simulator, token, 400, number="")
    body = {"token": token, "phone_number": "+2290161000000"}
    async with simulator.http.post(f"{simulator.url}/fedapay/v1/moov", json=body, headers=KEY) as answer:
        assert (answer.status, await answer.read()) == (500, b"")
    sandboxed = {"token": token, "phone_number": PHONE}
    await simulator.json("POST", "/fedapay/v1/moov", 400, json=sandboxed, headers=SANDBOX)
    await simulator.json("POST", "/fedapay/v1/momo_test", json=sandboxed, headers=SANDBOX)


async def test_on_the_page_another_number_may_pay_over_another_network(simulator: Simulator) -> None:
    made = await created(simulator, callback_url="https://shop.example/back")
    url = made["url"].removeprefix(simulator.url)
    async with simulator.http.get(f"{simulator.url}{url}", params={"mode": "wave_ci"}) as page:
        assert page.status == 200
    [held] = (await simulator.truth())["transactions"]
    decision = {"decision": "approve", "payer": "2250777120042"}
    await simulator.json("POST", f"/control/transactions/{held['id']}/decide", json=decision)
    paid = await read(simulator, made["id"])
    assert (paid["mode"], paid["metadata"]["paid_customer"]["phone"]) == ("wave_ci", "+2250777120042")
    async with simulator.http.get(f"{simulator.url}/fedapay/pay/unknown") as page:
        assert page.status == 404


async def test_a_transaction_that_nobody_was_asked_to_pay_can_be_deleted(simulator: Simulator) -> None:
    first, second = await created(simulator, "ref-1"), await created(simulator, "ref-2")
    await simulator.json("DELETE", f"{TRANSACTIONS}/{first['id']}", 204, headers=KEY)
    await push(simulator, first["token"], 400)
    await push(simulator, second["token"])
    await simulator.json("DELETE", f"{TRANSACTIONS}/{second['id']}", 400, headers=KEY)


def payout(reference: str = "back-1", **changes: Any) -> dict[str, Any]:
    customer = {"firstname": "Awa", "lastname": "Diop", "phone_number": PHONE}
    return order(reference, **{"mode": "moov", "customer": customer, **changes})


async def start(simulator: Simulator, number: int, status: int = 200) -> Any:
    return await simulator.json("PUT", f"{PAYOUTS}/start", status, json={"payouts": [{"id": number}]}, headers=KEY)


async def test_a_payout_moves_money_once_it_is_started_and_once_only(simulator: Simulator) -> None:
    made = (await simulator.json("POST", PAYOUTS, json=payout(), headers=KEY))["v1/payout"]
    assert made["status"] == "pending"
    assert await simulator.credits() == 0
    await simulator.force("fedapay", "succeeds", "credit", after=0)
    assert (await start(simulator, made["id"]))["v1/payouts"][0]["id"] == made["id"]
    found = await simulator.json("GET", f"{PAYOUTS}/merchant/back-1", headers=KEY)
    assert found["v1/payout"]["status"] == "sent"
    await start(simulator, made["id"], 400)
    await start(simulator, 99, 404)
    assert await simulator.credits(reference="back-1") == 1


async def test_payouts_have_limits_and_modes_of_their_own(simulator: Simulator) -> None:
    for number in range(4):
        await simulator.force("fedapay", "succeeds", "credit", after=0)
        made = await simulator.json("POST", PAYOUTS, json=payout(f"back-{number}"), headers=KEY)
        await start(simulator, made["v1/payout"]["id"], 400 if number == 3 else 200)
    await simulator.json("POST", PAYOUTS, 400, json=payout("more", amount=1_000_001), headers=KEY)
    await simulator.json("POST", PAYOUTS, 400, json=payout("none", mode="free_sn"), headers=KEY)
    async with simulator.http.post(f"{simulator.url}{PAYOUTS}", json=payout("bad", mode=None), headers=KEY) as answer:
        assert answer.status == 500


async def test_a_payout_and_a_transaction_may_have_the_same_id(simulator: Simulator) -> None:
    transaction = await created(simulator)
    made = (await simulator.json("POST", PAYOUTS, json=payout(), headers=KEY))["v1/payout"]
    assert made["id"] == transaction["id"]


async def test_lists_come_in_pages(simulator: Simulator) -> None:
    for number in range(5):
        await created(simulator, f"ref-{number}")
    query = {"search": "*", "page": "2", "per_page": "2"}
    found = await simulator.json("GET", f"{TRANSACTIONS}/search", params=query, headers=KEY)
    assert [row["merchant_reference"] for row in found["v1/transactions"]] == ["ref-2", "ref-1"]
    assert (found["meta"]["next_page"], found["meta"]["total_count"]) == (3, 5)


async def test_events_are_signed(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    dashboard = {"family": "fedapay", "callback_url": f"{callback_receiver.url}/hook"}
    await simulator.json("POST", "/control/dashboard", json=dashboard)
    await simulator.force("fedapay", "forged_callback", after=1)
    await push(simulator, (await created(simulator))["token"])
    forged, true = await callback_receiver.wait_for(2)
    valid = [
        verify_signature(
            each.headers["x-fedapay-signature"],
            each.body,
            secret=SECRETS["fedapay"],
            separator=b".",
            now=SystemClock().now(),
            scheme="s",
        )
        for each in (forged, true)
    ]
    assert valid == [False, True]
    assert [json.loads(each.body)["name"] for each in (forged, true)] == [
        "transaction.approved",
        "transaction.declined",
    ]
    assert json.loads(true.body)["entity"]["merchant_reference"] == "ref-1"
