"""FeexPay over real HTTP: one request for each row of the tables in docs/providers."""

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.guichet_simulator.conftest import CallbackReceiver, Simulator
from tests.patience import PATIENCE

PAYIN = "/feexpay/api/transactions/public/requesttopay"
STATUS = "/feexpay/api/transactions/public/single/status"
PAYOUT = "/feexpay/api/payouts/public"
PAYOUT_STATUS = "/feexpay/api/payouts/status/public"
KEY = {"Authorization": "Bearer fp_key"}
DIALS = {
    "mtn": "229", "moov": "229", "celtiis_bj": "229", "coris": "229", "moov_bf": "226", "orange_bf": "226",
    "wave_bf": "226", "mtn_ci": "225", "moov_ci": "225", "orange_ci": "225", "wave_ci": "225", "orange_ml": "223",
    "mobicash_ml": "223", "orange_sn": "221", "free_sn": "221", "wave_sn": "221", "togocom_tg": "228",
    "moov_tg": "228", "mtn_cg": "242",
}  # fmt: skip
REDIRECTING = {"wave_bf", "wave_ci", "wave_sn", "orange_ci", "moov_ci", "free_sn", "orange_sn"}


def order(phone: str, reference: str = "ref-1", **more: Any) -> dict[str, Any]:
    body = {"shop": "s", "amount": 500, "phoneNumber": phone, "description": "Commande 1", "callback_info": reference}
    return body | more


async def pay(simulator: Simulator, phone: str, segment: str = "mtn", status: int = 200, **more: Any) -> Any:
    return await simulator.json("POST", f"{PAYIN}/{segment}", status, json=order(phone, **more), headers=KEY)


async def ask(simulator: Simulator, reference: str, path: str = STATUS, status: int = 200) -> Any:
    return await simulator.json("GET", f"{path}/{reference}", status, headers=KEY)


async def ask_until(simulator: Simulator, reference: str, wanted: str, path: str = STATUS) -> Any:
    async with asyncio.timeout(PATIENCE):
        while (answer := await ask(simulator, reference, path))["status"] != wanted:
            await simulator.passing()
    return answer


@pytest.mark.parametrize("segment", DIALS)
async def test_every_network_accepts_a_payin(simulator: Simulator, segment: str) -> None:
    more: dict[str, Any] = {"otp": "123456"} if segment in ("orange_bf", "coris") else {}
    more |= {"return_url": "https://shop.example/back"} if segment in REDIRECTING else {}
    answer = await pay(simulator, DIALS[segment] + "61000000", segment, **more)
    assert answer["status"] == "PENDING"
    assert answer["callback_info"] == "ref-1"
    assert ("payment_url" in answer) == (segment in REDIRECTING)
    assert answer["reference"].startswith("AG_") == (segment == "celtiis_bj")
    [held] = (await simulator.truth())["transactions"]
    assert held["currency"] == ("XAF" if segment == "mtn_cg" else "XOF")
    assert held["scenario"] == ("succeeds" if "otp" in more else "waits")


REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("mtn", {"amount": 99}, 400, "ERR_INVALID_AMOUNT"),
    ("mtn", {"amount": 2_000_001}, 400, "ERR_INVALID_AMOUNT"),
    ("mtn", {"amount": "500"}, 400, "ERR_INVALID_AMOUNT"),
    ("mtn", {"phoneNumber": "+22961000000"}, 400, "ERR_INVALID_PHONE_NUMBER"),
    ("mtn", {"description": "Commande-1"}, 400, ""),
    ("mtn", {"shop": ""}, 400, ""),
    ("mtn_ci", {}, 405, ""),
    ("free_sn", {"phoneNumber": "221761234567"}, 400, ""),
    ("orange_bf", {"phoneNumber": "22607345678"}, 400, ""),
    ("orange_bf", {"phoneNumber": "22607345678", "otp": "000000"}, 400, "ERR_TRANSACTION_FAILED"),
    ("nowhere", {}, 404, ""),
]


@pytest.mark.parametrize(("segment", "change", "status", "code"), REFUSED)
async def test_invalid_bodies_are_refused(
    simulator: Simulator, segment: str, change: dict[str, Any], status: int, code: str
) -> None:
    body = {"phone": "2290161000000", **change}
    answer = await simulator.json("POST", f"{PAYIN}/{segment}", status, json=order("2290161000000") | body, headers=KEY)
    assert answer["statusCode"] == status
    assert answer.get("code", "") == code
    assert (await simulator.truth())["transactions"] == []


