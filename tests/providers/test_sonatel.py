"""Orange Money Sénégal by Sonatel: the result of each response (docs/providers/sonatel.md)."""

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from guichet.clock import SECOND
from guichet.providers.base import Accepted, CallbackReference, FloatEmpty
from guichet.providers.shared import signatures
from tests.providers.expectations import TAKEN, UNKNOWN, check, not_taken, refused, succeeded
from tests.providers.provider_under_test import (
    NOW,
    PAYEE,
    REFERENCE,
    REFUND,
    Scripted,
    callback,
    charge,
    provider_under_test,
    refund_request,
)


def problem(status: int, code: str) -> Scripted:
    return status, {"type": "…", "title": "…", "status": str(status), "code": code, "detail": "…"}


def done(status: str, **more: Any) -> Scripted:
    return 200, {"reference": REFERENCE, "transactionId": "MP1", "status": status, **more}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (done("SUCCESS"), Accepted("MP1", next_poll_at=NOW)),
        (done("PENDING"), Accepted("MP1")),
        (done("FAILED", code="2020"), refused("insufficient_funds")),
        (done("REJECTED"), refused()),
        (done("NEW_WORD"), UNKNOWN),
        (done("SUCCESS", transactionId=None), UNKNOWN),
        (done("FAILED", reference="another"), UNKNOWN),
        (problem(400, "2000"), refused("payer_not_found")),
        (problem(400, "2011"), refused("bad_otp")),
        (problem(400, "24"), UNKNOWN),
        (problem(401, "4001"), not_taken()),
        (problem(400, "2041"), not_taken()),
        (problem(403, "2041"), not_taken()),
        (problem(415, "415"), not_taken()),
        (problem(429, "4290"), not_taken("operator_unavailable")),
        (problem(500, "1"), UNKNOWN),
        (problem(503, "5"), UNKNOWN),
    ],
)
async def test_initiation_responses_become_results(said: Scripted, meant: Any) -> None:
    """A success states no amount here, so the payment is polled at once."""
    async with provider_under_test("sonatel", said) as sonatel:
        check(await sonatel.provider.initiate(charge("orange_sn", otp="123456")), meant)


async def test_initiation_request_has_the_documented_fields() -> None:
    async with provider_under_test("sonatel", done("SUCCESS")) as sonatel:
        await sonatel.provider.initiate(charge("orange_sn", otp="123456", phone_number="221771234567"))
    assert sonatel.sent() == {
        "customer": {"idType": "MSISDN", "id": "771234567", "otp": "123456", "walletType": "PRINCIPAL"},
        "partner": {"idType": "CODE", "id": "123456"},
        "amount": {"value": 5000, "unit": "XOF"},
        "reference": REFERENCE,
    }


def row(status: str, **more: Any) -> dict[str, Any]:
    known = {"reference": REFERENCE, "transactionId": "MP1", "type": "MERCHANT_PAYMENT"}
    return {**known, "amount": {"value": 5000, "unit": "XOF"}, "status": status, **more}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ([row("SUCCESS")], succeeded(5000_00, "XOF")),
        ([row("SUCCESS", amount={"value": 4999, "unit": "XOF"})], succeeded(4999_00, "XOF")),
        ([row("SUCCESS", amount=None)], succeeded(None, None)),
        ([row("FAILED"), row("SUCCESS")], succeeded(5000_00, "XOF")),
        ([row("CANCELLED")], refused()),
        ([row("INITIATED")], TAKEN),
        ([row("SUCCESS", type="CASHIN")], UNKNOWN),
        ([row("SUCCESS", reference="another")], UNKNOWN),
        ([], UNKNOWN),
        ({"content": []}, UNKNOWN),
    ],
)
async def test_status_responses_become_results(said: Any, meant: Any) -> None:
    async with provider_under_test("sonatel", (200, said)) as sonatel:
        check(await sonatel.provider.status(charge("orange_sn")), meant)
    [request] = sonatel.received
    assert sonatel.path() == f"/api/eWallet/v1/transactions?reference={REFERENCE}"
    assert request.headers["content-type"] == "application/json"


KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SPKI = KEY.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
PUBLIC: Scripted = (200, {"key": base64.b64encode(SPKI).decode(), "keyId": "1", "keySize": 2048, "keyType": "RSA"})


