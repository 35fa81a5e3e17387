"""pawaPay v2: the result of each response (docs/providers/pawapay.md)."""

from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from guichet.clock import DAY, SECOND, earlier
from guichet.domain.failures import RefusalReason
from guichet.providers.base import Accepted, AlreadyRefunded, CallbackReference, FloatEmpty, NotFound
from guichet.providers.pawapay import http_message_signatures as http_signatures
from tests.guichet_simulator import pawapay_samples as samples
from tests.providers.expectations import ALREADY_REFUNDED, FLOAT_EMPTY, UNKNOWN, check, not_taken, refused, succeeded
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


def failure(code: str) -> dict[str, Any]:
    return {"failureReason": {"failureCode": code, "failureMessage": code}}


def rejected(code: str) -> dict[str, Any]:
    return {"depositId": REFERENCE, "status": "REJECTED", **failure(code)}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, {"depositId": REFERENCE, "status": "ACCEPTED"}), Accepted(REFERENCE)),
        ((200, {"depositId": REFERENCE, "status": "DUPLICATE_IGNORED"}), Accepted(REFERENCE)),
        ((200, {"depositId": "another", "status": "ACCEPTED"}), UNKNOWN),
        ((200, {"depositId": REFERENCE, "status": "NEW_WORD"}), UNKNOWN),
        ((200, rejected("INVALID_PHONE_NUMBER")), refused("payer_not_found")),
        ((200, rejected("INVALID_AMOUNT")), refused()),
        ((200, rejected("PROVIDER_TEMPORARILY_UNAVAILABLE")), not_taken("operator_unavailable")),
        ((200, rejected("AMOUNT_OUT_OF_BOUNDS")), not_taken("limit_reached")),
        ((200, rejected("INVALID_PROVIDER")), not_taken()),
        ((200, rejected("UNKNOWN_ERROR")), UNKNOWN),
        ((200, {"status": "REJECTED"}), UNKNOWN),
        ((400, rejected("INVALID_PARAMETER")), refused()),
        ((401, rejected("NO_AUTHENTICATION")), not_taken()),
        ((403, rejected("DEPOSITS_NOT_ALLOWED")), not_taken()),
        ((429, failure("RATE_LIMITED")), not_taken("operator_unavailable")),
        ((500, {"depositId": REFERENCE, **failure("UNKNOWN_ERROR")}), UNKNOWN),
        ((503, rejected("INVALID_PHONE_NUMBER")), UNKNOWN),
    ],
)
async def test_initiation_responses_become_results(said: Scripted, meant: Any) -> None:
    async with provider_under_test("pawapay", said) as pawapay:
        check(await pawapay.provider.initiate(charge()), meant)


async def test_initiation_request_has_the_documented_fields() -> None:
    async with provider_under_test("pawapay", (200, {"status": "ACCEPTED"})) as pawapay:
        await pawapay.provider.initiate(charge("orange_bf", otp="123456", description="Thé"))
    assert pawapay.sent() == {
        "depositId": REFERENCE,
        "amount": "5000",
        "currency": "XOF",
        "payer": {"type": "MMO", "accountDetails": {"phoneNumber": "22997000001", "provider": "ORANGE_BFA"}},
        "customerMessage": "Paiement",
        "clientReferenceId": REFERENCE,
        "preAuthorisationCode": "123456",
    }


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"operator": "coris"}, "configuration"),
        ({"currency": "EUR"}, "currency_not_accepted"),
        ({"operator": "mtn_cg"}, "currency_not_accepted"),
    ],
)
async def test_an_unsupported_payment_is_refused_without_a_request(
    changes: dict[str, Any], reason: RefusalReason
) -> None:
    async with provider_under_test("pawapay", (200, {"status": "ACCEPTED"})) as pawapay:
        check(await pawapay.provider.initiate(charge(**changes)), not_taken(reason))
    assert pawapay.received == []


