"""PayDunya over real HTTP: one request for each row of the tables in docs/providers."""

import asyncio
import hashlib
import json
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
import pytest

from tests.guichet_simulator.conftest import CallbackReceiver, Simulator
from tests.patience import PATIENCE

KEYS = {
    "PAYDUNYA-MASTER-KEY": "master",
    "PAYDUNYA-PRIVATE-KEY": "live_private_key",
    "PAYDUNYA-TOKEN": "token",
}
TEST_KEYS = KEYS | {"PAYDUNYA-PRIVATE-KEY": "test_private_key"}
INVOICES = "/paydunya/api/v1/checkout-invoice"
TEST_INVOICES = "/paydunya/sandbox-api/v1/checkout-invoice"
SOFTPAY = "/paydunya/api/v1/softpay"
PAYOUTS = "/paydunya/api/v2/disburse"
DIGEST = hashlib.sha512(b"master").hexdigest()
URLS = {"return_url": "https://m.example/ok", "cancel_url": "https://m.example/ko"}

#: The fields of each network as PayDunya's page names them: the number first, then those that may be anything.
FIELDS: dict[str, tuple[str, ...]] = {
    "mtn-benin": (
        "mtn_benin_phone_number", "mtn_benin_customer_fullname", "mtn_benin_email", "mtn_benin_wallet_provider",
        "payment_token",
    ),
    "moov-benin": ("moov_benin_phone_number", "moov_benin_customer_fullname", "moov_benin_email", "payment_token"),
    "celtiis-cash": (
        "celtiis_cash_phone_number", "celtiis_cash_customer_fullname", "celtiis_cash_customer_email", "payment_token",
    ),
    "moov-burkina": (
        "moov_burkina_faso_phone_number", "moov_burkina_faso_fullName", "moov_burkina_faso_email",
        "moov_burkina_faso_payment_token",
    ),
    "orange-money-burkina": ("phone_bf", "name_bf", "email_bf", "otp_code", "payment_token"),
    "mtn-ci": (
        "mtn_ci_phone_number", "mtn_ci_customer_fullname", "mtn_ci_email", "mtn_ci_wallet_provider", "payment_token",
    ),
    "moov-ci": ("moov_ci_phone_number", "moov_ci_customer_fullname", "moov_ci_email", "payment_token"),
    "orange-money-ci": (
        "orange_money_ci_phone_number", "orange_money_ci_customer_fullname", "orange_money_ci_email",
        "orange_money_ci_otp", "payment_token",
    ),
    "wave-ci": ("wave_ci_phone", "wave_ci_fullName", "wave_ci_email", "wave_ci_payment_token"),
    "orange-money-mali": (
        "orange_money_mali_phone_number", "orange_money_mali_customer_fullname", "orange_money_mali_email",
        "orange_money_mali_customer_address", "payment_token",
    ),
    "new-orange-money-senegal": ("phone_number", "customer_name", "customer_email", "invoice_token"),
    "free-money-senegal": ("phone_number", "customer_name", "customer_email", "payment_token"),
    "wave-senegal": (
        "wave_senegal_phone", "wave_senegal_fullName", "wave_senegal_email", "wave_senegal_payment_token",
    ),
    "t-money-togo": ("phone_t_money", "name_t_money", "email_t_money", "payment_token"),
    "moov-togo": (
        "moov_togo_phone_number", "moov_togo_customer_fullname", "moov_togo_email", "moov_togo_customer_address",
        "payment_token",
    ),
}  # fmt: skip


def order(**more: Any) -> dict[str, Any]:
    invoice = {"total_amount": 1000, "description": "Commande", **more}
    actions = {"callback_url": "http://127.0.0.1:9/", **URLS}
    return {
        "invoice": invoice,
        "store": {"name": "Boutique"},
        "custom_data": {"reference": "ref-1"},
        "actions": actions,
    }


async def create(simulator: Simulator, **more: Any) -> str:
    answer = await simulator.json("POST", f"{INVOICES}/create", json=order(**more), headers=KEYS)
    assert answer["response_code"] == "00", answer
    token: str = answer["token"]
    return token


def fields(network: str, token: str, number: str = "0197000001") -> dict[str, str]:
    names = FIELDS[network]
    return dict.fromkeys(names, "any") | {names[0]: number, names[-1]: token}


async def charge(simulator: Simulator, token: str, network: str = "moov-benin", status: int = 200, **more: Any) -> Any:
    body = fields(network, token) | more
    return await simulator.json("POST", f"{SOFTPAY}/{network}", status, json=body, headers=KEYS)


async def state(simulator: Simulator, token: str) -> Any:
    return await simulator.json("GET", f"{INVOICES}/confirm/{token}", headers=KEYS)


