"""Stripe Checkout: the result of each response (docs/providers/stripe.md)."""

from typing import Any
from urllib.parse import parse_qs

import pytest

from guichet.clock import HOUR, SECOND, earlier
from guichet.domain.failures import RefusalReason
from guichet.providers.base import Accepted, CallbackReference, Succeeded
from guichet.providers.shared import signatures
from tests.providers.expectations import ALREADY_REFUNDED, UNKNOWN, ambiguous, check, not_taken, refused, succeeded
from tests.providers.provider_under_test import (
    NOW,
    REFERENCE,
    REFUND,
    ProviderUnderTest,
    Scripted,
    callback,
    charge,
    provider_under_test,
    refund_request,
)

PAGE = "https://checkout.stripe.com/c/pay/cs_1"


def session(status: str = "open", payment: str = "unpaid", **more: Any) -> dict[str, Any]:
    known = {"id": "cs_1", "object": "checkout.session", "url": PAGE, "amount_total": 5000, "currency": "xof"}
    intent = {"payment_intent": "pi_1" if payment == "paid" else None, "client_reference_id": REFERENCE}
    return {**known, **intent, "status": status, "payment_status": payment, **more}


def error(status: int, kind: str, code: str | None = None) -> Scripted:
    return status, {"error": {"type": kind, "code": code, "message": "…"}}


def form(stripe: ProviderUnderTest, number: int = -1) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(stripe.received[number].body.decode()).items()}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, session()), Accepted("cs_1", PAGE)),
        ((200, {}), UNKNOWN),
        (error(400, "invalid_request_error", "amount_too_small"), refused("limit_reached")),
        (error(400, "invalid_request_error"), refused()),
        (error(400, "idempotency_error"), UNKNOWN),
        (error(401, "invalid_request_error"), not_taken()),
        (error(402, "card_error", "card_declined"), refused("declined")),
        (error(403, "invalid_request_error"), not_taken()),
        (error(409, "invalid_request_error"), UNKNOWN),
        (error(424, "api_error"), UNKNOWN),
        (error(429, "rate_limit_error"), not_taken("operator_unavailable")),
        (error(500, "api_error"), UNKNOWN),
        ((400, b"<html>"), UNKNOWN),
    ],
)
async def test_initiation_responses_become_results(said: Scripted, meant: Any) -> None:
    async with provider_under_test("stripe", said) as stripe:
        check(await stripe.provider.initiate(charge("VISA")), meant)


@pytest.mark.parametrize(
    ("currency", "amount", "smallest"),
    [("XOF", 5000_00, "5000"), ("XAF", 5000_00, "5000"), ("EUR", 87_50, "8750"), ("USD", 10_00, "1000")],
)
async def test_initiation_request_has_the_documented_fields(currency: str, amount: int, smallest: str) -> None:
    async with provider_under_test("stripe", (200, session())) as stripe:
        await stripe.provider.initiate(charge("VISA", currency=currency, amount=amount))
    sent = form(stripe)
    assert stripe.received[0].headers["idempotency-key"] == REFERENCE
    assert sent["line_items[0][price_data][unit_amount]"] == smallest
    assert sent["line_items[0][price_data][currency]"] == currency.lower()
    assert (sent["client_reference_id"], sent["customer_email"]) == (REFERENCE, "awa@example.com")
    assert not any("card[" in name for name in sent)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"operator": "mtn"}, "configuration"), ({"amount": 100_000_000_00}, "limit_reached")],
)
async def test_an_unsupported_payment_is_refused_without_a_request(
    changes: dict[str, Any], reason: RefusalReason
) -> None:
    async with provider_under_test("stripe", (200, session())) as stripe:
        check(await stripe.provider.initiate(charge(**{"operator": "VISA", **changes})), not_taken(reason))
    assert stripe.received == []


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, session("complete", "paid")), succeeded(5000_00, "XOF")),
        ((200, session("complete", "paid", currency="eur", amount_total=8750)), succeeded(87_50, "EUR")),
        ((200, session("complete", "paid", amount_total=None)), succeeded(None, "XOF")),
        ((200, session("complete", "paid", amount_total=True)), succeeded(None, "XOF")),
        ((200, session("open")), Accepted("cs_1", PAGE)),
        ((200, session("complete", "unpaid")), Accepted("cs_1", PAGE)),
        ((200, session("expired")), refused("expired")),
        ((200, session("strange")), UNKNOWN),
        (error(404, "invalid_request_error", "resource_missing"), UNKNOWN),
        (error(500, "api_error"), UNKNOWN),
    ],
)
async def test_status_responses_become_results(said: Scripted, meant: Any) -> None:
    async with provider_under_test("stripe", said) as stripe:
        check(await stripe.provider.status(charge("VISA", provider_reference="cs_1")), meant)


