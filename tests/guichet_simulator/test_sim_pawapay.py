"""pawaPay over real HTTP: one request for each row of the tables in docs/providers."""

import asyncio
import json
import uuid
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from tests.guichet_simulator import pawapay_samples as samples
from tests.guichet_simulator.conftest import CallbackReceiver, Received, Simulator
from tests.patience import PATIENCE

KEY = {"Authorization": "Bearer token"}
URLS: dict[str, Any] = {"successfulUrl": "https://m.example/ok", "failedUrl": "https://m.example/ko"}
NUMBERS = {
    "MTN_MOMO_BEN": "22961000000", "MOOV_BEN": "22995000000", "MOOV_BFA": "22602000000", "ORANGE_BFA": "22607000000",
    "MTN_MOMO_CIV": "2250500000000", "ORANGE_CIV": "2250700000000", "WAVE_CIV": "2250700000000",
    "ORANGE_SEN": "221770000000", "FREE_SEN": "221760000000", "WAVE_SEN": "221770000000",
    "MTN_MOMO_COG": "242060000000",
}  # fmt: skip


def account(phone: str, provider: str) -> dict[str, Any]:
    return {"type": "MMO", "accountDetails": {"phoneNumber": phone, "provider": provider}}


async def deposit(
    simulator: Simulator,
    phone: str = "22961000000",
    provider: str = "MTN_MOMO_BEN",
    status: int = 200,
    **more: Any,
) -> tuple[str, Any]:
    body = {"depositId": str(uuid.uuid4()), "amount": "500", "currency": "XOF", "clientReferenceId": "ref-1"}
    body |= {"payer": account(phone, provider), "metadata": [{"order": "1", "isPII": True}]} | more
    return body["depositId"], await simulator.json("POST", "/pawapay/v2/deposits", status, json=body, headers=KEY)


async def ask(simulator: Simulator, ref: str, what: str = "deposits", status: int = 200) -> Any:
    return await simulator.json("GET", f"/pawapay/v2/{what}/{ref}", status, headers=KEY)


async def ask_until(simulator: Simulator, ref: str, wanted: str, what: str = "deposits") -> Any:
    async with asyncio.timeout(PATIENCE):
        while (answer := await ask(simulator, ref, what))["data"]["status"] != wanted:
            await simulator.passing()
    return answer["data"]


def code_of(answer: Any) -> str:
    return str(answer["failureReason"]["failureCode"])


@pytest.mark.parametrize("provider", NUMBERS)
async def test_every_provider_accepts_a_deposit(simulator: Simulator, provider: str) -> None:
    more: dict[str, Any] = {"preAuthorisationCode": "123456"} if provider == "ORANGE_BFA" else {}
    more |= URLS if provider.startswith("WAVE") else {}
    more |= {"currency": "XAF"} if provider == "MTN_MOMO_COG" else {}
    ref, answer = await deposit(simulator, NUMBERS[provider], provider, **more)
    assert (answer["depositId"], answer["status"]) == (ref, "ACCEPTED")
    assert answer["nextStep"] == ("GET_AUTH_URL" if provider.startswith("WAVE") else "FINAL_STATUS")
    found = await ask(simulator, ref)
    assert found["status"] == "FOUND"
    data = found["data"]
    assert (data["amount"], data["clientReferenceId"], data["metadata"]) == ("500.00", "ref-1", {"order": "1"})


