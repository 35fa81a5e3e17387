"""MTN MoMo over real HTTP: one request for each row of the tables in docs/providers."""

import asyncio
import base64
import json
import uuid
from typing import Any

import aiohttp
import pytest

from tests.guichet_simulator.conftest import CallbackReceiver, Simulator
from tests.patience import PATIENCE

COLLECT = "/mtn/collection/v1_0/requesttopay"
REFUND = "/mtn/disbursement/v1_0/refund"
TRANSFER = "/mtn/disbursement/v1_0/transfer"
BASIC = {
    "Authorization": "Basic " + base64.b64encode(b"user:key").decode(),
    "Ocp-Apim-Subscription-Key": "subscription",
}


async def access(simulator: Simulator, product: str = "collection", environment: str = "mtnbenin") -> dict[str, str]:
    answer = await simulator.json("POST", f"/mtn/{product}/token/", headers=BASIC)
    assert answer["expires_in"] == 3600
    return {
        "Authorization": f"Bearer {answer['access_token']}",
        "Ocp-Apim-Subscription-Key": "subscription",
        "X-Target-Environment": environment,
    }


def order(phone: str = "2290161000000", **more: Any) -> dict[str, Any]:
    payer = {"partyIdType": "MSISDN", "partyId": phone}
    body = {"amount": "500", "currency": "XOF", "externalId": "ref-1", "payer": payer}
    return body | {"payerMessage": "Commande", "payeeNote": "Commande"} | more


async def create_payment(
    simulator: Simulator, headers: dict[str, str], status: int = 202, ref: str = "", **more: Any
) -> tuple[str, Any]:
    ref = ref or str(uuid.uuid4())
    headers = {"X-Reference-Id": ref} | headers
    async with simulator.http.post(f"{simulator.url}{COLLECT}", json=order(**more), headers=headers) as answer:
        assert answer.status == status, await answer.text()
        text = await answer.text()
        return ref, json.loads(text) if text else None


async def ask_until(simulator: Simulator, path: str, headers: dict[str, str], wanted: str) -> Any:
    async with asyncio.timeout(PATIENCE):
        while (answer := await simulator.json("GET", path, headers=headers))["status"] != wanted:
            await simulator.passing()
    return answer


