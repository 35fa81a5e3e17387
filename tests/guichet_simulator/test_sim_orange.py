"""Orange Web Payment over real HTTP: one request for each row of the tables in docs/providers."""

import asyncio
import base64
import json
from typing import Any

import aiohttp
import pytest

from tests.guichet_simulator.conftest import CallbackReceiver, Simulator
from tests.patience import PATIENCE

BASE = "/orange/orange-money-webpay/ml/v1"
BASIC = {"Authorization": "Basic " + base64.b64encode(b"id:secret").decode()}


async def access(simulator: Simulator, version: str = "v3") -> dict[str, str]:
    form = {"grant_type": "client_credentials"}
    answer = await simulator.json("POST", f"/orange/oauth/{version}/token", headers=BASIC, data=form)
    assert (answer["token_type"], answer["expires_in"]) == ("Bearer", 3600)
    return {"Authorization": f"Bearer {answer['access_token']}"}


def order(**more: Any) -> dict[str, Any]:
    urls = {"return_url": "https://m.example/ok", "cancel_url": "https://m.example/ko"}
    body = {"merchant_key": "key", "currency": "XOF", "order_id": "order-1", "amount": 1000, "lang": "fr"}
    return body | urls | {"notif_url": "https://m.example/notif", "reference": "Boutique"} | more


async def pay(simulator: Simulator, headers: dict[str, str], status: int = 201, **more: Any) -> Any:
    return await simulator.json("POST", f"{BASE}/webpayment", status, json=order(**more), headers=headers)


async def ask(simulator: Simulator, headers: dict[str, str], token: str, status: int = 201, **more: Any) -> Any:
    body = {"order_id": "order-1", "amount": 1000, "pay_token": token} | more
    return await simulator.json("POST", f"{BASE}/transactionstatus", status, json=body, headers=headers)