async def test_a_key_is_required_everywhere(simulator: Simulator) -> None:
    for headers in ({}, {"Authorization": "Bearer invalid"}, {"Authorization": "Basic abc"}):
        answer = await simulator.json("GET", f"{STATUS}/x", 401, headers=headers)
        assert answer == {"success": False, "code": "UNAUTHORIZED", "message": "Unauthorized", "statusCode": 401}
    answer = await ask(simulator, "x", status=404)
    assert answer == {"statusCode": 404, "message": "Transaction not found", "code": "NOT_FOUND"}


async def test_a_payment_approved_on_the_phone_succeeds(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    url = f"{callback_receiver.url}/shop"
    await simulator.json("POST", "/control/dashboard", json={"family": "feexpay", "callback_url": url})
    taken = await pay(simulator, "2290161000000")
    assert (await ask(simulator, taken["reference"]))["status"] == "PENDING"
    async with simulator.http.get(f"{simulator.url}/phone") as answer:
        assert "2290161000000" in (page := await answer.text())
        assert "SIMULATEUR" in page
    [held] = (await simulator.truth())["transactions"]
    assert await simulator.press(held["id"], "approve") == (303, f"{simulator.url}/phone/{held['id']}")
    shown = await ask(simulator, taken["reference"])
    assert (shown["status"], shown["amount"], shown["callback_info"]) == ("SUCCESSFUL", 500, "ref-1")
    assert await simulator.debits(reference="ref-1") == 1
    [notice] = await callback_receiver.wait_for(1)
    assert (notice.method, notice.path) == ("POST", "/shop")
    assert b'"status":"SUCCESSFUL"' in notice.body
    assert await simulator.press(held["id"], "refuse") == (303, f"{simulator.url}/phone/{held['id']}")
    assert (await ask(simulator, taken["reference"]))["status"] == "SUCCESSFUL"


OUTCOMES = [
    ("2290161009003", "FAILED", "LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED", 0),
    ("2290161009001", "SUCCESSFUL", "", 1),
    ("2290161009005", "FAILED", "EXPIRED", 0),
]


@pytest.mark.parametrize(("phone", "status", "reason", "debits"), OUTCOMES)
async def test_the_phone_number_chooses_the_scenario(
    simulator: Simulator, phone: str, status: str, reason: str, debits: int
) -> None:
    taken = await pay(simulator, phone)
    shown = await ask_until(simulator, taken["reference"], status)
    assert shown["reason"] == reason
    assert await simulator.debits() == debits


@pytest.mark.parametrize(("phone", "status"), [("2290195009007", "SUCCESSFUL"), ("2290195009008", "FAILED")])
async def test_a_final_status_is_stated_in_the_response(simulator: Simulator, phone: str, status: str) -> None:
    assert (await pay(simulator, phone, "moov"))["status"] == status


HTTP_FAULTS = [
    ("refused", 400, "ERR_INVALID_PHONE_NUMBER", 0),
    ("not_configured", 404, None, 0),
    ("unauthorized", 401, "UNAUTHORIZED", 0),
    ("rate_limited", 429, "RATE_LIMIT_EXCEEDED", 0),
    ("unavailable", 503, "NETWORK_UNAVAILABLE", 0),
    ("unavailable_stored", 503, "NETWORK_UNAVAILABLE", 1),
    ("error_500", 500, None, 1),
    ("error_500_not_stored", 500, None, 0),
    ("business_500", 400, "ERR_INVALID_PHONE_NUMBER", 0),
]


@pytest.mark.parametrize(("scenario", "status", "code", "stored"), HTTP_FAULTS)
async def test_each_fault_gives_its_response(
    simulator: Simulator, scenario: str, status: int, code: str | None, stored: int
) -> None:
    await simulator.force("feexpay", scenario)
    answer = await pay(simulator, "2290161000000", status=status)
    assert answer.get("code") == code
    assert len((await simulator.truth())["transactions"]) == stored
    await pay(simulator, "2290161000000")


async def test_a_payment_with_a_lost_response_is_in_the_history(simulator: Simulator) -> None:
    await simulator.force("feexpay", "lost_answer", after=0)
    with pytest.raises(aiohttp.ClientError):
        await pay(simulator, "2290161000000", reference="lost-1")
    [held] = (await simulator.truth())["transactions"]
    day = held["created_at"][:10]
    query = {"start_date": day, "end_date": day, "shop": "s", "type": "PAYIN", "status": "SUCCESSFUL"}
    answer = await simulator.json("POST", "/feexpay/api/transactions/history", json=query, headers=KEY)
    [row] = answer["data"]
    assert (row["reference"], row["callback_info"], row["amount"]) == (held["operator_ref"], "lost-1", 500)
    assert (row["type"], row["reseau"], row["status"]) == ("PAYMENT_API", "MTN", "SUCCESSFUL")
    answer = await simulator.json(
        "POST", "/feexpay/api/transactions/history", json=query | {"type": "PAYOUT"}, headers=KEY
    )
    assert (answer["total"], answer["data"]) == (0, [])


async def test_a_repeated_payin_is_a_second_debit(simulator: Simulator) -> None:
    for _ in range(2):
        await pay(simulator, "2290161009007")
    assert await simulator.debits(reference="ref-1") == 2


async def test_an_unreadable_response(simulator: Simulator) -> None:
    await simulator.force("feexpay", "unreadable")
    async with simulator.http.post(f"{simulator.url}{PAYIN}/mtn", json=order("2290161000000"), headers=KEY) as answer:
        assert answer.status == 200
        with pytest.raises(ValueError):
            await answer.json(content_type=None)


async def test_a_slow_response_comes_after_its_delay(simulator: Simulator) -> None:
    await simulator.force("feexpay", "slow", delay=180)
    paying = asyncio.create_task(pay(simulator, "2290161000000"))
    async with asyncio.timeout(PATIENCE):
        while 180 not in simulator.clock.sleepers:
            await asyncio.sleep(0.002)
    assert len((await simulator.truth())["transactions"]) == 1, "stored at once"
    assert not paying.done()
    simulator.clock.advance(180)
    assert (await paying)["reference"]


@pytest.mark.parametrize(("scenario", "amount"), [("wrong_amount", 499), ("hidden_amount", None), ("succeeds", 500)])
async def test_scenarios_change_the_stated_amount_and_currency(
    simulator: Simulator, scenario: str, amount: int | None
) -> None:
    await simulator.force("feexpay", scenario, after=0)
    taken = await pay(simulator, "2290161000000")
    assert (await ask_until(simulator, taken["reference"], "SUCCESSFUL")).get("amount") == amount


async def test_untrue_callbacks_are_sent(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    await simulator.json(
        "POST", "/control/dashboard", json={"family": "feexpay", "callback_url": callback_receiver.url}
    )
    await simulator.force("feexpay", "late_callback", after=0)
    await pay(simulator, "2290161000000")
    notices = await callback_receiver.wait_for(2)
    assert [b'"status":"SUCCESSFUL"' in notice.body for notice in notices] == [True, False]
    callback_receiver.received.clear()
    taken = await pay(simulator, "2290161009022")
    [forged] = await callback_receiver.wait_for(1)
    assert b'"status":"SUCCESSFUL"' in forged.body
    assert (await ask(simulator, taken["reference"]))["status"] == "PENDING"
    assert await simulator.debits(reference="ref-1") == 1
    callback_receiver.received.clear()
    await simulator.force("feexpay", "duplicate_callback", after=0)
    await pay(simulator, "2290161000000")
    first, second = await callback_receiver.wait_for(2)
    assert b'"SUCCESSFUL"' in first.body
    assert b'"SUCCESSFUL"' in second.body


async def test_a_status_query_fails_once(simulator: Simulator) -> None:
    taken = await pay(simulator, "2290161009214")
    assert (await ask(simulator, taken["reference"], status=500))["statusCode"] == 500
    await ask(simulator, taken["reference"])
    await simulator.force("feexpay", "rate_limited", "status", times=2)
    for _ in range(2):
        await ask(simulator, taken["reference"], status=429)
    await ask(simulator, taken["reference"])


async def test_coris_texts_a_code_that_works_once(simulator: Simulator) -> None:
    first = await pay(simulator, "2290161000000", "coris")
    assert "reference" not in first
    async with simulator.http.get(f"{simulator.url}/phone") as answer:
        code = (await answer.text()).partition("F est ")[2][:6]
    await pay(simulator, "2290161000000", "coris", 400, otp="999999" if code != "999999" else "999998")
    taken = await pay(simulator, "2290161000000", "coris", otp=code)
    await ask_until(simulator, taken["reference"], "SUCCESSFUL")
    await pay(simulator, "2290161000000", "coris", 400, otp=code)
    assert await simulator.debits() == 1


PAYOUTS = [
    ("/transfer/global", {"network": "MTN", "amount": 50}, "2290161000000", "mtn"),
    ("/transfer/global", {"network": "MOOV", "amount": 50}, "2290195000000", "moov"),
    ("/celtiis_bj", {"network": "CELTIIS BJ"}, "2290140000000", "celtiis_bj"),
    ("/togo", {"network": "TOGOCOM TG"}, "22890000000", "togocom_tg"),
    ("/togo", {"network": "MOOV TG"}, "22896000000", "moov_tg"),
    ("/wave_sn", {}, "221770000000", "wave_sn"),
    ("/mtn_cg", {}, "242060000000", "mtn_cg"),
]


@pytest.mark.parametrize(("path", "more", "phone", "operator"), PAYOUTS)
async def test_payouts_are_sent_and_read(
    simulator: Simulator, path: str, more: dict[str, Any], phone: str, operator: str
) -> None:
    body = {"shop": "s", "amount": 100, "phoneNumber": phone, "motif": "Remboursement", "callback_info": "refund-1"}
    taken = await simulator.json("POST", f"{PAYOUT}{path}", json=body | more, headers=KEY)
    assert (taken["status"], taken["callback_info"]) == ("PENDING", "refund-1")
    await ask_until(simulator, taken["reference"], "SUCCESSFUL", PAYOUT_STATUS)
    assert await simulator.credits(reference="refund-1") == 1
    [held] = (await simulator.truth())["transactions"]
    assert held["operator"] == operator


async def test_invalid_payouts_are_refused(simulator: Simulator) -> None:
    body = {"shop": "s", "amount": 100, "phoneNumber": "2290161009106", "motif": "Remb", "network": "MTN"}
    answer = await simulator.json("POST", f"{PAYOUT}/transfer/global", 400, json=body, headers=KEY)
    assert answer["code"] == "ERR_INVALID_PHONE_NUMBER"
    answer = await simulator.json(
        "POST", f"{PAYOUT}/transfer/global", 403, json=body | {"phoneNumber": "2290161009130"}, headers=KEY
    )
    assert answer["code"] == "ERR_PAYOUT_NOT_ENABLED"
    await simulator.json("POST", f"{PAYOUT}/coris", 404, json=body, headers=KEY)
    await simulator.json("POST", f"{PAYOUT}/transfer/global", 400, json=body | {"motif": "l'été"}, headers=KEY)
    taken = await simulator.json(
        "POST", f"{PAYOUT}/transfer/global", json=body | {"phoneNumber": "2290161009103"}, headers=KEY
    )
    await ask_until(simulator, taken["reference"], "FAILED", PAYOUT_STATUS)
    assert (await ask(simulator, taken["reference"], status=404))["code"] == "NOT_FOUND"
    assert await simulator.credits() == 0


async def test_cards_are_paid_on_a_hosted_page(simulator: Simulator) -> None:
    body = {
        "shop": "s", "amount": 1500, "phone": "22961000000", "first_name": "A", "last_name": "B", "email": "a@b.co",
        "type_card": "VISA", "currency": "XOF", "callback_info": "card-1", "success_redirect_url": "https://m.example/ok",
        "error_redirect_url": "https://m.example/ko",
    }  # fmt: skip
    path = "/feexpay/api/transactions/public/initcard"
    await simulator.json("POST", path, 400, json=body | {"type_card": "AMEX"}, headers=KEY)
    taken = await simulator.json("POST", path, json=body, headers=KEY)
    async with simulator.http.get(taken["url"]) as answer:
        assert "Approuver" in (page := await answer.text())
        assert "SIMULATEUR" in page
    [held] = (await simulator.truth(reference="card-1"))["transactions"]
    assert await simulator.press(held["id"], "approve", hosted="1") == (303, "https://m.example/ok")
    assert (await ask(simulator, taken["reference"]))["status"] == "SUCCESSFUL"
    second = await simulator.json("POST", path, json=body, headers=KEY)
    newest = (await simulator.truth(reference="card-1"))["transactions"][0]
    assert await simulator.press(newest["id"], "refuse", hosted="1") == (303, "https://m.example/ko")
    assert (await ask(simulator, second["reference"]))["status"] == "FAILED"


async def test_probe_endpoints_answer(simulator: Simulator) -> None:
    await pay(simulator, "2290161009007")
    answer = await simulator.json("GET", "/feexpay/api/balance/public/getByShop/s", headers=KEY)
    assert answer["data"]["data"]["balances"]["MTN"] == 500
    await simulator.json("GET", "/feexpay/api/shop/s/get_shop", headers=KEY)
    await simulator.json("GET", "/feexpay/api/shop/s/get_shop", 401)
