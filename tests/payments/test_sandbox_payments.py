"""One payment from creation to refund, through HTTP, on both databases."""

import pytest

from tests.service_fixture import House


async def test_a_payment_succeeds_is_credited_and_refunded(house: House) -> None:
    shop = await house.merchant()
    payment = await shop.pay("0000", external_id="order-1")
    assert payment["status"] == "pending"
    await house.settle()
    assert (await shop.get("/payments/order-1")).data["status"] == "succeeded"
    assert (await shop.get("/balance")).data["balance"] == 5000
    refund = await shop.post(f"/payments/{payment['reference']}/refund")
    assert (refund.status, refund.data["status"]) == (201, "succeeded")
    assert (await shop.get("/payments/order-1")).data["status"] == "refunded"
    assert (await shop.get("/balance")).data["balance"] == 0


@pytest.mark.parametrize(
    ("ending", "after", "expected"),
    [
        ("0000", 0, "succeeded"),
        ("0002", 400_000, "pending"),
        ("0003", 0, "failed"),
        ("1234", 9.999, "pending"),
        ("1234", 10, "succeeded"),
    ],
)
async def test_the_sandbox_decides_by_the_number(house: House, ending: str, after: float, expected: str) -> None:
    shop = await house.merchant()
    payment = await shop.pay(ending)
    await house.settle(after)
    listed = (await shop.get("/payments")).data
    assert [(each["reference"], each["status"]) for each in listed] == [(payment["reference"], expected)]


async def test_a_test_card_waits_for_its_page_whatever_its_phone_number(sqlite_house: House) -> None:
    shop = await sqlite_house.merchant()
    customer = {"firstname": "Awa", "lastname": "Diallo", "email": "awa@example.com"}
    for ending in ("0000", "0001", "0003", "1234"):
        await shop.pay(ending, operator="VISA", customer=customer)
    await sqlite_house.settle(60)
    assert {payment["status"] for payment in (await shop.get("/payments")).data} == {"pending"}
