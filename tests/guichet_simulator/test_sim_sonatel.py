"""Orange Money by Sonatel over real HTTP: one request for each row of the tables in docs/providers."""

import base64
import hashlib
import hmac
import json
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key

from tests.guichet_simulator.conftest import CallbackReceiver, Simulator

WALLET = "/sonatel/api/eWallet/v1"
SECRET = "sonatel-simulator"


async def access(simulator: Simulator) -> dict[str, str]:
    form = {"client_id": "id", "client_secret": "secret", "grant_type": "client_credentials"}
    answer = await simulator.json("POST", "/sonatel/oauth/v1/token", data=form)
    assert answer["expires_in"] == 299
    return {"Authorization": f"Bearer {answer['access_token']}", "Content-Type": "application/json"}


def order(number: str = "771234567", otp: str = "123456", **more: Any) -> dict[str, Any]:
    customer = {"idType": "MSISDN", "id": number, "otp": otp, "walletType": "PRINCIPAL"}
    body = {"customer": customer, "partner": {"idType": "CODE", "id": "123456"}, "reference": "ref-1"}
    return body | {"amount": {"value": 1000, "unit": "XOF"}, "metadata": {"order": "1"}} | more


async def pay(simulator: Simulator, headers: dict[str, str], status: int = 200, **more: Any) -> Any:
    return await simulator.json("POST", f"{WALLET}/payments/onestep", status, json=order(**more), headers=headers)


async def status_of(simulator: Simulator, headers: dict[str, str], transaction: str) -> Any:
    answer = await simulator.json("GET", f"{WALLET}/transactions/{transaction}/status", headers=headers)
    assert answer.keys() == {"status"}
    return answer["status"]