REJECTED: list[tuple[dict[str, Any], int, str]] = [
    ({"provider": "NOBODY"}, 200, "INVALID_PROVIDER"),
    ({"phone": "22561000000"}, 200, "INVALID_PHONE_NUMBER"),
    ({"currency": "XAF"}, 200, "INVALID_CURRENCY"),
    ({"amount": "500.50"}, 200, "INVALID_AMOUNT"),
    ({"amount": "0500"}, 200, "INVALID_AMOUNT"),
    ({"amount": "2000001"}, 200, "AMOUNT_OUT_OF_BOUNDS"),
    ({"amount": ""}, 400, "MISSING_PARAMETER"),
    ({"depositId": "not-a-uuid"}, 400, "INVALID_PARAMETER"),
    ({"customerMessage": "no"}, 400, "INVALID_PARAMETER"),
    ({"metadata": [{"a": "1"}] * 11}, 400, "INVALID_PARAMETER"),
    ({"phone": "22607000000", "provider": "ORANGE_BFA"}, 400, "MISSING_PARAMETER"),
    (URLS, 400, "UNSUPPORTED_PARAMETER"),
]


@pytest.mark.parametrize(("change", "status", "code"), REJECTED)
async def test_invalid_deposits_are_rejected(
    simulator: Simulator, change: dict[str, Any], status: int, code: str
) -> None:
    _, answer = await deposit(simulator, status=status, **change)
    assert (answer["status"], code_of(answer)) == ("REJECTED", code)
    assert (await simulator.truth())["transactions"] == []


async def test_invalid_credentials_are_refused(simulator: Simulator) -> None:
    answer = await simulator.json("POST", "/pawapay/v2/deposits", 401, json={"depositId": "x"})
    assert (answer["depositId"], answer["status"], code_of(answer)) == ("x", "REJECTED", "NO_AUTHENTICATION")
    wrong = {"Authorization": "Bearer invalid"}
    answer = await simulator.json("GET", "/pawapay/v2/deposits/x", 403, headers=wrong)
    assert answer.keys() == {"failureReason"}
    assert await ask(simulator, str(uuid.uuid4())) == {"status": "NOT_FOUND"}


async def test_a_repeated_deposit_is_ignored(simulator: Simulator) -> None:
    ref, _ = await deposit(simulator, "2290161009007")
    _, answer = await deposit(simulator, "2290161009007", depositId=ref)
    assert answer == {"depositId": ref, "status": "DUPLICATE_IGNORED"}
    assert await simulator.debits(reference="ref-1") == 1


FAULTS = [
    ("refused", 200, "INVALID_PHONE_NUMBER", 0),
    ("not_configured", 403, "DEPOSITS_NOT_ALLOWED", 0),
    ("unauthorized", 403, "AUTHENTICATION_ERROR", 0),
    ("rate_limited", 429, "RATE_LIMITED", 0),
    ("unavailable", 503, "UNKNOWN_ERROR", 0),
    ("error_500", 500, "UNKNOWN_ERROR", 1),
    ("error_500_not_stored", 500, "UNKNOWN_ERROR", 0),
]


@pytest.mark.parametrize(("scenario", "status", "code", "stored"), FAULTS)
async def test_each_fault_gives_its_response(
    simulator: Simulator, scenario: str, status: int, code: str, stored: int
) -> None:
    await simulator.force("pawapay", scenario)
    ref, answer = await deposit(simulator, status=status)
    assert (answer["depositId"], code_of(answer)) == (ref, code)
    assert ("status" in answer) == (status < 429)
    assert len((await simulator.truth())["transactions"]) == stored


async def test_requests_with_lost_responses_can_be_read(simulator: Simulator) -> None:
    for scenario, status in (("lost_answer", "FOUND"), ("lost_request", "NOT_FOUND")):
        await simulator.force("pawapay", scenario)
        ref = str(uuid.uuid4())
        with pytest.raises(aiohttp.ClientError):
            await deposit(simulator, depositId=ref)
        assert (await ask(simulator, ref))["status"] == status


OUTCOMES = [
    ("2290161009001", "COMPLETED", None),
    ("2290161009003", "FAILED", "INSUFFICIENT_BALANCE"),
    ("22951345789", "COMPLETED", None),
    ("22951345029", "FAILED", "PAYER_NOT_FOUND"),
    ("22951345039", "FAILED", "PAYMENT_NOT_APPROVED"),
    ("22951345069", "FAILED", "UNSPECIFIED_FAILURE"),
    ("22951345129", "PROCESSING", None),
]


