"""Stripe Checkout over real HTTP: one request for each row of the tables in docs/providers."""

import asyncio
import hashlib
import hmac
import json
import time
from typing import Any

import aiohttp
import pytest

from tests.guichet_simulator.conftest import CallbackReceiver, Received, Simulator
from tests.patience import PATIENCE

SESSIONS = "/stripe/v1/checkout/sessions"
KEY = {"Authorization": "Bearer sk_live_key"}
SECRET = "whsec_simulator"


def order(**more: str) -> dict[str, str]:
    price = "line_items[0][price_data]"
    return {
        "mode": "payment",
        "line_items[0][quantity]": "1",
        f"{price}[currency]": "xof",
        f"{price}[unit_amount]": "1000",
        f"{price}[product_data][name]": "Commande",
        "payment_method_types[0]": "card",
        "success_url": "https://m.example/ok?s={CHECKOUT_SESSION_ID}",
        "cancel_url": "https://m.example/ko",
        "client_reference_id": "ref-1",
        "metadata[order]": "1",
        **more,
    }


async def create(simulator: Simulator, status: int = 200, key: str = "", **more: Any) -> Any:
    headers = KEY | ({"Idempotency-Key": key} if key else {})
    return await simulator.json("POST", SESSIONS, status, data=order(**more), headers=headers)


async def read(simulator: Simulator, session: str) -> Any:
    return await simulator.json("GET", f"{SESSIONS}/{session}", headers=KEY)


async def give_back(simulator: Simulator, intent: str, status: int = 200, key: str = "", **more: str) -> Any:
    headers = KEY | ({"Idempotency-Key": key} if key else {})
    form = {"payment_intent": intent, "metadata[reference]": "refund-1", **more}
    return await simulator.json("POST", "/stripe/v1/refunds", status, data=form, headers=headers)


def signed_well(notice: Received) -> bool:
    parts = dict(part.split("=", 1) for part in notice.headers["stripe-signature"].split(","))
    expected = hmac.new(SECRET.encode(), f"{parts['t']}.".encode() + notice.body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, parts["v1"]) and abs(time.time() - int(parts["t"])) < 300


