"""Wave Business: the result of each response (docs/providers/wave.md)."""

from collections.abc import Mapping
from typing import Any

import pytest

from guichet.clock import DAY, HOUR, SECOND, earlier
from guichet.domain.failures import RefusalReason
from guichet.providers.base import Accepted, CallbackReference, Charge, FloatEmpty, NotFound, RefundRequest
from guichet.providers.shared import signatures
from tests.providers.expectations import FLOAT_EMPTY, TAKEN, UNKNOWN, ambiguous, check, not_taken, refused, succeeded
from tests.providers.provider_under_test import (
    NOW,
    PAYEES,
    REFERENCE,
    REFUND,
    Scripted,
    callback,
    provider_under_test,
)
from tests.providers.provider_under_test import charge as any_charge
from tests.providers.provider_under_test import refund_request as any_refund_request

PHONE = "221770000001"
PAGE = "https://pay.wave.com/c/cos-1"


def charge(operator: str = "wave_sn", **changes: Any) -> Charge:
    """A charge of a customer in Sénégal."""
    return any_charge(operator, **{"phone_number": PHONE, **changes})


def refund_request(
    operator: str = "wave_sn", *, taken: Mapping[str, Any] | None = None, **changes: Any
) -> RefundRequest:
    return any_refund_request(operator, taken={"phone_number": PHONE, **(taken or {})}, **changes)


def session(checkout: str = "open", payment: str = "processing", **more: Any) -> dict[str, Any]:
    known = {"id": "cos-1", "amount": "5000", "currency": "XOF", "client_reference": REFERENCE, "wave_launch_url": PAGE}
    return {**known, "checkout_status": checkout, "payment_status": payment, "last_payment_error": None, **more}


def error(code: str) -> dict[str, str]:
    return {"code": code, "message": code}


def nested(code: str) -> dict[str, Any]:
    return {"error": error(code)}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, session()), Accepted("cos-1", PAGE)),
        ((200, session(id=None)), UNKNOWN),
        ((400, error("request-validation-error")), refused()),
        ((400, {}), UNKNOWN),
        ((401, error("no-matching-api-key")), not_taken()),
        ((403, error("invalid-wallet")), not_taken()),
        ((409, error("idempotency-mismatch")), UNKNOWN),
        ((409, nested("idempotency-mismatch")), UNKNOWN),
        ((400, nested("request-validation-error")), UNKNOWN),
        ((400, nested("country-mismatch")), UNKNOWN),
        ((400, {"error": {}}), UNKNOWN),
        ((400, nested("kyb-limits-exceeded")), refused("limit_reached")),
        ((429, error("rate-limit-exceeded")), not_taken("operator_unavailable")),
        ((500, error("internal-server-error")), UNKNOWN),
        ((503, error("service-unavailable")), UNKNOWN),
    ],
)
async def test_initiation_responses_become_results(said: Scripted, meant: Any) -> None:
    async with provider_under_test("wave", said) as wave:
        check(await wave.provider.initiate(charge("wave_sn")), meant)


async def test_initiation_request_has_the_documented_fields() -> None:
    async with provider_under_test(
        "wave", (200, session()), signing_secret="wave_sn_AKS_x", aggregated_merchant_id="am-1"
    ) as wave:
        await wave.provider.initiate(charge("wave_sn", return_url="https://shop.example/back"))
    assert wave.sent() == {
        "amount": "5000",
        "currency": "XOF",
        "success_url": "https://shop.example/back",
        "error_url": "https://shop.example/back",
        "client_reference": REFERENCE,
        "restrict_payer_mobile": "+221770000001",
        "aggregated_merchant_id": "am-1",
    }
    given, body = wave.received[0].headers["wave-signature"], wave.received[0].body
    assert signatures.verify_signature(given, body, secret="wave_sn_AKS_x", separator=b"", now=NOW)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"operator": "mtn"}, "configuration"),
        ({"operator": "wave_ci"}, "configuration"),
        ({"currency": "XAF"}, "currency_not_accepted"),
        ({"phone_number": "2250700000001"}, "payer_not_found"),
        ({"notify_url": None}, "configuration"),
    ],
)
async def test_an_unsupported_payment_is_refused_without_a_request(
    changes: dict[str, Any], reason: RefusalReason
) -> None:
    async with provider_under_test("wave", (200, session())) as wave:
        check(await wave.provider.initiate(charge(**{"operator": "wave_sn", **changes})), not_taken(reason))
    assert wave.received == []


