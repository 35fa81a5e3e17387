"""One payment from creation to refund, through HTTP, on both databases."""

import pytest

from tests.service_fixture import ServiceFixture


async def test_a_payment_succeeds_is_credited_and_refunded(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    payment = await merchant.pay("0000", external_id="order-1")
    assert payment["status"] == "pending"
    await service.run_worker()
    assert (await merchant.get("/payments/order-1")).data["status"] == "succeeded"
    assert (await merchant.get("/balance")).data["balance"] == 5000
    refund = await merchant.post(f"/payments/{payment['reference']}/refund")
    assert (refund.status, refund.data["status"]) == (201, "succeeded")
    assert (await merchant.get("/payments/order-1")).data["status"] == "refunded"
    assert (await merchant.get("/balance")).data["balance"] == 0


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
async def test_the_sandbox_result_depends_on_the_phone_number(
    service: ServiceFixture, ending: str, after: float, expected: str
) -> None:
    merchant = await service.merchant()
    payment = await merchant.pay(ending)
    await service.run_worker(after)
    listed = (await merchant.get("/payments")).data
    assert [(each["reference"], each["status"]) for each in listed] == [(payment["reference"], expected)]


async def test_a_test_card_waits_for_its_page_whatever_its_phone_number(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    customer = {"firstname": "Awa", "lastname": "Diallo", "email": "awa@example.com"}
    for ending in ("0000", "0001", "0003", "1234"):
        await merchant.pay(ending, operator="VISA", customer=customer)
    await sqlite_service.run_worker(60)
    assert {payment["status"] for payment in (await merchant.get("/payments")).data} == {"pending"}