async def test_a_checkout_is_created_paid_and_read(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    await simulator.json("POST", "/control/dashboard", json={"family": "stripe", "callback_url": callback_receiver.url})
    session = await create(simulator)
    assert session["id"].startswith("cs_live_")
    assert (session["status"], session["payment_status"], session["payment_intent"]) == ("open", "unpaid", None)
    assert (session["amount_total"], session["currency"], session["metadata"]) == (1000, "xof", {"order": "1"})
    async with simulator.http.get(session["url"]) as answer:
        assert "SIMULATEUR" in await answer.text()
    [held] = (await simulator.truth(reference="ref-1"))["transactions"]
    assert held["amount"] == "1000"
    back = f"https://m.example/ok?s={session['id']}"
    assert await simulator.press(held["id"], "approve", hosted="1") == (303, back)
    done = await read(simulator, session["id"])
    assert (done["status"], done["payment_status"], done["url"]) == ("complete", "paid", None)
    assert done["payment_intent"].startswith("pi_")
    [notice] = await callback_receiver.wait_for(1)
    event = json.loads(notice.body)
    assert (event["type"], event["data"]["object"]) == ("checkout.session.completed", done)
    assert signed_well(notice)
    assert await simulator.debits(reference="ref-1") == 1


async def test_a_declined_card_leaves_the_session_open(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    await simulator.json("POST", "/control/dashboard", json={"family": "stripe", "callback_url": callback_receiver.url})
    session = await create(simulator)
    [held] = (await simulator.truth())["transactions"]
    assert await simulator.press(held["id"], "insufficient", hosted="1") == (303, session["url"])
    assert (await read(simulator, session["id"]))["status"] == "open"
    [notice] = await callback_receiver.wait_for(1)
    event = json.loads(notice.body)
    assert event["type"] == "payment_intent.payment_failed"
    assert event["data"]["object"]["last_payment_error"]["decline_code"] == "insufficient_funds"
    async with asyncio.timeout(PATIENCE):
        while (await read(simulator, session["id"]))["status"] != "expired":
            await simulator.passing()
    await callback_receiver.wait_for(2)
    assert json.loads(callback_receiver.received[1].body)["type"] == "checkout.session.expired"
    assert await simulator.debits() == 0


async def test_amounts_are_in_the_smallest_unit_of_the_currency(simulator: Simulator) -> None:
    await simulator.force("stripe", "final_success")
    more: dict[str, Any] = {
        "line_items[0][price_data][currency]": "eur",
        "line_items[0][price_data][unit_amount]": "1250",
    }
    session = await create(simulator, **more)
    assert session["amount_total"] == 1250
    [entry] = (await simulator.truth())["books"]
    assert (entry["debited"], entry["currency"]) == ("12.5", "EUR")
    balance = await simulator.json("GET", "/stripe/v1/balance", headers=KEY)
    assert balance["available"] == [{"amount": 1250, "currency": "eur"}]


REFUSED = [
    ("mode", "setup"),
    ("line_items[0][price_data][currency]", "XOF"),
    ("line_items[0][price_data][currency]", "zzz"),
    ("line_items[0][price_data][unit_amount]", "0"),
    ("line_items[0][price_data][unit_amount]", "123456789"),
    ("line_items[0][price_data][product_data][name]", ""),
    ("success_url", ""),
    ("client_reference_id", "x" * 201),
    ("expires_at", "1"),
]


@pytest.mark.parametrize(("param", "value"), REFUSED)
async def test_invalid_parameters_are_refused(simulator: Simulator, param: str, value: str) -> None:
    answer = await create(simulator, 400, **{param: value})
    assert (answer["error"]["type"], answer["error"]["param"]) == ("invalid_request_error", param)


async def test_a_repeated_idempotency_key_returns_the_first_object(simulator: Simulator) -> None:
    await simulator.force("stripe", "error_500")
    assert (await create(simulator, 500, key="k1"))["error"]["type"] == "api_error"
    first = await create(simulator, key="k1")
    async with simulator.http.post(
        f"{simulator.url}{SESSIONS}", data=order(), headers=KEY | {"Idempotency-Key": "k1"}
    ) as answer:
        assert answer.headers["idempotent-replayed"] == "true"
        assert await answer.json() == first
    other = await create(simulator, 400, key="k1", client_reference_id="ref-2")
    assert other["error"]["type"] == "idempotency_error"
    assert len((await simulator.truth())["transactions"]) == 1
    await create(simulator, key="k2")
    assert len((await simulator.truth())["transactions"]) == 2
    await simulator.force("stripe", "lost_answer")
    with pytest.raises(aiohttp.ClientError):
        await create(simulator, key="k3")
    await create(simulator, key="k3")
    assert len((await simulator.truth())["transactions"]) == 3


FAULTS = [
    ("refused", 400, "invalid_request_error", 0),
    ("not_configured", 403, "invalid_request_error", 0),
    ("unauthorized", 401, "invalid_request_error", 0),
    ("rate_limited", 429, "rate_limit_error", 0),
    ("unavailable", 503, "api_error", 0),
    ("error_500_not_stored", 500, "api_error", 0),
]


@pytest.mark.parametrize(("scenario", "status", "kind", "stored"), FAULTS)
async def test_each_fault_gives_its_response(
    simulator: Simulator, scenario: str, status: int, kind: str, stored: int
) -> None:
    await simulator.force("stripe", scenario)
    assert (await create(simulator, status))["error"]["type"] == kind
    assert len((await simulator.truth())["transactions"]) == stored


async def test_unknown_objects_and_keys_are_refused(simulator: Simulator) -> None:
    answer = await simulator.json("GET", f"{SESSIONS}/cs_x", 404, headers=KEY)
    assert answer["error"]["code"] == "resource_missing"
    await simulator.json("GET", f"{SESSIONS}/cs_x", 401)
    await simulator.json("GET", f"{SESSIONS}/cs_x", 401, headers={"Authorization": "Bearer sk_invalid"})


async def test_scenarios_change_the_stated_amount_and_currency(simulator: Simulator) -> None:
    for scenario, amount, currency in (("wrong_amount", 999, "xof"), ("wrong_currency", 1000, "xaf")):
        await simulator.force("stripe", scenario, after=0)
        session = await create(simulator)
        done = await read(simulator, session["id"])
        assert (done["payment_status"], done["amount_total"], done["currency"]) == ("paid", amount, currency)


async def test_an_open_session_can_be_expired(simulator: Simulator) -> None:
    session = await create(simulator)
    path = f"{SESSIONS}/{session['id']}/expire"
    assert (await simulator.json("POST", path, headers=KEY))["status"] == "expired"
    await simulator.json("POST", path, 400, headers=KEY)


async def test_untrue_events_are_sent(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    await simulator.json("POST", "/control/dashboard", json={"family": "stripe", "callback_url": callback_receiver.url})
    await create(simulator)
    [held] = (await simulator.truth())["transactions"]
    for forged in (True, True, False):
        claim = {"transaction": held["id"], "claim": "succeeded", "forged": forged}
        await simulator.json("POST", "/control/callbacks", 202, json=claim)
    notices = await callback_receiver.wait_for(3)
    assert sorted(signed_well(notice) for notice in notices) == [False, False, True]
    callback_receiver.received.clear()
    await simulator.force("stripe", "duplicate_callback", after=0)
    await create(simulator)
    first, second = await callback_receiver.wait_for(2)
    assert json.loads(first.body)["id"] == json.loads(second.body)["id"]


async def paid(simulator: Simulator) -> str:
    await simulator.force("stripe", "final_success")
    return str((await create(simulator))["payment_intent"])


async def test_refunds_are_sent_and_read(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    intent = await paid(simulator)
    await give_back(simulator, "pi_unknown", 404)
    await give_back(simulator, intent, 400, amount="1001")
    await give_back(simulator, intent, 400, reason="because")
    refund = await give_back(simulator, intent, key="r1")
    assert (refund["amount"], refund["currency"], refund["payment_intent"]) == (1000, "xof", intent)
    assert await give_back(simulator, intent, key="r1") == refund
    assert (await give_back(simulator, intent, 400))["error"]["code"] == "charge_already_refunded"
    async with asyncio.timeout(PATIENCE):
        path = f"/stripe/v1/refunds/{refund['id']}"
        while (await simulator.json("GET", path, headers=KEY))["status"] != "succeeded":
            await simulator.passing()
    assert await simulator.credits(reference="refund-1") == 1


@pytest.mark.parametrize(("scenario", "status", "final"), [("refused", 400, None), ("declined", 200, "failed")])
async def test_refunds_can_fail(simulator: Simulator, scenario: str, status: int, final: str | None) -> None:
    intent = await paid(simulator)
    await simulator.force("stripe", scenario, "credit", after=0)
    refund = await give_back(simulator, intent, status)
    if final:
        shown = await simulator.json("GET", f"/stripe/v1/refunds/{refund['id']}", headers=KEY)
        assert (shown["status"], shown["failure_reason"]) == (final, "insufficient_funds")
    await give_back(simulator, intent)
    assert await simulator.credits() == 0