async def test_a_one_step_payment_is_final_in_the_response(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    headers = await access(simulator)
    registration = {"apiKey": "hello", "code": "123456", "name": "Boutique", "callbackUrl": callback_receiver.url}
    path = "/sonatel/api/notification/v1/merchantcallback"
    await simulator.json("POST", path, 201, json=registration, headers=headers)
    done = await pay(simulator, headers)
    assert (done["reference"], done["status"]) == ("ref-1", "SUCCESS")
    assert done["transactionId"].startswith("MP")
    assert await status_of(simulator, headers, done["transactionId"]) == "SUCCESS"
    assert await simulator.debits(reference="ref-1") == 1
    [notice] = await callback_receiver.wait_for(1)
    assert notice.headers["authorization"] == "Basic hello"
    parts = dict(part.split("=", 1) for part in notice.headers["x-sonatel-signature"].split(","))
    expected = hmac.new(SECRET.encode(), f"{parts['t']},".encode() + notice.body, hashlib.sha256).hexdigest()
    assert parts["v1"] == expected
    body = json.loads(notice.body)
    assert (body["type"], body["status"], body["amount"]) == (
        "MERCHANT_PAYMENT",
        "SUCCESS",
        {"value": 1000, "unit": "XOF"},
    )
    [held] = (await simulator.truth())["transactions"]
    forged = {"transaction": held["id"], "claim": "failed", "forged": True}
    await simulator.json("POST", "/control/callbacks", 202, json=forged)
    await callback_receiver.wait_for(2)
    parts = dict(part.split("=", 1) for part in callback_receiver.received[1].headers["x-sonatel-signature"].split(","))
    signed = f"{parts['t']},".encode() + callback_receiver.received[1].body
    right = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest() == parts["v1"]
    assert not right or int(parts["t"]) < int(body_time(notice.headers)) - 300


def body_time(headers: dict[str, str]) -> str:
    return headers["x-sonatel-signature"].split(",")[0].removeprefix("t=")


PROBLEMS: list[tuple[dict[str, Any], str]] = [
    ({"otp": "000000"}, "2011"),
    ({"otp": ""}, "2011"),
    ({"number": "221771234567"}, "2001"),
    ({"amount": {"value": 0, "unit": "XOF"}}, "24"),
    ({"amount": {"value": 1000, "unit": "XAF"}}, "24"),
    ({"partner": None}, "24"),
]


@pytest.mark.parametrize(("change", "code"), PROBLEMS)
async def test_invalid_payments_are_answered_with_problems(
    simulator: Simulator, change: dict[str, Any], code: str
) -> None:
    headers = await access(simulator)
    async with simulator.http.post(
        f"{simulator.url}{WALLET}/payments/onestep", json=order(**change), headers=headers
    ) as answer:
        assert answer.status == 400
        assert answer.content_type == "application/problem+json"
        assert (await answer.json(content_type=None))["code"] == code
    assert (await simulator.truth())["transactions"] == []


async def test_invalid_credentials_are_refused(simulator: Simulator) -> None:
    headers = await access(simulator)
    bare = {"Authorization": headers["Authorization"]}
    async with simulator.http.get(f"{simulator.url}{WALLET}/transactions?reference=x", headers=bare) as answer:
        assert answer.status == 415
    wrong = headers | {"Authorization": "Bearer never-issued"}
    async with simulator.http.get(f"{simulator.url}{WALLET}/transactions?reference=x", headers=wrong) as answer:
        assert answer.status == 401
    await simulator.json("POST", "/sonatel/oauth/v1/token", 401, data={"client_id": "id"})


FAULTS = [
    ("refused", 400, "2000", 0),
    ("not_configured", 403, "2041", 0),
    ("unauthorized", 401, "4001", 0),
    ("rate_limited", 429, "4290", 0),
    ("unavailable", 503, "5", 0),
    ("error_500", 500, "1", 1),
    ("error_500_not_stored", 500, "1", 0),
]


@pytest.mark.parametrize(("scenario", "status", "code", "stored"), FAULTS)
async def test_each_fault_gives_its_response(
    simulator: Simulator, scenario: str, status: int, code: str, stored: int
) -> None:
    headers = await access(simulator)
    await simulator.force("sonatel", scenario)
    async with simulator.http.post(
        f"{simulator.url}{WALLET}/payments/onestep", json=order(), headers=headers
    ) as answer:
        assert answer.status == status
        assert (await answer.json(content_type=None))["code"] == code
    assert len((await simulator.truth())["transactions"]) == stored


@pytest.mark.parametrize(
    ("number", "status"), [("770009003", "FAILED"), ("770009009", "PENDING"), ("770009001", "SUCCESS")]
)
async def test_the_phone_number_chooses_the_scenario(simulator: Simulator, number: str, status: str) -> None:
    headers = await access(simulator)
    taken = await pay(simulator, headers, number=number)
    assert taken["status"] == status
    assert await status_of(simulator, headers, taken["transactionId"]) == status


async def test_a_payment_with_a_lost_response_is_found_by_reference(simulator: Simulator) -> None:
    headers = await access(simulator)
    with pytest.raises(aiohttp.ClientError):
        await pay(simulator, headers, number="770009010")
    path = f"{WALLET}/transactions"
    [found] = rows(await simulator.json("GET", path, headers=headers, params={"reference": "ref-1"}))
    assert (found["status"], found["amount"]["value"]) == ("SUCCESS", 1000)
    assert rows(await simulator.json("GET", path, headers=headers, params={"reference": "other"})) == []


async def test_the_list_has_four_shapes_and_no_documented_order(simulator: Simulator) -> None:
    headers = await access(simulator)
    path, shapes = f"{WALLET}/transactions", set()
    for reference in ("ref-1", "ref-2", "ref-3", "ref-4"):
        sent = []
        for _ in range(2):
            sent.append((await pay(simulator, headers, reference=reference))["transactionId"])
        answer = await simulator.json("GET", path, headers=headers, params={"reference": reference})
        shapes.add(next(iter(answer)) if isinstance(answer, dict) else None)
        assert [row["transactionId"] for row in rows(answer)] == sent  # Not newest first.
    assert shapes == {None, "transactions", "data", "content"}


def rows(answer: Any) -> Any:
    """The list of transactions, wherever it stands."""
    return next(iter(answer.values())) if isinstance(answer, dict) else answer


async def encrypted(simulator: Simulator, headers: dict[str, str], pin: bytes) -> str:
    answer = await simulator.json("GET", "/sonatel/api/account/v1/publicKeys", headers=headers)
    key = load_der_public_key(base64.b64decode(answer["key"]))
    assert isinstance(key, rsa.RSAPublicKey)
    assert key.key_size == answer["keySize"]
    return base64.b64encode(key.encrypt(pin, padding.PKCS1v15())).decode()


@pytest.mark.parametrize(
    ("number", "status", "final", "moved"),
    [("771234567", 200, "SUCCESS", 1), ("770009103", 200, "FAILED", 0), ("770009106", 400, None, 0)],
)
async def test_a_cash_in_is_sent_and_read(
    simulator: Simulator, number: str, status: int, final: str | None, moved: int
) -> None:
    headers = await access(simulator)
    pin = await encrypted(simulator, headers, b"1234")
    partner = {"idType": "MSISDN", "id": "770000000", "encryptedPinCode": pin}
    body = order(number) | {"partner": partner, "reference": "refund-1", "receiveNotification": False}
    async with simulator.http.post(f"{simulator.url}{WALLET}/cashins", json=body, headers=headers) as answer:
        assert answer.status == status
        taken = await answer.json(content_type=None)
    if final:
        assert (taken["status"], taken["reference"], taken["transactionId"][:2]) == (final, "refund-1", "CI")
        assert await status_of(simulator, headers, taken["transactionId"]) == final
    assert await simulator.credits(reference="refund-1") == moved


async def test_a_cash_in_requires_the_encrypted_pin(simulator: Simulator) -> None:
    headers = await access(simulator)
    for pin in ("1234", await encrypted(simulator, headers, b"letters"), ""):
        body = order() | {"partner": {"idType": "MSISDN", "id": "770000000", "encryptedPinCode": pin}}
        async with simulator.http.post(f"{simulator.url}{WALLET}/cashins", json=body, headers=headers) as answer:
            assert answer.status == 400
            assert (await answer.json(content_type=None))["code"] == "2011"
