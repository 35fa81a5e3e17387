"""Wave over real HTTP: one request for each row of the tables in docs/providers."""

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

SESSIONS = "/wave/v1/checkout/sessions"
KEY = {"Authorization": "Bearer wave_sn_prod_key"}
SECRET = "wave_sn_WHS_simulator"


def order(**more: Any) -> dict[str, Any]:
    urls = {"success_url": "https://m.example/ok", "error_url": "https://m.example/ko"}
    return {"amount": "1000", "currency": "XOF", "client_reference": "ref-1", **urls, **more}


async def create(simulator: Simulator, status: int = 200, **more: Any) -> Any:
    return await simulator.json("POST", SESSIONS, status, json=order(**more), headers=KEY)


async def read(simulator: Simulator, session: str) -> Any:
    return await simulator.json("GET", f"{SESSIONS}/{session}", headers=KEY)


async def read_until(simulator: Simulator, session: str, payment_status: str) -> Any:
    async with asyncio.timeout(PATIENCE):
        while (answer := await read(simulator, session))["payment_status"] != payment_status:
            await simulator.passing()
    return answer


async def post(simulator: Simulator, path: str) -> tuple[int, str]:
    async with simulator.http.post(f"{simulator.url}{path}", headers=KEY) as answer:
        return answer.status, await answer.text()


def signed_well(notice: Received, secret: str = SECRET) -> bool:
    parts = dict(part.split("=", 1) for part in notice.headers["wave-signature"].split(","))
    expected = hmac.new(secret.encode(), parts["t"].encode() + notice.body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, parts["v1"]) and abs(time.time() - int(parts["t"])) < 300


