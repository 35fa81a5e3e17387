"""What the simulator checks because the real providers do, and what it does not promise because they do not."""

import uuid
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.guichet_simulator import pawapay_samples as samples
from tests.guichet_simulator import test_sim_feexpay as feexpay
from tests.guichet_simulator import test_sim_mtn as mtn
from tests.guichet_simulator import test_sim_pawapay as pawapay
from tests.guichet_simulator import test_sim_wave as wave
from tests.guichet_simulator.conftest import Simulator

DEPOSIT = "/pawapay/v2/deposits"


async def move(simulator: Simulator, path: str, headers: dict[str, str], ref: str, **body: Any) -> int:
    order, headers = mtn.order() | body, headers | {"X-Reference-Id": ref}
    async with simulator.http.post(f"{simulator.url}{path}", json=order, headers=headers) as answer:
        return answer.status


async def test_mtn_references_of_refunds_and_transfers_are_apart(simulator: Simulator) -> None:
    ref, _ = await mtn.create_payment(simulator, await mtn.access(simulator), phone="2290161009007")
    headers = await mtn.access(simulator, "disbursement")
    payee = {"partyIdType": "MSISDN", "partyId": "2290161009107"}
    transfer, refund = str(uuid.uuid4()), str(uuid.uuid4())
    assert await move(simulator, mtn.TRANSFER, headers, transfer, payee=payee) == 202
    assert await move(simulator, mtn.REFUND, headers, refund, referenceIdToRefund=ref, amount="100") == 202
    for path, own, other in ((mtn.TRANSFER, transfer, refund), (mtn.REFUND, refund, transfer)):
        await simulator.json("GET", f"{path}/{own}", headers=headers)
        assert (await simulator.json("GET", f"{path}/{other}", 404, headers=headers))["code"] == "RESOURCE_NOT_FOUND"
    # The same reference is free in the other space, and pays a second time.
    assert await move(simulator, mtn.REFUND, headers, transfer, referenceIdToRefund=ref, amount="100") == 202


async def test_mtn_knows_a_payment_in_its_target_environment_only(simulator: Simulator) -> None:
    ref, _ = await mtn.create_payment(simulator, await mtn.access(simulator), phone="2290161009007")
    elsewhere = await mtn.access(simulator, environment="mtnivorycoast")
    await simulator.json("GET", f"{mtn.COLLECT}/{ref}", 404, headers=elsewhere)
    paying = await mtn.access(simulator, "disbursement", "mtnivorycoast")
    assert await move(simulator, mtn.REFUND, paying, str(uuid.uuid4()), referenceIdToRefund=ref) == 404


@pytest.mark.parametrize("platform", ["mtn", "mtn_new_platform"])
async def test_mtn_credentials_open_the_wallet_that_they_were_issued_for(simulator: Simulator, platform: str) -> None:
    credentials = {"user": ["collection"], "subscription": ["collection", "disbursement"]}
    await simulator.json("POST", "/control/dashboard", json={"family": platform, "credentials": credentials})
    headers = mtn.BASIC | {"X-Target-Environment": "mtnbenin"}
    await simulator.json("POST", f"/{platform}/collection/token/", headers=headers)
    await simulator.json("POST", f"/{platform}/disbursement/token/", 401, headers=headers)
    other = headers | {"Ocp-Apim-Subscription-Key": "of-somebody-else"}
    await simulator.json("POST", f"/{platform}/collection/token/", 401, headers=other)


async def test_histories_of_feexpay_have_no_documented_order(simulator: Simulator) -> None:
    sent = []
    for number in range(6):
        sent.append((await feexpay.pay(simulator, "2290161009007", reference=f"ref-{number}"))["reference"])
    day = (await simulator.truth())["transactions"][0]["created_at"][:10]
    query = {"start_date": day, "end_date": day, "shop": "s"}

    async def history() -> list[str]:
        path = "/feexpay/api/transactions/history"
        rows = (await simulator.json("POST", path, json=query, headers=feexpay.KEY))["data"]
        return [row["reference"] for row in rows]

    shown = await history()
    assert sorted(shown) == sorted(sent)
    assert shown not in (sent, sent[::-1])
    assert await history() == shown