async def until(simulator: Simulator, token: str, wanted: str) -> Any:
    async with asyncio.timeout(PATIENCE):
        while (found := await state(simulator, token))["status"] != wanted:
            await simulator.passing()
    return found


async def test_an_invoice_is_charged_confirmed_and_read(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    body = order()
    body["actions"]["callback_url"] = f"{callback_receiver.url}/callback/ref-1"
    made = await simulator.json("POST", f"{INVOICES}/create", json=body, headers=KEYS)
    assert (made["response_code"], made["description"]) == ("00", "Checkout Invoice Created")
    assert made["response_text"].endswith(f"/checkout/invoice/{made['token']}")
    assert (await state(simulator, made["token"]))["status"] == "pending"
    assert (await simulator.truth())["transactions"] == []
    assert (await charge(simulator, made["token"]))["success"] is True
    [held] = (await simulator.truth(reference="ref-1"))["transactions"]
    assert await simulator.press(held["id"], "approve") == (303, f"{simulator.url}/phone/{held['id']}")
    done = await state(simulator, made["token"])
    assert (done["status"], done["mode"], done["invoice"]["total_amount"]) == ("completed", "live", 1000)
    assert (done["custom_data"], done["hash"]) == ({"reference": "ref-1"}, DIGEST)
    assert (done["customer"]["phone"], done["customer"]["payment_method"]) == ("0197000001", "moov_benin")
    [notice] = await callback_receiver.wait_for(1)
    assert notice.path == "/callback/ref-1"
    assert await simulator.debits(reference="ref-1") == 1


@pytest.mark.parametrize("network", list(FIELDS))
async def test_a_charge_needs_exactly_the_fields_of_its_network(simulator: Simulator, network: str) -> None:
    token = await create(simulator)
    for missing in FIELDS[network]:
        body = {name: value for name, value in fields(network, token).items() if name != missing}
        refusal = await simulator.json("POST", f"{SOFTPAY}/{network}", json=body, headers=KEYS)
        assert refusal == {"success": False, "message": "informations saisies incorrectes"}
    await simulator.force("paydunya", "succeeds")
    assert (await charge(simulator, token, network))["success"] is True
    assert len((await simulator.truth())["transactions"]) == 1


async def test_numbers_have_no_country_code_and_tokens_exist(simulator: Simulator) -> None:
    token = await create(simulator)
    answer = await charge(simulator, token, phone="x", moov_benin_phone_number="2290197000001")
    assert "numéro valide" in answer["message"]
    assert await charge(simulator, "other00000") == {"success": False, "message": "invoice inexistant"}
    answer = await state(simulator, "other00000")
    assert answer["response_code"] != "00"


async def test_each_mode_has_its_keys_and_the_test_mode_no_charge(simulator: Simulator) -> None:
    made = await simulator.json("POST", f"{TEST_INVOICES}/create", json=order(), headers=TEST_KEYS)
    assert made["token"].startswith("test_")
    assert "/sandbox-checkout/invoice/" in made["response_text"]
    found = await simulator.json("GET", f"{TEST_INVOICES}/confirm/{made['token']}", headers=TEST_KEYS)
    assert (found["mode"], found["status"]) == ("test", "pending")
    mixed = await simulator.json("POST", f"{INVOICES}/create", json=order(), headers=TEST_KEYS)
    expected = {"response_code": "1001", "response_text": "LIVE Private Key and Token combination is invalid"}
    assert mixed == expected
    mixed = await simulator.json("POST", f"{TEST_INVOICES}/create", json=order(), headers=KEYS)
    assert mixed["response_text"].startswith("TEST Private Key")
    nobody = await simulator.json("POST", f"{INVOICES}/create", json=order(), headers={})
    assert nobody["response_text"] == "Invalid Masterkey Specified"
    for path in ("sandbox-api/v1/softpay/moov-benin", "api/v1/softpay/unheard-of"):
        url = f"{simulator.url}/paydunya/{path}"
        async with simulator.http.post(url, json={}, headers=KEYS) as answer:
            assert (answer.status, answer.content_type) == (404, "text/html")


@pytest.mark.parametrize(
    "change", [{"total_amount": 199}, {"total_amount": "1000"}, {"total_amount": 1000.5}, {"total_amount": None}]
)
async def test_invalid_amounts_are_refused_with_200(simulator: Simulator, change: dict[str, Any]) -> None:
    answer = await simulator.json("POST", f"{INVOICES}/create", json=order(**change), headers=KEYS)
    assert answer["response_code"] != "00"


async def test_a_refused_invoice_stays_pending_and_can_be_charged_again(simulator: Simulator) -> None:
    token = await create(simulator)
    await simulator.force("paydunya", "declined", after=0)
    await charge(simulator, token)
    async with asyncio.timeout(PATIENCE):
        while (await charge(simulator, token))["success"] is not True:
            await simulator.passing()
    [held] = (await simulator.truth())["transactions"]
    assert (await state(simulator, token))["status"] == "pending"
    await simulator.press(held["id"], "approve")
    assert (await until(simulator, token, "completed"))["status"] == "completed"
    assert await simulator.debits() == 1


async def test_codes_pages_and_late_answers(simulator: Simulator) -> None:
    wrong = await charge(simulator, await create(simulator), "orange-money-burkina", 422, otp_code="000000")
    assert wrong == {"message": "Invalid or expired OTP code!"}
    right = await charge(simulator, await create(simulator), "orange-money-burkina")
    assert right["success"] is True
    page = await charge(simulator, await create(simulator), "new-orange-money-senegal")
    assert set(page["other_url"]) == {"om_url", "maxit_url"}
    code: dict[str, Any] = {"api_type": "OTPCODE", "authorization_code": "123456"}
    assert "url" not in await charge(simulator, await create(simulator), "new-orange-money-senegal", **code)
    late = await create(simulator)
    await simulator.force("paydunya", "pending_long", after=31)
    refusal = await charge(simulator, late, "moov-ci")
    assert refusal["message"] == "Vous avez dépassé le délai de validation de la transaction."
    [held, *_] = (await simulator.truth())["transactions"]
    await simulator.press(held["id"], "approve")
    assert (await state(simulator, late))["status"] == "completed", "paid after a false"


async def test_a_page_may_be_paid_by_another_number(simulator: Simulator) -> None:
    token = await create(simulator)
    page = (await charge(simulator, token, "wave-senegal", wave_senegal_phone="770000001"))["url"]
    async with simulator.http.get(page) as answer:
        assert "SIMULATEUR" in await answer.text()
    [held] = (await simulator.truth())["transactions"]
    decided = {"decision": "approve", "payer": "221779999999"}
    await simulator.json("POST", f"/control/transactions/{held['id']}/decide", json=decided)
    assert (await state(simulator, token))["customer"]["phone"] == "779999999"


async def test_the_page_of_an_invoice_sends_the_customer_back_with_its_token(simulator: Simulator) -> None:
    token = await create(simulator, channels=["card"])
    async with simulator.http.get(f"{simulator.url}/paydunya/checkout/invoice/{token}") as answer:
        assert answer.status == 200
    [held] = (await simulator.truth(reference="ref-1"))["transactions"]
    assert await simulator.press(held["id"], "approve", hosted="1") == (303, f"https://m.example/ok?token={token}")
    assert (await state(simulator, token))["status"] == "completed"


async def test_callbacks_come_in_four_forms_and_a_forged_one_lacks_the_digest(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    body = order()
    body["actions"]["callback_url"] = callback_receiver.url
    for number in range(4):
        made = await simulator.json("POST", f"{INVOICES}/create", json=body, headers=KEYS)
        await simulator.force("paydunya", "final_success")
        await charge(simulator, made["token"])
        await callback_receiver.wait_for(number + 1)
    forms = set()
    for each in callback_receiver.received:
        is_form = each.headers["content-type"] == "application/x-www-form-urlencoded"
        pairs = dict(parse_qsl(each.body.decode())) if is_form else json.loads(each.body)
        forms.add((is_form, "data" in pairs))
        text = json.dumps(pairs)
        assert DIGEST in text
        assert "completed" in text
    assert forms == {(True, False), (True, True), (False, True), (False, False)}
    [held, *_] = (await simulator.truth())["transactions"]
    claim = {"transaction": held["id"], "claim": "failed", "forged": True}
    await simulator.json("POST", "/control/callbacks", 202, json=claim)
    received = await callback_receiver.wait_for(5)
    assert DIGEST not in received[-1].body.decode()


# Payouts


def payout(**more: Any) -> dict[str, Any]:
    body = {"account_alias": "0197000001", "amount": 500, "withdraw_mode": "moov-benin"}
    return body | more


@pytest.fixture
async def address(callback_receiver: CallbackReceiver) -> str:
    """It answers the empty POST by which every announcement is tried."""
    return f"{callback_receiver.url}/callback/r-1"


async def ask(simulator: Simulator, call: str, status: int = 200, **body: Any) -> Any:
    return await simulator.json("POST", f"{PAYOUTS}/{call}", status, json=body, headers=KEYS)


async def test_a_payout_is_announced_submitted_and_read(simulator: Simulator, address: str) -> None:
    token = (await ask(simulator, "get-invoice", **payout(callback_url=address)))["disburse_token"]
    assert (await ask(simulator, "check-status", disburse_invoice=token))["status"] == "created"
    assert await simulator.credits() == 0
    sent = await ask(simulator, "submit-invoice", disburse_invoice=token, disburse_id="r-1")
    assert (sent["response_code"], sent["status"]) == ("00", "pending")
    for more in ({"disburse_invoice": token, "disburse_id": "r-2"}, {"disburse_invoice": "x", "disburse_id": "r-1"}):
        assert (await ask(simulator, "submit-invoice", **more))["response_code"] != "00"
    async with asyncio.timeout(PATIENCE):
        while (done := await ask(simulator, "check-status", disburse_invoice=token))["status"] == "pending":
            await simulator.passing()
    assert (done["status"], done["amount"], done["disburse_id"]) == ("success", "500.00", "r-1")
    assert await simulator.credits(reference="r-1") == 1
    balances = await simulator.json("GET", f"{PAYOUTS}/check-balance", headers=KEYS)
    assert (balances["Balance BJ"], balances["Balance SN"]) == ("-500 XOF", "0 XOF")


async def test_one_reference_pays_once_under_another_announcement_too(simulator: Simulator, address: str) -> None:
    for number in range(2):
        token = (await ask(simulator, "get-invoice", **payout(callback_url=address)))["disburse_token"]
        answer = await ask(simulator, "submit-invoice", disburse_invoice=token, disburse_id="r-1")
        assert answer["response_code"] == ("00", "5000")[number]
    assert len((await simulator.truth(kind="credit"))["transactions"]) == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"withdraw_mode": "moov-burkina"}, "1001"),
        ({"amount": 199}, "4003"),
        ({"amount": "500"}, "4003"),
        ({"account_alias": "2290197000001"}, "4004"),
    ],
)
async def test_invalid_payouts_are_refused(
    simulator: Simulator, address: str, change: dict[str, Any], code: str
) -> None:
    assert (await ask(simulator, "get-invoice", **payout(callback_url=address, **change)))["response_code"] == code