async def test_a_collection_is_requested_approved_and_read(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    headers = await access(simulator) | {"X-Callback-Url": f"{callback_receiver.url}/providers/mtn/callback/ref-1"}
    ref, body = await create_payment(simulator, headers)
    assert body is None
    pending = await simulator.json("GET", f"{COLLECT}/{ref}", headers=headers)
    assert pending == order() | {"status": "PENDING"}
    [held] = (await simulator.truth(reference="ref-1"))["transactions"]
    await simulator.press(held["id"], "approve")
    done = await simulator.json("GET", f"{COLLECT}/{ref}", headers=headers)
    assert done.pop("financialTransactionId")
    assert done == order() | {"status": "SUCCESSFUL"}
    [notice] = await callback_receiver.wait_for(1)
    assert (notice.method, notice.path) == ("PUT", "/providers/mtn/callback/ref-1")
    assert json.loads(notice.body)["status"] == "SUCCESSFUL"
    assert "x-reference-id" not in notice.headers


async def test_a_callback_is_sent_once_even_if_it_is_refused(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    callback_receiver.answers[:] = [500]
    headers = await access(simulator) | {"X-Callback-Url": callback_receiver.url}
    await create_payment(simulator, headers, phone="2290161009007")
    await callback_receiver.wait_for(1)
    async with asyncio.timeout(PATIENCE):
        while True:
            [sent] = (await simulator.json("GET", "/control/callbacks"))["callbacks"]
            if sent["answered"]:
                break
            await simulator.passing()
    assert (sent["answered"], sent["due_at"], sent["attempts"]) == (500, None, 1)


async def test_a_repeated_reference_is_refused(simulator: Simulator) -> None:
    headers = await access(simulator)
    ref, _ = await create_payment(simulator, headers, phone="2290161009007")
    for _ in range(2):
        _, body = await create_payment(simulator, headers, 409, ref, phone="2290161009007")
        assert body["code"] == "RESOURCE_ALREADY_EXIST"
    assert await simulator.debits(reference="ref-1") == 1


REFUSED: list[tuple[dict[str, str], dict[str, Any], int, str | None]] = [
    ({"X-Reference-Id": "not-a-uuid"}, {}, 400, "VALIDATION_ERROR"),
    ({"X-Target-Environment": "mtnnowhere"}, {}, 500, "NOT_ALLOWED_TARGET_ENVIRONMENT"),
    ({}, {"currency": "XAF"}, 500, "INVALID_CURRENCY"),
    ({"X-Target-Environment": "mtncongo"}, {}, 500, "INVALID_CURRENCY"),
    ({"X-Callback-Url": ""}, {}, 500, "INVALID_CALLBACK_URL_HOST"),
    ({}, {"amount": 500}, 400, None),
    ({}, {"amount": "-5"}, 400, None),
    ({}, {"amount": "5.5"}, 400, None),
    ({}, {"payerMessage": "été"}, 400, None),
    ({}, {"phone": "+2290161000000"}, 400, "VALIDATION_ERROR"),
]


@pytest.mark.parametrize(("headers", "change", "status", "code"), REFUSED)
async def test_invalid_calls_are_refused(
    simulator: Simulator, headers: dict[str, str], change: dict[str, Any], status: int, code: str | None
) -> None:
    _, body = await create_payment(simulator, await access(simulator) | headers, status, **change)
    assert (body or {}).get("code") == code
    assert (await simulator.truth())["transactions"] == []


async def test_invalid_credentials_are_refused(simulator: Simulator) -> None:
    await simulator.json("POST", "/mtn/collection/token/", 401, headers={})
    await simulator.json("POST", "/mtn/collection/token/", 401, headers=BASIC | {"Authorization": "Basic invalid"})
    no_key = {"Authorization": BASIC["Authorization"]}
    await simulator.json("POST", "/mtn/collection/token/", 401, headers=no_key)
    headers = await access(simulator)
    for wrong in (
        headers | {"Authorization": "Bearer never-issued"},
        headers | {"Ocp-Apim-Subscription-Key": ""},
        await access(simulator, "disbursement"),
    ):
        _, body = await create_payment(simulator, wrong, 401)
        assert body["statusCode"] == 401
    await simulator.force("mtn", "unauthorized", "token")
    await simulator.json("POST", "/mtn/collection/token/", 401, headers=BASIC)
    await access(simulator)


FAULTS: list[tuple[str, int, str | None, int]] = [
    ("refused", 500, "PAYER_NOT_FOUND", 0),
    ("business_500", 500, "PAYER_NOT_FOUND", 0),
    ("not_configured", 500, "NOT_ALLOWED_TARGET_ENVIRONMENT", 0),
    ("error_500", 500, None, 1),
    ("error_500_not_stored", 500, None, 0),
    ("unavailable", 503, "SERVICE_UNAVAILABLE", 0),
    ("unavailable_stored", 503, "SERVICE_UNAVAILABLE", 1),
    ("unauthorized", 401, None, 0),
    ("rate_limited", 429, None, 0),
    ("duplicate", 409, "RESOURCE_ALREADY_EXIST", 1),
]


@pytest.mark.parametrize(("scenario", "status", "code", "stored"), FAULTS)
async def test_each_fault_gives_its_response(
    simulator: Simulator, scenario: str, status: int, code: str | None, stored: int
) -> None:
    headers = await access(simulator)
    await simulator.force("mtn", scenario)
    _, body = await create_payment(simulator, headers, status)
    assert (body or {}).get("code") == code
    assert len((await simulator.truth())["transactions"]) == stored


async def test_the_status_is_known_after_a_lost_response(simulator: Simulator) -> None:
    headers = await access(simulator)
    for phone, status in (("2290161009010", 200), ("2290161009012", 404)):
        ref = str(uuid.uuid4())
        with pytest.raises(aiohttp.ClientError):
            await create_payment(simulator, headers, ref=ref, phone=phone)
        answer = await simulator.json("GET", f"{COLLECT}/{ref}", status, headers=headers)
        assert answer.get("code") == (None if status == 200 else "RESOURCE_NOT_FOUND")
    await create_payment(simulator, headers, ref=ref, phone="2290161009007")
    assert await simulator.debits(reference="ref-1") == 1


OUTCOMES = [
    ("2290161009003", "FAILED", "NOT_ENOUGH_FUNDS"),
    ("2290161009004", "FAILED", "APPROVAL_REJECTED"),
    ("2290161009005", "FAILED", "EXPIRED"),
    ("2290161009001", "SUCCESSFUL", None),
    ("46733123450", "FAILED", "NOT_ENOUGH_FUNDS"),
]


@pytest.mark.parametrize(("phone", "status", "reason"), OUTCOMES)
async def test_the_phone_number_chooses_the_scenario(
    simulator: Simulator, phone: str, status: str, reason: str | None
) -> None:
    headers = await access(simulator)
    ref, _ = await create_payment(simulator, headers, phone=phone)
    answer = await ask_until(simulator, f"{COLLECT}/{ref}", headers, status)
    assert answer.get("reason") == reason


@pytest.mark.parametrize(
    ("scenario", "amount", "currency"),
    [("wrong_amount", "499", "XOF"), ("wrong_currency", "500", "XAF"), ("hidden_amount", None, "XOF")],
)
async def test_scenarios_change_the_stated_amount_and_currency(
    simulator: Simulator, scenario: str, amount: str | None, currency: str
) -> None:
    headers = await access(simulator)
    await simulator.force("mtn", scenario, after=0)
    ref, _ = await create_payment(simulator, headers)
    answer = await ask_until(simulator, f"{COLLECT}/{ref}", headers, "SUCCESSFUL")
    assert (answer.get("amount"), answer["currency"]) == (amount, currency)


async def test_each_country_accepts_its_currency_only(simulator: Simulator) -> None:
    for environment, currency, operator in (
        ("mtnbenin", "XOF", "mtn"),
        ("mtnivorycoast", "XOF", "mtn_ci"),
        ("mtncongo", "XAF", "mtn_cg"),
    ):
        await create_payment(simulator, await access(simulator, environment=environment), currency=currency)
        assert (await simulator.truth())["transactions"][0]["operator"] == operator


async def test_refunds_are_sent_and_read(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    ref, _ = await create_payment(simulator, await access(simulator), phone="2290161009007")
    headers = await access(simulator, "disbursement") | {"X-Callback-Url": callback_receiver.url}
    body = {"amount": "500", "currency": "XOF", "externalId": "refund-1", "payerMessage": "x", "payeeNote": "x"}
    refund = str(uuid.uuid4())

    async def send(status: int, reference: str, **more: Any) -> None:
        async with simulator.http.post(
            f"{simulator.url}{REFUND}", json=body | {"referenceIdToRefund": ref} | more,
            headers=headers | {"X-Reference-Id": reference},
        ) as answer:  # fmt: skip
            assert answer.status == status, await answer.text()

    await send(404, refund, referenceIdToRefund=str(uuid.uuid4()))
    await send(202, refund)
    await send(409, refund)
    await send(500, str(uuid.uuid4()))
    done = await ask_until(simulator, f"{REFUND}/{refund}", headers, "SUCCESSFUL")
    assert done["payee"] == {"partyIdType": "MSISDN", "partyId": "2290161009007"}
    assert await simulator.credits(reference="refund-1") == 1
    [notice] = await callback_receiver.wait_for(1)
    assert notice.method == "POST"


@pytest.mark.parametrize(
    ("phone", "status", "final", "reason"),
    [
        ("2290161009101", 202, "SUCCESSFUL", None),
        ("2290161009103", 202, "FAILED", "PAYEE_LIMIT_REACHED"),
        ("2290161009106", 500, None, None),
        ("2290161009132", 202, "PENDING", None),
    ],
)
async def test_transfers_are_sent_and_read(
    simulator: Simulator, phone: str, status: int, final: str | None, reason: str | None
) -> None:
    headers = await access(simulator, "disbursement")
    ref = str(uuid.uuid4())
    body = order() | {"payee": {"partyIdType": "MSISDN", "partyId": phone}}
    async with simulator.http.post(
        f"{simulator.url}{TRANSFER}", json=body, headers=headers | {"X-Reference-Id": ref}
    ) as answer:
        assert answer.status == status
    if final:
        shown = await ask_until(simulator, f"{TRANSFER}/{ref}", headers, final)
        assert shown.get("reason") == reason
    await simulator.json("GET", f"{TRANSFER}/{ref}", 401, headers=await access(simulator))


async def test_the_balance_is_what_was_collected(simulator: Simulator) -> None:
    headers = await access(simulator)
    await create_payment(simulator, headers, phone="2290161009007")
    path = "/mtn/collection/v1_0"
    balance = await simulator.json("GET", f"{path}/account/balance", headers=headers)
    assert balance == {"availableBalance": "500", "currency": "XOF"}