async def test_a_refund_is_a_cash_in_with_an_encrypted_pin() -> None:
    answer = (200, {"transactionId": "CI1", "status": "SUCCESS", "reference": REFUND})
    async with provider_under_test("sonatel", PUBLIC, answer) as sonatel:
        check(await sonatel.provider.refund(refund_request("orange_sn")), Accepted("CI1", next_poll_at=NOW))
    partner = sonatel.sent()["partner"]
    assert KEY.decrypt(base64.b64decode(partner.pop("encryptedPinCode")), padding.PKCS1v15()) == b"1234"
    assert partner == {"idType": "MSISDN", "id": "771110000"}
    assert sonatel.sent()["reference"] == REFUND
    assert sonatel.sent()["customer"] == {"idType": "MSISDN", "id": PAYEE}


@pytest.mark.parametrize("key", [(500, {}), (200, {}), (200, {"key": "!!!"}), (200, {"key": "AAAA"}), (401, {})])
async def test_a_refund_without_sonatels_public_key_is_refused(key: Scripted) -> None:
    async with provider_under_test("sonatel", key) as sonatel:
        check(await sonatel.provider.refund(refund_request("orange_sn")), not_taken("operator_unavailable"))
    assert {one.line.split(" ")[0] for one in sonatel.received} == {"GET"}


async def test_a_refund_without_a_retailer_account_is_refused() -> None:
    async with provider_under_test("sonatel", PUBLIC, retailer_pin="") as sonatel:
        assert not sonatel.provider.can_refund("orange_sn", collected_here=True)
    async with provider_under_test("sonatel", PUBLIC) as sonatel:
        assert sonatel.provider.can_refund("orange_sn", collected_here=False)
        assert not sonatel.provider.can_refund("orange_ml", collected_here=True)


async def test_a_token_is_renewed_after_five_minutes() -> None:
    async with provider_under_test("sonatel", done("PENDING")) as sonatel:
        for _ in range(2):
            await sonatel.provider.status(charge("orange_sn"))
        assert sonatel.tokens == 1


async def test_callback_signatures_cover_the_time_a_comma_and_the_body() -> None:
    async with provider_under_test("sonatel", PUBLIC, webhook_secret="hush") as sonatel:
        moment, read = str(NOW // SECOND), sonatel.provider.parse_callback
        for body, hint in (
            (row("SUCCESS"), CallbackReference(REFERENCE, "MP1")),
            (
                {"transaction": row("SUCCESS", type="CASHIN")},
                CallbackReference(REFERENCE, "MP1"),
            ),
        ):
            raw = callback(body).body
            right = signatures.hmac_sha256_hex("hush", moment.encode() + b"," + raw)
            wrong = signatures.hmac_sha256_hex("hush", moment.encode() + b"." + raw)
            assert read(callback(raw, {"X-Sonatel-Signature": f"t={moment},v1={right}"})) == hint
            assert read(callback(raw, {"X-Sonatel-Signature": f"t={moment},v1={wrong}"})) is None
            assert read(callback(raw)) is None


@pytest.mark.parametrize("name", [None, "transactions", "data", "content"])
async def test_the_list_of_transactions_is_read_in_all_four_shapes(name: str | None) -> None:
    row = {"reference": REFERENCE, "transactionId": "t-1", "status": "SUCCESS", "type": "MERCHANT_PAYMENT"}
    rows = [{**row, "amount": {"value": 5000, "unit": "XOF"}}]
    async with provider_under_test("sonatel", (200, rows if name is None else {name: rows})) as sonatel:
        check(await sonatel.provider.status(charge("orange_sn")), succeeded(5000_00, "XOF"))


async def test_an_empty_retailers_balance_is_not_a_refusal() -> None:
    async with provider_under_test("sonatel", (400, {"code": "2020", "title": "…"})) as sonatel:
        check(await sonatel.provider.initiate(charge("orange_sn", otp="123456")), refused("insufficient_funds"))
    rows = [{"reference": REFUND, "status": "FAILED", "code": "2020", "type": "CASHIN"}]
    async with provider_under_test("sonatel", (200, rows)) as sonatel:
        assert isinstance(await sonatel.provider.refund_status(refund_request("orange_sn")), FloatEmpty)