@pytest.mark.parametrize(
    ("scenario", "status", "code"),
    [("refused", 200, "4004"), ("not_configured", 401, "1001"), ("rate_limited", 429, None)],
)
async def test_who_may_not_pay_is_told_at_the_announcement(
    simulator: Simulator, address: str, scenario: str, status: int, code: str | None
) -> None:
    await simulator.force("paydunya", scenario, "credit")
    assert (await ask(simulator, "get-invoice", status, **payout(callback_url=address))).get("response_code") == code


async def test_an_empty_balance_refuses_the_submission(simulator: Simulator, address: str) -> None:
    await simulator.json("POST", "/control/dashboard", json={"family": "paydunya", "float_empty": True})
    token = (await ask(simulator, "get-invoice", **payout(callback_url=address)))["disburse_token"]
    answer = await ask(simulator, "submit-invoice", disburse_invoice=token, disburse_id="r-1")
    assert (answer["response_code"], "enough funds" in answer["response_text"]) == ("4002", True)
    assert (await ask(simulator, "check-status", disburse_invoice=token))["status"] == "created"


@pytest.mark.parametrize(
    ("call", "path", "body"),
    [("token", f"{INVOICES}/create", order()), ("token", f"{PAYOUTS}/get-invoice", payout())],
)
async def test_the_answers_to_calls_that_move_nothing_can_be_lost(
    simulator: Simulator, address: str, call: str, path: str, body: dict[str, Any]
) -> None:
    body = {**body, "callback_url": address}
    await simulator.force("paydunya", "lost_answer", call)
    with pytest.raises(aiohttp.ClientError):
        await simulator.json("POST", path, json=body, headers=KEYS)
    assert (await simulator.json("POST", path, json=body, headers=KEYS))["response_code"] == "00"


async def test_an_announcement_tries_the_address_with_an_empty_body(
    simulator: Simulator, callback_receiver: CallbackReceiver, address: str
) -> None:
    await ask(simulator, "get-invoice", **payout(callback_url=address))
    [tried] = callback_receiver.received
    assert (tried.method, tried.path, tried.body) == ("POST", "/callback/r-1", b"")
    for deaf in ("http://127.0.0.1:9/", None):
        answer = await ask(simulator, "get-invoice", **payout(callback_url=deaf))
        assert answer == {"response_code": "4002", "response_text": "the callback is not accessible"}
    callback_receiver.answers = [404]
    assert (await ask(simulator, "get-invoice", **payout(callback_url=address)))["response_code"] == "4002"
