"""Coris Money: the result of each response (docs/providers/coris.md)."""

import hashlib
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from guichet.domain.failures import RefusalReason
from guichet.providers.base import Refused, Succeeded
from guichet.providers.capabilities import SendsOtpCodes
from guichet_simulator.app import SECRETS
from tests.providers.expectations import TAKEN, UNKNOWN, check, not_taken, refused, succeeded
from tests.providers.provider_under_test import Scripted, callback, charge, provider_under_test, refund_request

PAID = {"code": "0", "message": "OK", "transactionId": "T1", "montant": "5000"}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, PAID), succeeded(5000_00, "XOF")),
        ((200, {**PAID, "code": 0}), succeeded(5000_00, "XOF")),
        ((200, {**PAID, "montant": "4999"}), succeeded(4999_00, "XOF")),
        ((200, {"code": "0", "transactionId": "T1"}), succeeded(None, "XOF")),
        ((200, {"code": "0", "montant": "5000"}), UNKNOWN),
        ((200, {"code": "-1", "message": "OTP Incorrect"}), refused("bad_otp")),
        ((200, {"code": -1, "msg": "Client inexistant"}), refused("payer_not_found")),
        ((200, {"code": "-1", "message": "Solde insuffisant"}), refused("insufficient_funds")),
        ((200, {"code": "-1", "message": "Service non autorise"}), not_taken()),
        ((200, {"code": "-1", "message": "Hash incorrect"}), not_taken()),
        ((200, {"code": "-1", "transactionId": "T1"}), UNKNOWN),
        ((200, {"code": "1", "message": "Erreur"}), UNKNOWN),
        ((401, {"code": "-1", "message": "Client non autorise"}), not_taken()),
        ((429, {"code": "1"}), not_taken("operator_unavailable")),
        ((500, {"code": "-1", "message": "OTP Incorrect"}), UNKNOWN),
        ((503, {"code": "1"}), UNKNOWN),
    ],
)
async def test_initiation_responses_become_results(said: Scripted, meant: Any) -> None:
    async with provider_under_test("coris", said) as coris:
        check(await coris.provider.initiate(charge("coris", otp="123456")), meant)


async def test_parameters_are_in_the_query_with_a_hash() -> None:
    async with provider_under_test("coris", (200, PAID)) as coris:
        await coris.provider.initiate(charge("coris", otp="123456", phone_number="2290197000001"))
    [sent] = coris.received
    parts = urlsplit(coris.path())
    query = parse_qsl(parts.query)
    assert parts.path == "/operations/paiement-bien"
    assert query == [
        ("codePays", "229"), ("telephone", "0197000001"), ("codePv", "PV1"), ("montant", "5000"), ("codeOTP", "123456"),
    ]  # fmt: skip
    hashed = "".join(value for _, value in query) + SECRETS["coris"]
    assert sent.headers["hashparam"] == hashlib.sha256(hashed.encode()).hexdigest()
    assert sent.body == b""


@pytest.mark.parametrize("changes", [{"operator": "mtn"}, {"currency": "XAF"}, {"otp": None}])
async def test_an_unsupported_payment_is_refused_without_a_request(changes: dict[str, Any]) -> None:
    async with provider_under_test("coris", (200, PAID)) as coris:
        answer = await coris.provider.initiate(charge(**{"operator": "coris", "otp": "123456", **changes}))
    assert not isinstance(answer, Succeeded)
    assert coris.received == []


async def test_a_lost_response_has_no_status_query() -> None:
    async with provider_under_test("coris", (200, PAID)) as coris:
        check(await coris.provider.status(charge("coris")), UNKNOWN)
        assert coris.received == []
        check(await coris.provider.status(charge("coris", provider_reference="T1")), succeeded(5000_00, "XOF"))
        coris.answers[:] = [(200, {"code": "-1", "message": "Operation inexistante"})]
        check(await coris.provider.status(charge("coris", provider_reference="T1")), UNKNOWN)


async def test_refunds_and_callbacks_are_not_supported() -> None:
    async with provider_under_test("coris", (200, PAID)) as coris:
        assert not coris.provider.can_refund("coris", collected_here=True)
        assert await coris.provider.refund(refund_request("coris")) == Refused("no_refund")
        assert coris.provider.parse_callback(callback(PAID)) is None


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, {"text": "Le code OTP a ete envoye"}), TAKEN),
        ((200, {"code": "-1", "msg": "Client inexistant"}), refused("payer_not_found")),
        ((200, {"code": "-1", "msg": "Service non autorise"}), not_taken()),
        ((200, {"code": "1"}), UNKNOWN),
        ((200, {}), UNKNOWN),
        ((200, b"<html>"), UNKNOWN),
        ((400, {"text": "Le code OTP a ete envoye"}), UNKNOWN),
        ((401, {}), not_taken()),
        ((500, {}), UNKNOWN),
    ],
)
async def test_an_otp_request_makes_the_provider_text_a_code(said: Scripted, meant: Any) -> None:
    async with provider_under_test("coris", said) as coris:
        provider = coris.provider
        assert isinstance(provider, SendsOtpCodes)
        check(await provider.send_code(charge("coris", phone_number="2290197000001")), meant)
    parts = urlsplit(coris.path())
    assert parts.path == "/send-code-otp"
    assert parse_qsl(parts.query) == [("codePays", "229"), ("telephone", "0197000001")]
    [sent] = coris.received
    assert sent.headers["hashparam"] == hashlib.sha256(f"2290197000001{SECRETS['coris']}".encode()).hexdigest()


@pytest.mark.parametrize(
    ("changes", "reason"), [({"operator": "mtn"}, "configuration"), ({"currency": "XAF"}, "currency_not_accepted")]
)
async def test_an_otp_request_for_an_unsupported_payment_is_refused(
    changes: dict[str, Any], reason: RefusalReason
) -> None:
    async with provider_under_test("coris", (200, {"text": "…"})) as coris:
        assert isinstance(coris.provider, SendsOtpCodes)
        check(await coris.provider.send_code(charge(**{"operator": "coris", **changes})), not_taken(reason))
    assert coris.received == []
