"""Names that no body has and that are not ignored (docs/contract.md, "Stated figures"), and all faults at once."""

from typing import Any

import pytest

from tests.contract.shapes import check_error, order, refused_fields
from tests.contract.tables import table
from tests.service_fixture import MerchantClient, ServiceFixture

LINK: dict[str, Any] = {"amount": 2500, "description": "Cotisation"}
#: 5 000 XOF by MTN: the fee and the total.
FEE, TOTAL = 87.5, 5087.5
#: For each cell of "Accepted" the values that it stands for, in the bodies of this file.
ACCEPTED: dict[str, tuple[object, ...]] = {
    "": (),
    "false": (False,),
    "true": (True,),
    "the fee": (FEE,),
    "the total": (TOTAL,),
    "that of the payment": ("XOF",),
    "that of the merchant": ("XOF",),
}
OTHERS: tuple[object, ...] = (True, False, 0, 1, 5000, 500, TOTAL + 0.01, FEE + 0.01, "5087.5", "EUR", "x", [], {})


def _rows(endpoint: str) -> list[dict[str, str]]:
    return [row for row in table("stated-figures") if row["Endpoint"] == endpoint]


async def _paid(merchant: MerchantClient, **fields: Any) -> str:
    reference: str = (await merchant.pay("0000", **fields))["reference"]
    assert (await merchant.get(f"/payments/{reference}")).data["status"] == "succeeded"
    return reference


def _is(value: object, accepted: tuple[object, ...]) -> bool:
    return any(type(value) is type(each) and value == each for each in accepted)


@pytest.mark.parametrize("row", _rows("POST /payments"), ids=lambda row: str(row["Field"]))
async def test_what_a_payment_may_state(shared_service: ServiceFixture, row: dict[str, str]) -> None:
    merchant = await shared_service.merchant()
    field, accepted = row["Field"], ACCEPTED[row["Accepted"]]
    for value in OTHERS:
        if not _is(value, accepted):
            answer = await merchant.post("/payments", order() | {field: value})
            assert refused_fields(answer) == {field}, (field, value)
    assert (await merchant.get("/payments")).data == []
    for value in (*accepted, None):
        assert (await merchant.post("/payments", order() | {field: value})).status == 201, (field, value)


@pytest.mark.parametrize("row", _rows("POST /payments/{reference}/refund"), ids=lambda row: str(row["Field"]))
async def test_what_a_refund_may_state(shared_service: ServiceFixture, row: dict[str, str]) -> None:
    merchant = await shared_service.merchant()
    field, accepted = row["Field"], ACCEPTED[row["Accepted"]]
    path = f"/payments/{await _paid(merchant)}/refund"
    for value in OTHERS:
        if not _is(value, accepted):
            assert refused_fields(await merchant.post(path, {field: value})) == {field}, (field, value)
    assert (await merchant.get("/refunds")).data == []
    for value in (*accepted, None):
        again = f"/payments/{await _paid(merchant)}/refund"
        assert (await merchant.post(again, {field: value})).data["amount"] == TOTAL


@pytest.mark.parametrize("row", _rows("POST /payment-links"), ids=lambda row: str(row["Field"]))
async def test_what_a_link_may_state(shared_service: ServiceFixture, row: dict[str, str]) -> None:
    merchant = (await shared_service.merchant()).live
    field, accepted = row["Field"], ACCEPTED[row["Accepted"]]
    for value in OTHERS:
        if not _is(value, accepted):
            assert refused_fields(await merchant.post("/payment-links", LINK | {field: value})) == {field}
    assert (await merchant.get("/payment-links")).data == []
    for value in (*accepted, None):
        assert (await merchant.post("/payment-links", LINK | {field: value})).status == 201, (field, value)


async def test_a_partial_refund_is_refused_with_the_total(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    path = f"/payments/{await _paid(merchant)}/refund"
    error = check_error(await merchant.post(path, {"amount": 500}), "invalid_request")
    assert "Le remboursement est toujours total : 5087.5 XOF" in error["message"]
    assert (await merchant.post(path, {"amount": 5088})).data["amount"] == TOTAL, "what the operator debited"


async def test_the_faults_of_a_refund_are_told_together(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    path = f"/payments/{await _paid(merchant)}/refund"
    faulty = {"reason": 5, "amount": 500, "currency": "EUR", "partial": True}
    assert refused_fields(await merchant.post(path, faulty)) == set(faulty)
    assert refused_fields(await merchant.post("/payments/nothing/refund", faulty)) == {"reason", "partial"}
    check_error(await merchant.post("/payments/nothing/refund", {"amount": 500}), "not_found")


async def test_a_quote_can_be_sent_as_it_came(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    quote = (await merchant.post("/payment-modes/fees", {"amount": 5000, "operator": "mtn"})).data
    body = {**quote, "phone_number": "2290197001234"}
    assert (await merchant.post("/payments", body)).data["total_amount"] == quote["total_amount"]
    answer = await merchant.post("/payments", {**body, "total_amount": 5000})
    assert refused_fields(answer) == {"total_amount"}
    assert "5087.5 XOF" in answer.error["message"]


# --- all faults at once -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"amount": 9_999_999, "operator": "mtn"}, {"amount", "phone_number"}),
        ({"amount": 1, "operator": "coris"}, {"amount", "phone_number", "otp"}),
        ({"amount": 9_999_999, "operator": "mtn", "phone_number": "12"}, {"amount", "phone_number"}),
        ({"amount": 9_999_999, "operator": "mtn", "fees_included": True}, {"amount", "phone_number", "fees_included"}),
        ({"amount": 9_999_999, "operator": "mtn", "total_amount": 1}, {"amount", "phone_number", "total_amount"}),
        ({"amount": 1.5, "operator": "mtn", "fee_amount": 1}, {"amount", "phone_number", "fee_amount"}),
        ({"amount": "5000", "operator": "mtn", "fee_amount": 1}, {"amount", "phone_number"}),
        ({"amount": 9_999_999, "operator": "VISA"}, {"customer.firstname", "customer.lastname", "customer.email"}),
        ({"amount": 9_999_999, "operator": "unknown"}, {"operator"}),
    ],
)
async def test_bounds_are_told_with_everything_else(
    shared_service: ServiceFixture, body: dict[str, Any], fields: set[str]
) -> None:
    merchant = await shared_service.merchant()
    answer = await merchant.post("/payments", body)
    assert refused_fields(answer) == fields
    if "amount" in fields and isinstance(body["amount"], int):
        assert "10 et 1000000" in answer.error["details"]["amount"][0]