async def test_searches_of_wave_have_no_documented_order(simulator: Simulator) -> None:
    sent = [(await wave.create(simulator))["id"] for _ in range(4)]
    query = {"client_reference": "ref-1"}
    answer = await simulator.json("GET", f"{wave.SESSIONS}/search", headers=wave.KEY, params=query)
    shown = [session["id"] for session in answer["result"]]
    assert sorted(shown) == sorted(sent)
    assert shown not in (sent, sent[::-1])


async def test_ids_of_refunds_and_payouts_of_pawapay_are_apart(simulator: Simulator) -> None:
    ref, _ = await pawapay.deposit(simulator, "22961009007")
    same = str(uuid.uuid4())
    body: dict[str, Any] = {"refundId": same, "depositId": ref}
    assert (await simulator.json("POST", "/pawapay/v2/refunds", json=body, headers=pawapay.KEY))["status"] == "ACCEPTED"
    assert (await pawapay.ask(simulator, same, "payouts"))["status"] == "NOT_FOUND"
    recipient = pawapay.account("22961000000", "MTN_MOMO_BEN")
    payout = {"payoutId": same, "amount": "500", "currency": "XOF", "recipient": recipient}
    answer = await simulator.json("POST", "/pawapay/v2/payouts", json=payout, headers=pawapay.KEY)
    assert answer["status"] == "ACCEPTED"


async def signed_only(simulator: Simulator) -> ec.EllipticCurvePrivateKey:
    """An account of pawaPay that accepts signed requests only; its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, spki).decode()
    await simulator.json("POST", "/control/dashboard", json={"family": "pawapay", "request_keys": {"K1": pem}})
    return key


def deposit_body() -> dict[str, Any]:
    payer = pawapay.account("22961009007", "MTN_MOMO_BEN")
    return {"depositId": str(uuid.uuid4()), "amount": "500", "currency": "XOF", "payer": payer}


@pytest.mark.parametrize("raw", [False, True])
async def test_pawapay_in_signed_only_mode_takes_what_its_samples_sign(simulator: Simulator, raw: bool) -> None:
    key, body = await signed_only(simulator), deposit_body()
    sent = samples.signed(key, f"{simulator.url}{DEPOSIT}", body, raw=raw)
    answer = await simulator.json("POST", DEPOSIT, data=sent.body, headers=pawapay.KEY | sent.headers)
    assert answer["status"] == "ACCEPTED"
    configuration = await simulator.json("GET", "/pawapay/v2/active-conf", headers=pawapay.KEY)
    assert configuration["signatureConfiguration"]["signedRequestsOnly"] is True


async def test_pawapay_in_signed_only_mode_refuses_everything_else(simulator: Simulator) -> None:
    key, body = await signed_only(simulator), deposit_body()
    url = f"{simulator.url}{DEPOSIT}"
    good = samples.signed(key, url, body)
    wrong: dict[str, dict[str, str]] = {
        "unsigned": {"Content-Type": "application/json"},
        "another key": samples.signed(ec.generate_private_key(ec.SECP256R1()), url, body).headers,
        "an unknown key id": samples.signed(key, url, body, key_id="K2").headers,
        "another path": samples.signed(key, f"{simulator.url}/pawapay/v2/payouts", body).headers,
        "another host": samples.signed(key, f"http://api.pawapay.io/simulator{DEPOSIT}", body).headers,
        "another body": samples.signed(key, url, body | {"amount": "5"}).headers,
        "the digest of another body": good.headers | {"Content-Digest": "sha-512=:AAAA:"},
        "an expired one": samples.signed(key, url, body, age=600).headers,
        "a body that it does not cover": samples.signed(key, url, body, without=("content-digest",)).headers,
        "no base64": good.headers | {"Signature": "sig-pp=:AAA:"},
        "another label": good.headers | {"Signature": good.headers["Signature"].replace("sig-pp", "sig-xx")},
    }
    for name, headers in wrong.items():
        answer = await simulator.json("POST", DEPOSIT, 403, data=good.body, headers=pawapay.KEY | headers)
        assert (answer["status"], pawapay.code_of(answer), name) == ("REJECTED", "HTTP_SIGNATURE_ERROR", name)
    for path in ("refunds", "payouts"):
        answer = await simulator.json("POST", f"/pawapay/v2/{path}", 403, json={}, headers=pawapay.KEY)
        assert pawapay.code_of(answer) == "HTTP_SIGNATURE_ERROR"
    assert (await simulator.truth())["transactions"] == []
