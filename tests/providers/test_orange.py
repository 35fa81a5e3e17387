"""Orange Web Payment: the result of each response (docs/providers/orange.md)."""

from typing import Any
from uuid import uuid4

import pytest

from guichet.domain.failures import RefusalReason
from guichet.providers.base import Accepted, CallbackReference
from guichet.providers.orange.provider import order_id
from tests.providers.expectations import TAKEN, UNKNOWN, check, not_taken, refused, succeeded
from tests.providers.provider_under_test import (
    REFERENCE,
    Scripted,
    callback,
    charge,
    provider_under_test,
    refund_request,
)

ORDER = order_id(REFERENCE)
MEMO = {"pay_token": "p", "notif_token": "n"}
OPENED = {"status": 201, "message": "OK", "pay_token": "p", "notif_token": "n", "payment_url": "https://webpay/p"}


def error(status: int, code: int) -> Scripted:
    return status, {"code": code, "message": "…", "description": "…"}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((201, OPENED), Accepted(ORDER, "https://webpay/p", MEMO)),
        ((201, {**OPENED, "pay_token": None}), UNKNOWN),
        ((201, {**OPENED, "payment_url": ""}), UNKNOWN),
        (error(400, 24), refused()),
        (error(400, 1202), not_taken()),
        (error(400, 1203), not_taken()),
        (error(400, 1204), UNKNOWN),
        (error(403, 1201), refused()),
        (error(403, 50), not_taken()),
        (error(401, 41), not_taken()),
        (error(429, 53), not_taken("operator_unavailable")),
        (error(500, 1), UNKNOWN),
        (error(503, 5), UNKNOWN),
    ],
)
async def test_initiation_responses_become_results(said: Scripted, meant: Any) -> None:
    async with provider_under_test("orange", said) as orange:
        check(await orange.provider.initiate(charge("orange_ml")), meant)


async def test_initiation_request_has_the_documented_fields() -> None:
    long = "https://shop.example/" + "x" * 200
    async with provider_under_test("orange", (201, OPENED), return_url="https://ours.example/") as orange:
        await orange.provider.initiate(charge("orange_ml", return_url=long))
    body = orange.sent()
    assert orange.path() == "/orange-money-webpay/ml/v1/webpayment"
    assert (body["order_id"], body["amount"], body["currency"]) == (ORDER, 5000, "XOF")
    assert body["return_url"] == body["cancel_url"] == "https://ours.example/"
    assert all(len(body[name]) <= 120 for name in ("return_url", "cancel_url", "notif_url"))


def test_an_order_id_is_short_and_unique_to_its_reference() -> None:
    references = [str(uuid4()) for _ in range(200)]
    assert len({order_id(one) for one in references}) == 200
    assert all(len(order_id(one)) <= 30 for one in references)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"operator": "orange_ci"}, "configuration"),
        ({"currency": "XAF"}, "currency_not_accepted"),
        ({"notify_url": None}, "configuration"),
        ({"notify_url": "https://a.example/" + "x" * 120}, "configuration"),
    ],
)
async def test_an_unsupported_payment_is_refused_without_a_request(
    changes: dict[str, Any], reason: RefusalReason
) -> None:
    async with provider_under_test("orange", (201, OPENED)) as orange:
        check(await orange.provider.initiate(charge(**{"operator": "orange_ml", **changes})), not_taken(reason))
    assert orange.received == []


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((200, {"status": "SUCCESS", "order_id": ORDER, "txnid": "MP1"}), succeeded(5000_00, "XOF")),
        ((201, {"status": "SUCCESS", "order_id": ORDER}), succeeded(5000_00, "XOF")),
        ((201, {"status": "SUCCESS", "order_id": "another"}), UNKNOWN),
        ((201, {"status": "FAILED", "order_id": ORDER}), refused("rejected_by_payer")),
        ((201, {"status": "EXPIRED", "order_id": ORDER}), refused("expired")),
        ((201, {"status": "INITIATED"}), TAKEN),
        ((201, {"status": "PENDING"}), TAKEN),
        ((201, {"status": "?"}), UNKNOWN),
        (error(400, 24), UNKNOWN),
        (error(401, 42), UNKNOWN),
    ],
)
async def test_status_responses_become_results(said: Scripted, meant: Any) -> None:
    async with provider_under_test("orange", said) as orange:
        check(await orange.provider.status(charge("orange_ml", provider_reference=ORDER, provider_data=MEMO)), meant)
    assert orange.sent() == {"order_id": ORDER, "amount": 5000, "pay_token": "p"}


async def test_status_needs_the_pay_token_and_refunds_are_refused() -> None:
    async with provider_under_test("orange", (201, OPENED)) as orange:
        check(await orange.provider.status(charge("orange_ml")), UNKNOWN)
        check(await orange.provider.refund(refund_request("orange_ml")), refused("no_refund"))
        assert not orange.provider.can_refund("orange_ml", collected_here=True)
    assert orange.received == []


async def test_callbacks_name_no_payment_of_their_own() -> None:
    async with provider_under_test("orange", (201, OPENED)) as orange:
        read = orange.provider.parse_callback
        assert read(callback({"status": "SUCCESS", "notif_token": "n", "txnid": "MP1"})) == CallbackReference()
        assert read(callback({"status": "SUCCESS"})) is None
