"""PyPI wave-business-api against the simulated Wave."""

import asyncio
import json
from typing import Any

import pytest
import requests
from wave_business_api import WaveClient, WebhookVerifier
from wave_business_api.exceptions import (
    WaveAuthError,
    WaveIdempotencyError,
    WaveNotFoundError,
    WaveValidationError,
    WaveWebhookError,
)

from guichet.clock import SystemClock, iso
from guichet_simulator.app import SECRETS
from tests.guichet_simulator.conftest import CallbackReceiver, Simulator
from tests.real_clients.conftest import customer, until

SENEGAL, COTE_D_IVOIRE = "wave_sn_prod_key", "wave_ci_prod_key"
SIGNING_SECRET = "wave_sn_AKS_simulator"
URLS = {"success_url": "https://m.example/ok", "error_url": "https://m.example/ko"}


def client(simulator: Simulator, key: str = SENEGAL, signing_secret: str | None = None) -> WaveClient:
    """The client drops the path of a base address."""
    return WaveClient(key, signing_secret, base_url=simulator.url.removesuffix("/simulator"))


async def checkout(wave: WaveClient, reference: str = "order-1", amount: str = "1000", **more: str) -> Any:
    options = {"amount": amount, "currency": "XOF", "client_reference": reference, **URLS, **more}
    return await asyncio.to_thread(lambda: wave.checkout.create_session(**options))


async def test_a_session_is_paid_searched_and_refunded(simulator: Simulator) -> None:
    wave = client(simulator)
    session = await checkout(wave)
    assert (session["checkout_status"], session["payment_status"]) == ("open", "processing")
    await customer(simulator, "order-1", "approve")
    done = await asyncio.to_thread(wave.checkout.get_session, session["id"])
    assert (done["checkout_status"], done["payment_status"]) == ("complete", "succeeded")
    assert await asyncio.to_thread(wave.checkout.search_sessions, "order-1") == [done]
    assert await asyncio.to_thread(wave.checkout.get_session_by_transaction, done["transaction_id"]) == done
    assert await asyncio.to_thread(wave.balance.get) == {"amount": "990", "currency": "XOF"}  # Wave kept a hundredth.
    for _ in range(2):
        assert await asyncio.to_thread(wave.checkout.refund_session, session["id"]) is None
    assert await simulator.credits(reference="order-1") == 1
    assert (await asyncio.to_thread(wave.balance.get))["amount"] == "-10"


async def test_a_session_that_is_refused_or_expired_fails(simulator: Simulator) -> None:
    wave = client(simulator)
    refused, expired = await checkout(wave, "order-1"), await checkout(wave, "order-2")
    await customer(simulator, "order-1", "insufficient")
    found = await until(
        simulator, wave.checkout.get_session, refused["id"], wanted=lambda each: each["payment_status"] == "cancelled"
    )
    assert found["last_payment_error"]["code"] == "insufficient-funds"
    await asyncio.to_thread(wave.checkout.expire_session, expired["id"])
    assert (await asyncio.to_thread(wave.checkout.get_session, expired["id"]))["checkout_status"] == "expired"
    with pytest.raises(WaveIdempotencyError):
        await asyncio.to_thread(wave.checkout.expire_session, expired["id"])
    with pytest.raises(WaveValidationError):
        await checkout(wave, amount="10.5")


async def test_a_payout_is_made_once_for_its_key(simulator: Simulator) -> None:
    wave = client(simulator)

    def pay(amount: str = "500", mobile: str = "+221770000000") -> Any:
        return wave.payout.create("XOF", amount, mobile, idempotency_key="k1", client_reference="payout-1")

    first = await asyncio.to_thread(pay)
    assert (await asyncio.to_thread(pay))["id"] == first["id"]
    done = await until(simulator, wave.payout.get, first["id"], wanted=lambda each: each["status"] != "processing")
    assert done["status"] == "succeeded"
    assert await asyncio.to_thread(wave.payout.search, "payout-1") == [done]
    assert await simulator.credits(reference="payout-1") == 1
    with pytest.raises(WaveIdempotencyError) as refusal:
        await asyncio.to_thread(pay, "501")
    assert refusal.value.error_code == "idempotency-mismatch"
    verified = await asyncio.to_thread(wave.payout.verify_recipient, "+221770000000", "Awa Diop")
    assert verified == {"within_limits": True, "name_match": "MATCH"}