DECLINED = {"last_payment_error": error("insufficient-funds")}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (session("complete", "succeeded"), succeeded(5000_00, "XOF")),
        (session("complete", "succeeded", amount=None), succeeded(None, "XOF")),
        (session("open", "processing", **DECLINED), TAKEN),
        (session("open", "cancelled", **DECLINED), refused("insufficient_funds")),
        (session("expired", "cancelled"), refused("expired")),
        (session("expired", "processing"), refused("expired")),
        (session("complete", "processing"), UNKNOWN),
        (session("expired", "succeeded"), UNKNOWN),
        (session("open", "succeeded"), UNKNOWN),
        (session("new", "word"), UNKNOWN),
    ],
)
async def test_status_responses_become_results(said: Any, meant: Any) -> None:
    """A session gives the same result whether it is read or searched."""
    async with provider_under_test("wave", (200, said)) as wave:
        check(await wave.provider.status(charge("wave_sn", provider_reference="cos-1")), meant)
        assert wave.path() == "/v1/checkout/sessions/cos-1"
        wave.answers[:] = [(200, {"result": [said]})]
        check(await wave.provider.status(charge("wave_sn")), meant)
        assert wave.path() == f"/v1/checkout/sessions/search?client_reference={REFERENCE}"


@pytest.mark.parametrize(
    ("found", "meant"),
    [
        ([session("expired", "cancelled"), session("complete", "succeeded")], succeeded(5000_00, "XOF")),
        ([session("expired", "cancelled"), session("open")], TAKEN),
        ([session("complete", "succeeded", client_reference="another")], UNKNOWN),
    ],
)
async def test_several_sessions_found_under_one_reference_give_one_result(found: Any, meant: Any) -> None:
    async with provider_under_test("wave", (200, {"result": found})) as wave:
        check(await wave.provider.status(charge("wave_sn")), meant)


@pytest.mark.parametrize("age", [0, 30 * DAY])
async def test_a_session_that_the_search_does_not_find_is_not_found_however_old_the_payment_is(age: int) -> None:
    async with provider_under_test("wave", (200, {"result": []})) as wave:
        check(await wave.provider.status(charge("wave_sn", created_at=earlier(NOW, age))), NotFound)
        wave.answers[:] = [(404, error("not-found"))]
        check(await wave.provider.status(charge("wave_sn", created_at=earlier(NOW, age))), UNKNOWN)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, b""), succeeded(5000_00, "XOF")),
        ((422, error("another-code")), refused()),
        ((409, b""), UNKNOWN),
        ((500, error("internal-server-error")), UNKNOWN),
    ],
)
async def test_refund_and_repeated_refund_responses_become_results(said: Scripted, meant: Any) -> None:
    undone = refund_request("wave_sn", taken={"provider_reference": "cos-1"})
    async with provider_under_test("wave", said) as wave:
        check(await wave.provider.refund(undone), meant)
        check(await wave.provider.refund_status(undone), meant)
        assert wave.path() == "/v1/checkout/sessions/cos-1/refund"


@pytest.mark.parametrize("status", [400, 409])
@pytest.mark.parametrize("code", ["checkout-refund-failed", "insufficient-funds"])
async def test_a_refused_refund_of_a_session_may_mean_our_wallet(status: int, code: str) -> None:
    """A repeat says so of the first request only once that one cannot be on its way any more."""
    undone = refund_request("wave_sn", taken={"provider_reference": "cos-1"})
    reason: RefusalReason = "insufficient_funds" if code == "insufficient-funds" else "refused"
    for body in (error(code), nested(code)):
        async with provider_under_test("wave", (status, body)) as wave:
            check(await wave.provider.refund(undone), ambiguous(reason))
            check(await wave.provider.refund_status(undone), UNKNOWN)
            wave.clock.advance(121)
            check(await wave.provider.refund_status(undone), ambiguous(reason))


