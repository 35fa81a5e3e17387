"""What simulated providers tell about an account, and what is made there once (docs/providers, "Going live")."""

import uuid
from typing import Any

from tests.guichet_simulator.conftest import Simulator

WAVE = {"Authorization": "Bearer wave_sn_prod_key"}
MERCHANTS = "/wave/v1/aggregated_merchants"
SESSION = {"amount": "1000", "currency": "XOF", "success_url": "https://m.example", "error_url": "https://m.example"}
PAYOUT = {"currency": "XOF", "receive_amount": "1000", "mobile": "+221770000000"}


async def _make(simulator: Simulator, name: str, status: int = 200, **more: str) -> Any:
    body = {"name": name, "business_type": "other", "business_description": "x", **more}
    return await simulator.json("POST", MERCHANTS, status, json=body, headers=WAVE)


async def test_wave_lists_its_aggregated_merchants_by_pages(simulator: Simulator) -> None:
    made = [(await _make(simulator, f"M ({number})"))["id"] for number in range(5)]
    seen: list[str] = []
    after: dict[str, str] = {}
    for expected in (True, True, False):
        page = await simulator.json("GET", MERCHANTS, params={"first": "2", **after}, headers=WAVE)
        seen += [row["id"] for row in page["items"]]
        assert page["page_info"]["has_next_page"] is expected
        after = {"after": page["page_info"]["end_cursor"]}
    assert seen == made
    assert (await simulator.json("GET", f"{MERCHANTS}/{made[3]}", headers=WAVE))["name"] == "M (3)"


async def test_wave_refuses_a_name_twice_and_an_incomplete_merchant(simulator: Simulator) -> None:
    await _make(simulator, "Awa (1)")
    await _make(simulator, "Awa (1)", 400)
    await _make(simulator, "Binta (2)", 400, business_type="shop")
    await _make(simulator, "x" * 256, 400)
    await simulator.json("GET", MERCHANTS, 401)


async def test_wave_refuses_sessions_and_payouts_for_an_unknown_merchant(simulator: Simulator) -> None:
    known = (await _make(simulator, "Awa (1)"))["id"]
    for wanted, status in (("am-unknown", 400), (known, 200)):
        named = {"aggregated_merchant_id": wanted}
        await simulator.json("POST", "/wave/v1/checkout/sessions", status, json={**SESSION, **named}, headers=WAVE)
        headers = {**WAVE, "Idempotency-Key": str(uuid.uuid4())}
        await simulator.json("POST", "/wave/v1/payout", status, json={**PAYOUT, **named}, headers=headers)


async def test_mtns_sandbox_makes_api_users_and_keys(simulator: Simulator) -> None:
    key, user = {"Ocp-Apim-Subscription-Key": "s"}, str(uuid.uuid4())

    async def create(status: int, reference: str = user) -> None:
        host = {"providerCallbackHost": "pay.example.com"}
        headers = {**key, "X-Reference-Id": reference}
        url = f"{simulator.url}/mtn/v1_0/apiuser"
        async with simulator.http.post(url, json=host, headers=headers) as answer:
            assert answer.status == status

    await create(201)
    await create(409)
    await create(400, "no-uuid")
    read = await simulator.json("GET", f"/mtn/v1_0/apiuser/{user}", headers=key)
    assert read == {"providerCallbackHost": "pay.example.com", "targetEnvironment": "sandbox"}
    made = [await simulator.json("POST", f"/mtn/v1_0/apiuser/{user}/apikey", 201, headers=key) for _ in range(2)]
    assert made[0]["apiKey"] != made[1]["apiKey"]
    await simulator.json("POST", f"/mtn/v1_0/apiuser/{uuid.uuid4()}/apikey", 404, headers=key)
    await simulator.json("GET", f"/mtn/v1_0/apiuser/{user}", 401)


async def test_mtns_disbursement_is_empty_when_the_dashboard_says_so(simulator: Simulator) -> None:
    headers = {"Authorization": "Basic dTprZXk=", "Ocp-Apim-Subscription-Key": "s"}
    token = (await simulator.json("POST", "/mtn/disbursement/token/", headers=headers))["access_token"]
    headers |= {"Authorization": f"Bearer {token}", "X-Target-Environment": "mtnbenin"}
    path = "/mtn/disbursement/v1_0/account/balance"
    assert (await simulator.json("GET", path, headers=headers))["availableBalance"] == "10000000"
    await simulator.json("POST", "/control/dashboard", json={"family": "mtn", "float_empty": True})
    assert (await simulator.json("GET", path, headers=headers))["availableBalance"] == "0"


async def test_stripe_and_sonatel_tell_the_callback_address(simulator: Simulator) -> None:
    stripe = {"Authorization": "Bearer sk_live_1"}
    assert (await simulator.json("GET", "/stripe/v1/webhook_endpoints", headers=stripe))["data"] == []
    assert (await simulator.json("GET", "/stripe/v1/account", headers=stripe))["charges_enabled"] is True
    form = {"client_id": "c", "client_secret": "s", "grant_type": "client_credentials"}
    token = (await simulator.json("POST", "/sonatel/oauth/v1/token", data=form))["access_token"]
    sonatel = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    callback = "/sonatel/api/notification/v1/merchantcallback"
    await simulator.json("GET", f"{callback}?code=123456", 404, headers=sonatel)
    for family, url in (("stripe", "https://a.example/x"), ("sonatel", "https://b.example/y")):
        await simulator.json("POST", "/control/dashboard", json={"family": family, "callback_url": url})
    [endpoint] = (await simulator.json("GET", "/stripe/v1/webhook_endpoints", headers=stripe))["data"]
    [registered] = await simulator.json("GET", f"{callback}?code=123456", headers=sonatel)
    assert (endpoint["url"], registered["callbackUrl"]) == ("https://a.example/x", "https://b.example/y")