async def test_a_payment_is_opened_confirmed_and_read(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    headers = await access(simulator)
    taken = await pay(simulator, headers, notif_url=f"{callback_receiver.url}/notif/ref-1")
    assert (taken["status"], taken["message"]) == (201, "OK")
    assert (await ask(simulator, headers, taken["pay_token"])) == {"status": "INITIATED", "order_id": "order-1"}
    async with simulator.http.get(taken["payment_url"]) as answer:
        assert "SIMULATEUR" in await answer.text()
    assert (await ask(simulator, headers, taken["pay_token"]))["status"] == "PENDING"
    [held] = (await simulator.truth(reference="order-1"))["transactions"]
    assert await simulator.press(held["id"], "approve", hosted="1") == (303, "https://m.example/ok")
    done = await ask(simulator, headers, taken["pay_token"])
    assert done["status"] == "SUCCESS"
    [notice] = await callback_receiver.wait_for(1)
    assert notice.path == "/notif/ref-1"
    expected = {"status": "SUCCESS", "notif_token": taken["notif_token"], "txnid": done["txnid"]}
    assert json.loads(notice.body) == expected
    assert await simulator.debits(reference="order-1") == 1


async def test_a_payment_refused_on_the_page_fails(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    headers = await access(simulator, "v2")
    taken = await pay(simulator, headers, notif_url=callback_receiver.url)
    [held] = (await simulator.truth())["transactions"]
    claim = {"transaction": held["id"], "claim": "succeeded", "forged": True}
    await simulator.json("POST", "/control/callbacks", 202, json=claim)
    [forged] = await callback_receiver.wait_for(1)
    assert json.loads(forged.body)["status"] == "SUCCESS"
    assert json.loads(forged.body)["notif_token"] != taken["notif_token"]
    assert await simulator.press(held["id"], "refuse", hosted="1") == (303, "https://m.example/ko")
    assert (await ask(simulator, headers, taken["pay_token"]))["status"] == "FAILED"
    await callback_receiver.wait_for(2)
    assert json.loads(callback_receiver.received[1].body)["status"] == "FAILED"
    assert await simulator.debits() == 0


async def test_cancelling_on_the_page_decides_nothing(simulator: Simulator) -> None:
    headers = await access(simulator)
    taken = await pay(simulator, headers)
    [held] = (await simulator.truth())["transactions"]
    assert await simulator.press(held["id"], "cancel", hosted="1") == (303, "https://m.example/ko")
    assert (await ask(simulator, headers, taken["pay_token"]))["status"] == "INITIATED"


REFUSED: list[tuple[dict[str, Any], int]] = [
    ({"notif_url": "https://m.example/" + "x" * 120}, 24),
    ({"return_url": "ftp://m.example"}, 24),
    ({"order_id": "x" * 31}, 24),
    ({"amount": "1000"}, 24),
    ({"merchant_key": "invalid"}, 1202),
    ({"currency": "OUV"}, 1203),
]


@pytest.mark.parametrize(("change", "code"), REFUSED)
async def test_invalid_bodies_are_refused(simulator: Simulator, change: dict[str, Any], code: int) -> None:
    answer = await pay(simulator, await access(simulator), 400, **change)
    assert answer["code"] == code
    assert answer.keys() == {"code", "message", "description"}


async def test_a_repeated_order_is_refused(simulator: Simulator) -> None:
    headers = await access(simulator)
    await pay(simulator, headers)
    assert (await pay(simulator, headers, 400))["code"] == 1204
    assert len((await simulator.truth())["transactions"]) == 1


async def test_the_status_needs_order_amount_and_token(simulator: Simulator) -> None:
    headers = await access(simulator)
    taken = await pay(simulator, headers)
    for wrong in ({"amount": 999}, {"order_id": "other"}, {"pay_token": "other"}):
        body = {"token": taken["pay_token"], "status": 400} | wrong
        token = str(body.pop("pay_token", body.pop("token")))
        answer = await ask(simulator, headers, token, **{k: v for k, v in body.items() if k != "token"})
        assert answer["code"] == 24


async def test_invalid_credentials_are_refused(simulator: Simulator) -> None:
    form = {"grant_type": "client_credentials"}
    await simulator.json("POST", "/orange/oauth/v3/token", 401, data=form)
    await simulator.json("POST", "/orange/oauth/v3/token", 401, headers=BASIC, data={})
    assert (await pay(simulator, {}, 401))["code"] == 40
    assert (await pay(simulator, {"Authorization": "Bearer never-issued"}, 401))["code"] == 41
    path = "/orange/orange-money-webpay/fr/v1/webpayment"
    await simulator.json("POST", path, 403, json=order(), headers=await access(simulator))


FAULTS = [
    ("refused", 403, 1201, 0),
    ("not_configured", 403, 50, 0),
    ("unauthorized", 401, 41, 0),
    ("rate_limited", 429, 53, 0),
    ("unavailable", 503, 5, 0),
    ("unavailable_stored", 503, 5, 1),
    ("error_500", 500, 1, 1),
    ("duplicate", 400, 1204, 1),
]


@pytest.mark.parametrize(("scenario", "status", "code", "stored"), FAULTS)
async def test_each_fault_gives_its_response(
    simulator: Simulator, scenario: str, status: int, code: int, stored: int
) -> None:
    headers = await access(simulator)
    await simulator.force("orange", scenario)
    assert (await pay(simulator, headers, status))["code"] == code
    assert len((await simulator.truth())["transactions"]) == stored


async def test_an_order_with_a_lost_response_cannot_be_repeated(simulator: Simulator) -> None:
    headers = await access(simulator)
    await simulator.force("orange", "lost_answer")
    with pytest.raises(aiohttp.ClientError):
        await pay(simulator, headers)
    assert (await pay(simulator, headers, 400))["code"] == 1204


async def test_the_amount_chooses_the_expiry_scenario(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    headers = await access(simulator)
    taken = await pay(simulator, headers, amount=19005, notif_url=callback_receiver.url)
    async with asyncio.timeout(PATIENCE):
        while (await ask(simulator, headers, taken["pay_token"], amount=19005))["status"] != "EXPIRED":
            await simulator.passing()
        while (await simulator.json("GET", "/control/callbacks"))["callbacks"][0]["due_at"] is not None:
            await asyncio.sleep(0.002)
    assert callback_receiver.received == []