def payout(status: str) -> dict[str, Any]:
    failed = {"payout_error": {"error_code": "recipient-limit-exceeded"}} if status == "failed" else {}
    return {"id": "pt-1", "status": status, "receive_amount": "5000", "currency": "XOF", **failed}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, payout("processing")), Accepted("pt-1")),
        ((200, payout("succeeded")), succeeded(5000_00, "XOF")),
        ((200, payout("failed")), refused("limit_reached")),
        ((200, payout("reversed")), refused()),
        ((200, payout("strange")), UNKNOWN),
        ((400, error("insufficient-funds")), FLOAT_EMPTY),
        ((400, error("recipient-account-blocked")), refused("payer_not_found")),
        ((400, error("country-mismatch")), not_taken()),
        ((409, error("idempotency-mismatch")), UNKNOWN),
        ((409, nested("idempotency-mismatch")), UNKNOWN),
        ((400, nested("insufficient-funds")), FLOAT_EMPTY),
        ((400, nested("recipient-account-blocked")), refused("payer_not_found")),
    ],
)
async def test_a_payout_refunds_a_payment_of_another_provider(said: Scripted, meant: Any) -> None:
    async with provider_under_test("wave", said) as wave:
        check(await wave.provider.refund(refund_request("wave_sn", collected_here=False)), meant)
    assert wave.received[0].headers["idempotency-key"] == REFUND
    assert wave.sent()["mobile"] == f"+{PAYEES['wave_sn']}"


async def test_payout_status_responses_become_results() -> None:
    async with provider_under_test("wave", (200, payout("succeeded"))) as wave:
        undone = refund_request("wave_sn", collected_here=False, provider_reference="pt-1")
        check(await wave.provider.refund_status(undone), succeeded(5000_00, "XOF"))
        assert wave.path() == "/v1/payout/pt-1"
        check(
            await wave.provider.refund_status(refund_request("wave_sn", collected_here=False)),
            succeeded(5000_00, "XOF"),
        )
        assert wave.received[-1].headers["idempotency-key"] == REFUND


def late_payout(**changes: Any) -> RefundRequest:
    """A payout whose answer was lost 20 hours ago."""
    return refund_request("wave_sn", collected_here=False, sent_at=earlier(NOW, 20 * HOUR), **changes)


FOUND = payout("succeeded") | {"client_reference": REFUND}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, {"result": [FOUND]}), succeeded(5000_00, "XOF")),
        ((200, {"result": [payout("failed") | {"client_reference": REFUND}, FOUND]}), succeeded(5000_00, "XOF")),
        ((200, {"result": [payout("processing") | {"client_reference": REFUND}]}), Accepted("pt-1")),
        ((200, {"result": [payout("failed") | {"client_reference": REFUND}]}), refused("limit_reached")),
        ((200, {"result": [payout("succeeded") | {"client_reference": "another"}]}), UNKNOWN),
        ((200, {"result": []}), NotFound),
        ((200, {}), UNKNOWN),
        ((500, error("internal-server-error")), UNKNOWN),
        ((404, error("payout-not-found")), UNKNOWN),
    ],
)
async def test_an_old_payout_is_searched_and_not_made_again(said: Scripted, meant: Any) -> None:
    """How long Wave knows an Idempotency-Key is not published: a repeat with an old one may pay again."""
    async with provider_under_test("wave", said) as wave:
        check(await wave.provider.refund_status(late_payout()), meant)
        assert [request.line.split(" ")[0] for request in wave.received] == ["GET"]
        assert wave.path() == f"/v1/payouts/search?client_reference={REFUND}"


async def test_an_old_payout_that_was_never_made_is_made_after_the_proof() -> None:
    async with provider_under_test("wave", (200, {"result": []}), (200, payout("succeeded"))) as wave:
        check(await wave.provider.refund_status(late_payout(never_arrived=True)), succeeded(5000_00, "XOF"))
        assert [request.line.split(" ")[0] for request in wave.received] == ["GET", "POST"]
    async with provider_under_test("wave", (500, {}), (200, payout("succeeded"))) as wave:
        check(await wave.provider.refund_status(late_payout(never_arrived=True)), UNKNOWN)
        assert [request.line.split(" ")[0] for request in wave.received] == ["GET"], "no answer: a person"