def found(status: str, **more: Any) -> dict[str, Any]:
    return {"status": "FOUND", "data": {"status": status, "amount": "5000.00", "currency": "XOF", **more}}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, found("COMPLETED")), succeeded(5000_00, "XOF")),
        ((200, found("COMPLETED", amount="4999.99")), succeeded(4999_99, "XOF")),
        ((200, found("COMPLETED", currency=None)), succeeded(5000_00, None)),
        ((200, found("FAILED", **failure("INSUFFICIENT_BALANCE"))), refused("insufficient_funds")),
        ((200, found("FAILED", **failure("PAYMENT_NOT_APPROVED"))), refused("rejected_by_payer")),
        ((200, found("FAILED")), refused()),
        ((200, found("ACCEPTED")), Accepted(REFERENCE)),
        ((200, found("PROCESSING", authorizationUrl="https://p/1")), Accepted(REFERENCE, "https://p/1")),
        ((200, found("IN_RECONCILIATION")), Accepted(REFERENCE)),
        ((200, found("NEW_WORD")), UNKNOWN),
        ((200, {"status": "FOUND"}), UNKNOWN),
        ((200, {"status": "COMPLETED", "amount": "5000", "currency": "XOF"}), UNKNOWN),
        ((200, {"status": "NOT_FOUND"}), NotFound),
        ((403, failure("AUTHENTICATION_ERROR")), UNKNOWN),
        ((500, failure("UNKNOWN_ERROR")), UNKNOWN),
    ],
)
async def test_status_responses_become_results(said: Scripted, meant: Any) -> None:
    async with provider_under_test("pawapay", said) as pawapay:
        check(await pawapay.provider.status(charge()), meant)


async def test_a_deposit_that_is_not_found_is_not_refused_however_old_it_is() -> None:
    async with provider_under_test("pawapay", (200, {"status": "NOT_FOUND"})) as pawapay:
        check(await pawapay.provider.status(charge(created_at=earlier(NOW, 30 * DAY))), NotFound)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, {"refundId": REFUND, "status": "ACCEPTED"}), Accepted(REFUND)),
        ((200, rejected("DEPOSIT_ALREADY_REFUNDED")), ALREADY_REFUNDED),
        ((200, rejected("PAWAPAY_WALLET_OUT_OF_FUNDS")), FLOAT_EMPTY),
        ((200, rejected("RECIPIENT_NOT_FOUND")), refused("payer_not_found")),
        ((200, rejected("REFUND_IN_PROGRESS")), UNKNOWN),
        ((403, rejected("REFUNDS_NOT_ALLOWED")), not_taken()),
    ],
)
async def test_refund_responses_become_results(said: Scripted, meant: Any) -> None:
    async with provider_under_test("pawapay", said) as pawapay:
        check(await pawapay.provider.refund(refund_request()), meant)
    assert pawapay.path() == "/v2/refunds"
    assert (pawapay.sent()["refundId"], pawapay.sent()["depositId"]) == (REFUND, REFERENCE)


async def test_a_payout_refunds_a_payment_of_another_provider() -> None:
    async with provider_under_test("pawapay", (200, {"payoutId": REFUND, "status": "ENQUEUED"})) as pawapay:
        check(await pawapay.provider.refund(refund_request(collected_here=False)), Accepted(REFUND))
        assert pawapay.path() == "/v2/payouts"
        assert pawapay.sent()["recipient"]["accountDetails"]["phoneNumber"] == PAYEE
        pawapay.answers[:] = [(200, found("COMPLETED"))]
        check(await pawapay.provider.refund_status(refund_request(collected_here=False)), succeeded(5000_00, "XOF"))
        assert pawapay.path() == f"/v2/payouts/{REFUND}"


@pytest.mark.parametrize(
    ("again", "never_arrived", "meant"),
    [
        ((200, {"refundId": REFUND, "status": "ACCEPTED"}), False, Accepted(REFUND)),
        ((200, {"refundId": REFUND, "status": "DUPLICATE_IGNORED"}), False, Accepted(REFUND)),
        ((200, rejected("DEPOSIT_ALREADY_REFUNDED")), False, NotFound),
        ((200, rejected("DEPOSIT_ALREADY_REFUNDED")), True, ALREADY_REFUNDED),
        ((200, rejected("PAWAPAY_WALLET_OUT_OF_FUNDS")), False, NotFound),
        ((200, rejected("PAWAPAY_WALLET_OUT_OF_FUNDS")), True, FLOAT_EMPTY),
        ((200, rejected("AMOUNT_TOO_LARGE")), False, NotFound),
        ((200, rejected("AMOUNT_TOO_LARGE")), True, refused()),
        ((403, rejected("REFUNDS_NOT_ALLOWED")), False, NotFound),
        ((403, rejected("REFUNDS_NOT_ALLOWED")), True, UNKNOWN),
        ((500, b""), True, UNKNOWN),
    ],
)
async def test_an_unknown_refund_is_sent_again(again: Scripted, never_arrived: bool, meant: Any) -> None:
    """The repeat may be refused because the first request is still in progress, whatever the clock says."""
    async with provider_under_test("pawapay", (200, {"status": "NOT_FOUND"}), again) as pawapay:
        pawapay.clock.jump(DAY / SECOND)
        check(await pawapay.provider.refund_status(refund_request(never_arrived=never_arrived)), meant)
        assert [one.line.split(" ")[0] for one in pawapay.received] == ["GET", "POST"]