async def test_a_checkout_is_created_paid_and_read(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    await simulator.json("POST", "/control/dashboard", json={"family": "wave", "callback_url": callback_receiver.url})
    session = await create(simulator)
    assert session["id"].startswith("cos-")
    assert (session["checkout_status"], session["payment_status"]) == ("open", "processing")
    assert (session["transaction_id"], session["when_completed"]) == (None, None)
    async with simulator.http.get(session["wave_launch_url"]) as answer:
        assert "Approuver" in await answer.text()
    [held] = (await simulator.truth(reference="ref-1"))["transactions"]
    assert await simulator.press(held["id"], "approve", hosted="1") == (303, "https://m.example/ok")
    done = await read(simulator, session["id"])
    assert (done["checkout_status"], done["payment_status"]) == ("complete", "succeeded")
    [notice] = await callback_receiver.wait_for(1)
    event = json.loads(notice.body)
    assert (event["type"], event["data"]) == ("checkout.session.completed", done)
    assert signed_well(notice)
    query = {"transaction_id": done["transaction_id"]}
    assert await simulator.json("GET", SESSIONS, headers=KEY, params=query) == done
    assert await simulator.debits(reference="ref-1") == 1


async def test_a_refused_payment_is_cancelled_after_a_second_chance(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    await simulator.json("POST", "/control/dashboard", json={"family": "wave", "callback_url": callback_receiver.url})
    session = await create(simulator, restrict_payer_mobile="+221770009003")
    [notice] = await callback_receiver.wait_for(1)
    event = json.loads(notice.body)
    assert event["type"] == "checkout.session.payment_failed"
    assert (event["data"]["checkout_status"], event["data"]["payment_status"]) == ("open", "processing")
    assert event["data"]["last_payment_error"]["code"] == "insufficient-funds"
    assert (await read(simulator, session["id"]))["payment_status"] == "processing"
    await read_until(simulator, session["id"], "cancelled")
    assert len(callback_receiver.received) == 1
    assert await simulator.debits() == 0


async def test_a_customer_may_try_again_after_a_refusal(simulator: Simulator) -> None:
    session = await create(simulator)
    [held] = (await simulator.truth())["transactions"]
    assert await simulator.press(held["id"], "insufficient", hosted="1") == (303, session["wave_launch_url"])
    assert (await read(simulator, session["id"]))["last_payment_error"]["code"] == "insufficient-funds"
    assert await simulator.press(held["id"], "approve", hosted="1") == (303, "https://m.example/ok")
    assert (await read(simulator, session["id"]))["payment_status"] == "succeeded"
    assert await simulator.debits() == 1


REFUSED: list[dict[str, Any]] = [
    {"amount": 1000},
    {"amount": "10.5"},
    {"currency": "XAF"},
    {"success_url": ""},
    {"client_reference": "x" * 256},
    {"restrict_payer_mobile": "221770000000"},
]


@pytest.mark.parametrize("change", REFUSED)
async def test_invalid_bodies_are_refused(simulator: Simulator, change: dict[str, Any]) -> None:
    answer = await create(simulator, 400, **change)
    assert answer["code"] == "request-validation-error"
    assert [detail["loc"] for detail in answer["details"]] == [list(change)]


async def test_invalid_credentials_are_refused(simulator: Simulator) -> None:
    assert (await simulator.json("GET", f"{SESSIONS}/x", 401))["code"] == "missing-auth-header"
    wrong = {"Authorization": "Bearer invalid"}
    assert (await simulator.json("GET", f"{SESSIONS}/x", 401, headers=wrong))["code"] == "no-matching-api-key"
    assert (await simulator.json("GET", f"{SESSIONS}/x", 404, headers=KEY))["code"] == "checkout-session-not-found"


FAULTS = [
    ("refused", 400, "request-validation-error", 0),
    ("not_configured", 403, "invalid-wallet", 0),
    ("unauthorized", 401, "no-matching-api-key", 0),
    ("rate_limited", 429, "rate-limit-exceeded", 0),
    ("unavailable", 503, "service-unavailable", 0),
    ("unavailable_stored", 503, "service-unavailable", 1),
    ("error_500", 500, "internal-server-error", 1),
    ("error_500_not_stored", 500, "internal-server-error", 0),
]


@pytest.mark.parametrize(("scenario", "status", "code", "stored"), FAULTS)
async def test_each_fault_gives_its_response(
    simulator: Simulator, scenario: str, status: int, code: str, stored: int
) -> None:
    await simulator.force("wave", scenario)
    assert (await create(simulator, status))["code"] == code
    assert len((await simulator.truth())["transactions"]) == stored


async def test_a_session_with_a_lost_response_is_found_by_reference(simulator: Simulator) -> None:
    await simulator.force("wave", "lost_answer", after=0)
    with pytest.raises(aiohttp.ClientError):
        await create(simulator)
    query = {"client_reference": "ref-1"}
    answer = await simulator.json("GET", f"{SESSIONS}/search", headers=KEY, params=query)
    assert [session["payment_status"] for session in answer["result"]] == ["succeeded"]
    answer = await simulator.json("GET", f"{SESSIONS}/search", headers=KEY, params={"client_reference": "other"})
    assert answer == {"result": []}


async def test_a_repeated_request_creates_a_second_session(simulator: Simulator) -> None:
    first, second = await create(simulator), await create(simulator)
    assert first["id"] != second["id"]


async def test_the_amount_chooses_the_scenario_without_a_number(simulator: Simulator) -> None:
    session = await create(simulator, amount="19019")
    assert (await read_until(simulator, session["id"], "succeeded"))["amount"] == "19018"


async def test_an_unpaid_session_expires(simulator: Simulator) -> None:
    session = await create(simulator)
    assert await post(simulator, f"{SESSIONS}/{session['id']}/expire") == (200, "")
    assert (await read(simulator, session["id"]))["checkout_status"] == "expired"
    status, _ = await post(simulator, f"{SESSIONS}/{session['id']}/expire")
    assert status == 409


@pytest.mark.parametrize(("scenario", "status", "moved"), [(None, 200, 1), ("refused", 400, 0), ("declined", 400, 0)])
async def test_refunds_are_sent_and_read(simulator: Simulator, scenario: str | None, status: int, moved: int) -> None:
    await simulator.force("wave", "final_success")
    session = await create(simulator)
    if scenario:
        await simulator.force("wave", scenario, "credit")
    answer = await post(simulator, f"{SESSIONS}/{session['id']}/refund")
    assert answer[0] == status
    assert answer[1] == "" or json.loads(answer[1])["code"] == "checkout-refund-failed"
    assert await simulator.credits(reference="ref-1") == moved


async def test_a_repeated_refund_moves_money_once(simulator: Simulator) -> None:
    session = await create(simulator)
    assert (await post(simulator, f"{SESSIONS}/{session['id']}/refund"))[0] == 409
    await simulator.force("wave", "final_success")
    session = await create(simulator)
    await simulator.force("wave", "lost_answer", "credit")
    with pytest.raises(aiohttp.ClientError):
        await post(simulator, f"{SESSIONS}/{session['id']}/refund")
    for _ in range(2):
        assert await post(simulator, f"{SESSIONS}/{session['id']}/refund") == (200, "")
    assert await simulator.credits(reference="ref-1") == 1


async def test_forged_and_repeated_events_are_sent(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    await simulator.json("POST", "/control/dashboard", json={"family": "wave", "callback_url": callback_receiver.url})
    await create(simulator)
    [held] = (await simulator.truth())["transactions"]
    claim = {"transaction": held["id"], "claim": "succeeded"}
    for forged in (True, True, False):
        await simulator.json("POST", "/control/callbacks", 202, json=claim | {"forged": forged})
    notices = await callback_receiver.wait_for(3)
    assert sorted(signed_well(notice) for notice in notices) == [False, False, True]
    callback_receiver.received.clear()
    await simulator.force("wave", "duplicate_callback", after=0)
    await create(simulator)
    first, second = await callback_receiver.wait_for(2)
    assert json.loads(first.body)["id"] == json.loads(second.body)["id"]
    callback_receiver.received.clear()
    dashboard = {"family": "wave", "callback_url": callback_receiver.url, "secret": "shared"}
    await simulator.json("POST", "/control/dashboard", json=dashboard)
    await simulator.json("POST", "/control/callbacks", 202, json=claim)
    [notice] = await callback_receiver.wait_for(1)
    assert notice.headers["authorization"] == "Bearer shared"


async def test_payouts_are_sent_and_read(simulator: Simulator) -> None:
    body = {"currency": "XOF", "receive_amount": "500", "mobile": "+221770000000", "client_reference": "refund-1"}
    await simulator.json("POST", "/wave/v1/payout", 400, json=body, headers=KEY)
    headers = KEY | {"Idempotency-Key": "k1"}
    first = await simulator.json("POST", "/wave/v1/payout", json=body, headers=headers)
    assert await simulator.json("POST", "/wave/v1/payout", json=body, headers=headers) == first
    other = body | {"receive_amount": "501"}
    assert (await simulator.json("POST", "/wave/v1/payout", 409, json=other, headers=headers))["code"]
    async with asyncio.timeout(PATIENCE):
        path = f"/wave/v1/payout/{first['id']}"
        while (await simulator.json("GET", path, headers=KEY))["status"] != "succeeded":
            await simulator.passing()
    found = await simulator.json("GET", "/wave/v1/payouts/search", headers=KEY, params={"client_reference": "refund-1"})
    assert [payout["status"] for payout in found["result"]] == ["succeeded"]
    assert await simulator.credits(reference="refund-1") == 1
    assert (await simulator.json("GET", "/wave/v1/balance", headers=KEY))["amount"] == "-500"


async def test_transactions_are_listed_in_pages_net_of_the_fee(simulator: Simulator) -> None:
    sessions = [(await create(simulator, restrict_payer_mobile="+221770009007"))["id"] for _ in range(3)]
    path, items = "/wave/v1/transactions?first=2", []
    for more in (True, False):
        page = await simulator.json("GET", path, headers=KEY)
        items += page["items"]
        assert page["page_info"]["has_next_page"] is more
        path = f"/wave/v1/transactions?first=2&after={page['page_info']['end_cursor']}"
    assert [each["checkout_api_session_id"] for each in items] == sessions
    assert {(each["amount"], each["fee"]) for each in items} == {("990", "10")}
    assert (await simulator.json("GET", "/wave/v1/balance", headers=KEY))["amount"] == "2970"
    assert (await simulator.json("GET", "/wave/v1/transactions?date=2020-01-01", headers=KEY))["items"] == []
    await simulator.json("GET", "/wave/v1/transactions?date=yesterday", 400, headers=KEY)