EVENT = {"id": "EV_1", "type": "checkout.session.completed", "data": session("complete", "succeeded")}


async def test_callbacks_signed_with_the_webhook_secret() -> None:
    async with provider_under_test("wave", (200, {}), webhook_secret="wave_sn_WHS_1") as wave:
        body, moment = callback(EVENT).body, str(NOW // SECOND)
        proof = signatures.hmac_sha256_hex("wave_sn_WHS_1", moment.encode() + body)
        read = wave.provider.parse_callback
        right = callback(body, {"wave-signature": f"t={moment},v1={proof}"})
        assert read(right) == CallbackReference(REFERENCE, "cos-1")
        assert read(callback(body, {"Wave-Signature": f"t={moment},v1=00,v1={proof}"})) is not None
        assert read(callback(body)) is None
        assert read(callback(body + b" ", right.headers)) is None
        assert read(callback(body, {"authorization": "Bearer wave_sn_WHS_1"})) is None


async def test_callbacks_with_a_shared_secret_or_without_a_secret() -> None:
    async with provider_under_test("wave", (200, {}), webhook_secret="s3cret", webhook_mode="shared") as wave:
        read = wave.provider.parse_callback
        assert read(callback(EVENT, {"Authorization": "Bearer s3cret"})) == CallbackReference(REFERENCE, "cos-1")
        assert read(callback(EVENT, {"Authorization": "Bearer s3cre"})) is None
    async with provider_under_test("wave", (200, {}), webhook_secret="") as wave:
        assert wave.provider.parse_callback(callback(EVENT)) == CallbackReference(REFERENCE, "cos-1")
        assert wave.provider.parse_callback(callback({"type": "test.test_event", "data": {}})) is None


async def test_every_request_is_signed_when_a_signing_secret_is_set() -> None:
    """Wave refuses every unsigned request of such a key, GETs too: customers were debited and never credited."""
    async with provider_under_test("wave", (200, {"result": []}), signing_secret="wave_sn_AKS_x") as wave:
        await wave.provider.initiate(charge("wave_sn"))
        await wave.provider.status(charge("wave_sn"))
        await wave.provider.status(charge("wave_sn", provider_reference="cos-1"))
        await wave.provider.refund(refund_request("wave_sn", taken={"provider_reference": "cos-1"}))
        await wave.provider.refund(refund_request("wave_sn", collected_here=False))
        await wave.provider.refund_status(refund_request("wave_sn", collected_here=False, provider_reference="pt-1"))
        await wave.provider.probe()
    assert [request.line.split(" ")[0] for request in wave.received].count("GET") == 4
    for request in wave.received:
        given = request.headers["wave-signature"]
        assert signatures.verify_signature(given, request.body, secret="wave_sn_AKS_x", separator=b"", now=NOW), request


async def test_an_empty_wallet_of_ours_is_not_a_refusal_of_the_payout() -> None:
    for field in ("code", "error_code", "error"):
        async with provider_under_test("wave", (400, {field: "insufficient-funds"})) as wave:
            assert isinstance(await wave.provider.refund(refund_request("wave_sn", collected_here=False)), FloatEmpty)
    failed = {"id": "pt-1", "status": "failed", "payout_error": {"error_code": "insufficient-funds"}}
    async with provider_under_test("wave", (200, failed)) as wave:
        undone = refund_request("wave_sn", collected_here=False, provider_reference="pt-1")
        assert isinstance(await wave.provider.refund_status(undone), FloatEmpty)


async def test_a_missing_aggregated_merchant_is_our_configuration() -> None:
    details = [{"loc": ["aggregated_merchant_id"], "msg": "field required"}]
    async with provider_under_test("wave", (400, {"code": "request-validation-error", "details": details})) as wave:
        check(await wave.provider.initiate(charge("wave_sn")), not_taken())