async def test_an_accepted_refund_is_not_sent_again() -> None:
    async with provider_under_test("pawapay", (200, {"status": "NOT_FOUND"})) as pawapay:
        check(await pawapay.provider.refund_status(refund_request(provider_reference=REFUND)), UNKNOWN)
    assert len(pawapay.received) == 1


KEY = ec.generate_private_key(ec.SECP256R1())
PRIVATE = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()
PUBLIC = (
    KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
)


@pytest.mark.parametrize("encoding", ["der", "raw"])
async def test_requests_are_signed_when_a_key_is_given(encoding: str) -> None:
    """What leaves on the wire is verified by `cryptography` alone, as pawaPay's official samples verify."""
    settings = {"signing_key": PRIVATE, "signing_key_id": "K1", "signature_encoding": encoding}
    async with provider_under_test("pawapay", (200, {"status": "ACCEPTED"}), **settings) as pawapay:
        await pawapay.provider.initiate(charge())
        await pawapay.provider.refund(refund_request())
    paths = ["/v2/deposits", "/v2/refunds"]
    assert [sent.line for sent in pawapay.received] == [f"POST {path} HTTP/1.1" for path in paths]
    for sent, path in zip(pawapay.received, paths, strict=True):
        host = sent.headers["host"]
        assert samples.verify(
            KEY.public_key(), method="POST", host=host, path=path, headers=sent.headers, body=sent.body
        )
        assert 'keyid="K1"' in sent.headers["signature-input"]
        assert (len(samples.signature_of(sent.headers)) == 64) is (encoding == "raw")


async def test_callbacks_name_the_payment_and_need_a_valid_signature() -> None:
    body = {"depositId": REFERENCE, "status": "COMPLETED", "amount": "5000.00", "currency": "XOF"}
    raw = callback(body).body
    url = "https://pay.example.com/providers/x/callback"
    signed = {
        **http_signatures.sign(KEY, key_id="HTTP_EC_P256_KEY:1", url=url, body=raw, now=NOW),
        "host": "pay.example.com",
    }
    async with provider_under_test("pawapay", (200, {}), callback_public_key=PUBLIC) as pawapay:
        read = pawapay.provider.parse_callback
        assert read(callback(raw, signed)) == CallbackReference(REFERENCE, REFERENCE)
        assert read(callback(raw)) is None
        assert read(callback(raw.replace(b"COMPLETED", b"FAILED   "), signed)) is None
    async with provider_under_test("pawapay", (200, {})) as pawapay:
        read = pawapay.provider.parse_callback
        assert read(callback(raw)) == CallbackReference(REFERENCE, REFERENCE)
        assert read(callback({"refundId": REFUND, "depositId": REFERENCE})) == CallbackReference(REFUND, REFUND)
        assert read(callback({"payoutId": REFUND})) == CallbackReference(REFUND, REFUND)
        assert read(callback({"status": "COMPLETED"})) is None


@pytest.mark.parametrize(
    "reason",
    [
        {"failureReason": {"failureCode": "PAWAPAY_WALLET_OUT_OF_FUNDS"}},
        {"rejectionReason": {"rejectionCode": "PAWAPAY_WALLET_OUT_OF_FUNDS"}},
    ],
)
async def test_our_empty_float_is_read_under_both_names(reason: Any) -> None:
    async with provider_under_test("pawapay", (200, {"status": "REJECTED", **reason})) as pawapay:
        assert isinstance(await pawapay.provider.refund(refund_request()), FloatEmpty)
    failed = {"status": "FOUND", "data": {"status": "FAILED", **reason}}
    async with provider_under_test("pawapay", (200, failed)) as pawapay:
        assert isinstance(await pawapay.provider.refund_status(refund_request()), FloatEmpty)


async def test_a_deposit_that_was_refunded_before_is_not_refused() -> None:
    said = {"status": "REJECTED", "rejectionReason": {"rejectionCode": "DEPOSIT_ALREADY_REFUNDED"}}
    async with provider_under_test("pawapay", (200, said)) as pawapay:
        assert isinstance(await pawapay.provider.refund(refund_request()), AlreadyRefunded)