async def test_a_lost_response_is_repeated_under_the_same_idempotency_key() -> None:
    async with provider_under_test("stripe", (200, session()), (200, session("complete", "paid"))) as stripe:
        check(await stripe.provider.status(charge("VISA")), succeeded(5000_00, "XOF"))
        assert stripe.received[0].headers["idempotency-key"] == REFERENCE
        late = charge("VISA", created_at=earlier(NOW, 20 * HOUR))
        sent = len(stripe.received)
        check(await stripe.provider.status(late), UNKNOWN)
        assert len(stripe.received) == sent


def refund(status: str, **more: Any) -> Scripted:
    return 200, {"id": "re_1", "object": "refund", "amount": 5000, "currency": "xof", "status": status, **more}


PAID: Scripted = (200, session("complete", "paid"))
DONE = {"provider_reference": "cs_1"}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (refund("succeeded"), succeeded(5000_00, "XOF")),
        (refund("pending"), Accepted("re_1")),
        (refund("requires_action"), Accepted("re_1")),
        (refund("pending", pending_reason="processing"), Accepted("re_1")),
        (refund("pending", pending_reason="insufficient_funds"), Accepted("re_1", float_empty=True)),
        (refund("failed", failure_reason="insufficient_funds"), ambiguous()),
        (refund("failed", failure_reason="declined"), refused()),
        (error(400, "invalid_request_error", "balance_insufficient"), ambiguous()),
        (error(400, "invalid_request_error", "insufficient_funds"), ambiguous()),
        (error(402, "card_error", "insufficient_funds"), ambiguous()),
        (refund("canceled"), refused()),
        (error(400, "invalid_request_error", "charge_already_refunded"), ALREADY_REFUNDED),
        (error(400, "idempotency_error"), UNKNOWN),
        (error(500, "api_error"), UNKNOWN),
    ],
)
async def test_refund_responses_become_results(said: Scripted, meant: Any) -> None:
    async with provider_under_test("stripe", PAID, said) as stripe:
        check(await stripe.provider.refund(refund_request("VISA", taken=DONE)), meant)
    assert stripe.received[1].headers["idempotency-key"] == REFUND
    assert (form(stripe)["payment_intent"], form(stripe)["amount"]) == ("pi_1", "5000")


async def test_a_repeated_refund_gets_the_first_answer_again_so_an_ambiguous_one_counts() -> None:
    refusal = error(400, "invalid_request_error", "balance_insufficient")
    async with provider_under_test("stripe", PAID, refusal) as stripe:
        check(await stripe.provider.refund_status(refund_request("VISA", taken=DONE)), ambiguous())


async def test_the_version_is_pinned_and_the_price_stays_in_our_currency() -> None:
    for setting, version in (("", "2026-10-28.endive"), ("2027-01-01.x", "2027-01-01.x")):
        async with provider_under_test("stripe", (200, session()), api_version=setting) as stripe:
            await stripe.provider.initiate(charge("VISA"))
        assert stripe.received[0].headers["stripe-version"] == version
        assert form(stripe)["adaptive_pricing[enabled]"] == "false"


async def test_a_refund_waits_until_the_payment_can_be_read() -> None:
    async with provider_under_test("stripe", error(500, "api_error")) as stripe:
        check(await stripe.provider.refund(refund_request("VISA", taken=DONE)), not_taken("operator_unavailable"))
    assert len(stripe.received) == 1


async def test_a_card_is_refunded_by_the_account_that_charged_it() -> None:
    async with provider_under_test("stripe", PAID) as stripe:
        assert stripe.provider.can_refund("VISA", collected_here=True)
        assert not stripe.provider.can_refund("VISA", collected_here=False)


async def test_callback_signatures_cover_the_time_a_dot_and_the_body() -> None:
    event = {"id": "evt_1", "type": "checkout.session.completed", "data": {"object": session("complete", "paid")}}
    returned = {
        "type": "refund.updated",
        "data": {"object": {"id": "re_1", "object": "refund", "metadata": {"reference": REFUND}}},
    }
    async with provider_under_test("stripe", PAID, webhook_secret="whsec_1") as stripe:
        moment, read = str(NOW // SECOND), stripe.provider.parse_callback
        for body, hint in (
            (event, CallbackReference(REFERENCE, "cs_1")),
            (returned, CallbackReference(REFUND, "re_1")),
        ):
            raw = callback(body).body
            right = signatures.hmac_sha256_hex("whsec_1", moment.encode() + b"." + raw)
            assert read(callback(raw, {"Stripe-Signature": f"t={moment},v1={right},v0=00"})) == hint
            assert read(callback(raw, {"Stripe-Signature": f"t={moment},v0={right}"})) is None
            assert read(callback(raw)) is None


async def test_a_paid_session_of_the_test_mode_is_not_believed_by_a_live_account() -> None:
    paid = session("complete", "paid", livemode=False)
    async with provider_under_test("stripe", (200, paid)) as stripe:
        check(await stripe.provider.status(charge("VISA", provider_reference="cs_1")), UNKNOWN)
    async with provider_under_test("stripe", (200, paid), secret_key="sk_test_1") as stripe:
        result = await stripe.provider.status(charge("VISA", provider_reference="cs_1"))
        assert isinstance(result, Succeeded)