@pytest.mark.parametrize(("phone", "status", "code"), OUTCOMES)
async def test_the_phone_number_chooses_the_scenario(
    simulator: Simulator, phone: str, status: str, code: str | None
) -> None:
    ref, _ = await deposit(simulator, phone)
    data = await ask_until(simulator, ref, status)
    assert (code_of(data) if "failureReason" in data else None) == code
    assert ("providerTransactionId" in data) == (status == "COMPLETED")


async def verify(simulator: Simulator, notice: Received, url: str) -> bool:
    """Verifies as pawaPay's samples do, independently of the code that signs."""
    [key] = await simulator.json("GET", "/pawapay/v2/public-key/http")
    public = load_pem_public_key(key["key"].encode())
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert f'keyid="{key["id"]}"' in notice.headers["signature-input"]
    host = url.removeprefix("http://")
    return samples.verify(
        public, method=notice.method, host=host, path=notice.path, headers=notice.headers, body=notice.body
    )


async def test_callbacks_have_a_valid_signature(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    url = f"{callback_receiver.url}/providers/pawapay/callback/x"
    await simulator.json("POST", "/control/dashboard", json={"family": "pawapay", "callback_url": url})
    ref, _ = await deposit(simulator, "2290161009007")
    [notice] = await callback_receiver.wait_for(1)
    body = json.loads(notice.body)
    assert (body["depositId"], body["status"]) == (ref, "COMPLETED")
    assert "clientReferenceId" not in body
    assert await verify(simulator, notice, callback_receiver.url)
    [held] = (await simulator.truth())["transactions"]
    forged = {"transaction": held["id"], "claim": "failed", "forged": True}
    await simulator.json("POST", "/control/callbacks", 202, json=forged)
    await callback_receiver.wait_for(2)
    assert not await verify(simulator, callback_receiver.received[1], callback_receiver.url)
    refund, _ = await give_back(simulator, ref)
    await callback_receiver.wait_for(3)
    assert json.loads(callback_receiver.received[2].body)["refundId"] == refund
    assert await verify(simulator, callback_receiver.received[2], callback_receiver.url)


async def test_the_page_of_a_redirecting_provider_comes_later(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    await simulator.json(
        "POST", "/control/dashboard", json={"family": "pawapay", "callback_url": callback_receiver.url}
    )
    ref, _ = await deposit(simulator, "221770000000", "WAVE_SEN", **URLS)
    assert (await ask(simulator, ref))["data"]["nextStep"] == "GET_AUTH_URL"
    [notice] = await callback_receiver.wait_for(1)
    body = json.loads(notice.body)
    assert (body["status"], body["nextStep"]) == ("PROCESSING", "REDIRECT_TO_AUTH_URL")
    data = (await ask(simulator, ref))["data"]
    assert data["authorizationUrl"] == body["authorizationUrl"]
    async with simulator.http.get(data["authorizationUrl"]) as answer:
        assert "Approuver" in await answer.text()
    [held] = (await simulator.truth())["transactions"]
    assert await simulator.press(held["id"], "refuse", hosted="1") == (303, URLS["failedUrl"])
    assert (await ask(simulator, ref))["data"]["status"] == "FAILED"


async def give_back(simulator: Simulator, ref: str, status: int = 200, **more: Any) -> tuple[str, Any]:
    body = {"refundId": str(uuid.uuid4()), "depositId": ref, "clientReferenceId": "refund-1"} | more
    return body["refundId"], await simulator.json("POST", "/pawapay/v2/refunds", status, json=body, headers=KEY)


async def test_refunds_are_sent_and_read(simulator: Simulator) -> None:
    ref, _ = await deposit(simulator)
    assert code_of((await give_back(simulator, ref))[1]) == "INVALID_STATE"
    assert code_of((await give_back(simulator, str(uuid.uuid4())))[1]) == "NOT_FOUND"
    ref, _ = await deposit(simulator, "2290161009007")
    too_much: dict[str, Any] = {"amount": "501", "currency": "XOF"}
    assert code_of((await give_back(simulator, ref, **too_much))[1]) == "AMOUNT_TOO_LARGE"
    await simulator.force("pawapay", "succeeds", "credit", after=0.4)
    refund, answer = await give_back(simulator, ref)
    assert answer["status"] == "ACCEPTED"
    assert code_of((await give_back(simulator, ref))[1]) == "REFUND_IN_PROGRESS"
    assert (await give_back(simulator, ref, refundId=refund))[1]["status"] == "DUPLICATE_IGNORED"
    data = await ask_until(simulator, refund, "COMPLETED", "refunds")
    assert (data["amount"], data["recipient"]["accountDetails"]["phoneNumber"]) == ("500.00", "2290161009007")
    assert code_of((await give_back(simulator, ref))[1]) == "DEPOSIT_ALREADY_REFUNDED"
    assert await simulator.credits(reference="refund-1") == 1
    assert (await ask(simulator, refund, "payouts")) == {"status": "NOT_FOUND"}


async def test_refunds_can_fail(simulator: Simulator) -> None:
    ref, _ = await deposit(simulator, "2290161009007")
    await simulator.force("pawapay", "refused", "credit")
    assert code_of((await give_back(simulator, ref))[1]) == "RECIPIENT_NOT_FOUND"
    await simulator.force("pawapay", "declined", "credit", after=0)
    refund, _ = await give_back(simulator, ref)
    assert code_of(await ask_until(simulator, refund, "FAILED", "refunds")) == "WALLET_LIMIT_REACHED"
    await simulator.force("pawapay", "pending_long", "credit")
    refund, _ = await give_back(simulator, ref)
    assert (await ask(simulator, refund, "refunds"))["data"]["status"] == "ENQUEUED"
    assert await simulator.credits() == 0


async def test_payouts_are_sent_and_read(simulator: Simulator) -> None:
    body = {"payoutId": str(uuid.uuid4()), "amount": "500", "currency": "XOF", "clientReferenceId": "refund-1"}
    body_of = body | {"recipient": account("22951345789", "MTN_MOMO_BEN")}
    assert (await simulator.json("POST", "/pawapay/v2/payouts", json=body_of, headers=KEY))["status"] == "ACCEPTED"
    assert (await ask_until(simulator, body["payoutId"], "COMPLETED", "payouts"))["amount"] == "500.00"
    body_of |= {"payoutId": str(uuid.uuid4()), "recipient": account("22951345089", "MTN_MOMO_BEN")}
    await simulator.json("POST", "/pawapay/v2/payouts", json=body_of, headers=KEY)
    data = await ask_until(simulator, str(body_of["payoutId"]), "FAILED", "payouts")
    assert code_of(data) == "RECIPIENT_NOT_FOUND"


async def test_toolkit_endpoints_answer(simulator: Simulator) -> None:
    answer = await simulator.json("GET", "/pawapay/v2/active-conf?country=BFA", headers=KEY)
    [country] = answer["countries"]
    terms = {p["provider"]: p["currencies"][0]["operationTypes"]["DEPOSIT"]["authType"] for p in country["providers"]}
    assert terms == {"MOOV_BFA": "PROVIDER_AUTH", "ORANGE_BFA": "PREAUTH"}
    [country] = await simulator.json("GET", "/pawapay/v2/availability?country=COG", headers=KEY)
    assert country["providers"][0]["provider"] == "MTN_MOMO_COG"
    await deposit(simulator, "2290161009007")
    answer = await simulator.json("GET", "/pawapay/v2/wallet-balances?country=BEN", headers=KEY)
    assert answer == {"balances": [{"country": "BEN", "balance": "490", "currency": "XOF", "provider": ""}]}
    await simulator.json("GET", "/pawapay/v2/wallet-balances", 401)