async def test_a_batch_of_payouts_completes(simulator: Simulator) -> None:
    wave = client(simulator)
    payouts = [
        {"currency": "XOF", "receive_amount": "100", "mobile": f"+22177000000{last}", "client_reference": f"b{last}"}
        for last in range(3)
    ]
    batch = await asyncio.to_thread(wave.payout.create_batch, payouts, "k1")
    assert await asyncio.to_thread(wave.payout.create_batch, payouts, "k1") == batch
    done = await until(simulator, wave.payout.get_batch, batch["id"], wanted=lambda each: each["status"] == "complete")
    assert [each["status"] for each in done["payouts"]] == ["succeeded"] * 3
    assert await simulator.credits(family="wave") == 3
    with pytest.raises(WaveValidationError):
        await asyncio.to_thread(wave.payout.create_batch, [{**payouts[0], "mobile": "?"}], "k2")
    with pytest.raises(WaveNotFoundError):
        await asyncio.to_thread(wave.payout.get_batch, "pb-unknown")


async def test_the_statement_of_a_day_comes_in_pages(simulator: Simulator) -> None:
    wave = client(simulator)
    for number in range(5):
        await simulator.force("wave", "final_success")
        await checkout(wave, f"order-{number}", restrict_payer_mobile="+221770000000")
    [session] = await asyncio.to_thread(wave.checkout.search_sessions, "order-0")
    assert await asyncio.to_thread(wave.balance.refund_transaction, session["transaction_id"]) is None
    today = iso(SystemClock().now())[:10]
    rows: list[Any] = []
    cursor = None
    while True:
        page = await asyncio.to_thread(wave.balance.get_transactions, today, cursor, False, 2)
        assert (page["date"], len(page["items"]) <= 2) == (today, True)
        rows += page["items"]
        if not page["page_info"]["has_next_page"]:
            break
        cursor = page["page_info"]["end_cursor"]
    assert rows == await asyncio.to_thread(lambda: list(wave.balance.get_all_transactions(today)))
    assert [row["client_reference"] for row in rows] == [f"order-{number}" for number in (0, 1, 2, 3, 4, 0)]
    assert {(row["transaction_type"], row["amount"], row["fee"], row["is_reversal"]) for row in rows} == {
        ("api_checkout", "990", "10", False),
        ("api_checkout_refund", "-1000", "0", True),
    }
    assert (await asyncio.to_thread(wave.balance.get_transactions, "2020-01-01"))["items"] == []
    with pytest.raises(WaveValidationError):
        await asyncio.to_thread(wave.balance.get_transactions, "yesterday")


async def test_aggregated_merchants_are_made_listed_changed_and_deleted(simulator: Simulator) -> None:
    merchants = client(simulator).aggregated_merchants
    made = [await asyncio.to_thread(merchants.create, f"M{number}", "other", "a shop") for number in range(3)]
    assert all(each["id"].startswith("am-") for each in made)
    page = await asyncio.to_thread(merchants.list, 2)
    assert (page["items"], page["page_info"]["has_next_page"]) == (made[:2], True)
    assert (await asyncio.to_thread(merchants.list, 2, page["page_info"]["end_cursor"]))["items"] == made[2:]
    assert await asyncio.to_thread(lambda: list(merchants.list_all())) == made
    for name, business_type in (("M1", "other"), ("M9", "bakery")):  # A name that is taken, a type that does not exist.
        with pytest.raises(WaveValidationError):
            await asyncio.to_thread(merchants.create, name, business_type, "a shop")
    wave = client(simulator)
    session = await checkout(wave, aggregated_merchant_id=made[1]["id"])
    assert session["aggregated_merchant_id"] == made[1]["id"]
    with pytest.raises(WaveValidationError) as refusal:
        await checkout(wave, aggregated_merchant_id="am-unknown")
    assert refusal.value.error_code == "aggregated-merchant-not-found"
    changed = await asyncio.to_thread(lambda: merchants.update(made[0]["id"], "M1 bis", "fintech", "another shop"))
    assert await asyncio.to_thread(merchants.get, made[0]["id"]) == changed
    assert changed["name"] == "M1 bis"
    assert await asyncio.to_thread(merchants.delete, made[0]["id"]) is None
    with pytest.raises(WaveNotFoundError):
        await asyncio.to_thread(merchants.get, made[0]["id"])


async def test_a_key_belongs_to_one_wallet_in_one_country(simulator: Simulator) -> None:
    senegal, cote_d_ivoire = client(simulator), client(simulator, COTE_D_IVOIRE)
    await simulator.force("wave", "final_success")
    session = await checkout(senegal)
    with pytest.raises(WaveNotFoundError):
        await asyncio.to_thread(cote_d_ivoire.checkout.get_session, session["id"])
    with pytest.raises(WaveNotFoundError):
        await asyncio.to_thread(cote_d_ivoire.checkout.refund_session, session["id"])
    assert await asyncio.to_thread(cote_d_ivoire.checkout.search_sessions, "order-1") == []
    assert (await asyncio.to_thread(cote_d_ivoire.balance.get))["amount"] == "0"
    assert (await asyncio.to_thread(cote_d_ivoire.balance.get_transactions))["items"] == []
    with pytest.raises(WaveValidationError) as refusal:
        await checkout(cote_d_ivoire, restrict_payer_mobile="+221770000000")
    assert refusal.value.details == [{"loc": ["restrict_payer_mobile"], "msg": "invalid value"}]
    for currency, mobile, code in (
        ("XOF", "+221770000000", "country-mismatch"),
        ("XAF", "+2250700000000", "currency-mismatch"),
    ):
        with pytest.raises(WaveValidationError) as refusal:
            await asyncio.to_thread(cote_d_ivoire.payout.create, currency, "500", mobile)
        assert refusal.value.error_code == code
    await checkout(cote_d_ivoire, "order-2", restrict_payer_mobile="+2250700000000")


class CompactSession(requests.Session):
    """Sends the bytes that the client signs. The client signs compact JSON, and sends JSON with spaces."""

    def post(self, url: Any, data: Any = None, json: Any = None, **options: Any) -> requests.Response:
        return super().post(url, data=data if json is None else compact(json), **options)


def compact(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


async def test_a_key_with_signing_refuses_every_call_that_is_not_signed(simulator: Simulator) -> None:
    dashboard = {"family": "wave", "signing_secret": SIGNING_SECRET}
    await simulator.json("POST", "/control/dashboard", json=dashboard)
    for secret, code in ((None, "missing-signature"), ("wave_sn_AKS_other", "invalid-signature")):
        with pytest.raises(WaveAuthError) as refusal:
            await asyncio.to_thread(client(simulator, SENEGAL, secret).balance.get)
        assert (refusal.value.status_code, refusal.value.error_code) == (401, code)
    wave = client(simulator, SENEGAL, SIGNING_SECRET)
    await asyncio.to_thread(wave.balance.get)
    # A fault of the client, which a server that checks signatures finds: it signs other bytes than it sends.
    with pytest.raises(WaveAuthError) as refusal:
        await checkout(wave)
    assert refusal.value.error_code == "invalid-signature"
    headers = wave._session._session.headers
    wave._session._session = CompactSession()
    wave._session._session.headers.update(headers)
    session = await checkout(wave)
    await asyncio.to_thread(wave.checkout.expire_session, session["id"])  # A POST without a body.


async def test_events_are_verified_by_the_client(simulator: Simulator, callback_receiver: CallbackReceiver) -> None:
    await simulator.json("POST", "/control/dashboard", json={"family": "wave", "callback_url": callback_receiver.url})
    await checkout(client(simulator))
    await customer(simulator, "order-1", "approve")
    [notice] = await callback_receiver.wait_for(1)
    header, body = notice.headers["wave-signature"], notice.body.decode()
    event = WebhookVerifier(SECRETS["wave"]).verify_and_parse(body, header)
    assert (event["type"], event["data"]["client_reference"]) == ("checkout.session.completed", "order-1")
    for verifier, changed in ((WebhookVerifier("other"), body), (WebhookVerifier(SECRETS["wave"]), body + " ")):
        with pytest.raises(WaveWebhookError):
            verifier.verify_and_parse(changed, header)
