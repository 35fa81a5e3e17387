"""Many identical requests at once: one payment, one refund, and the same answer to each."""

import asyncio

import pytest

from tests.contract.shapes import check_error, order
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.service_fixture import Answer, MerchantClient, ServiceFixture

MANY = 64


async def _at_once(merchant: MerchantClient, path: str, bodies: list[object]) -> list[Answer]:
    return await asyncio.gather(*(merchant.post(path, body) for body in bodies))


@pytest.mark.both_databases
async def test_the_same_payment_64_times_at_once(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    answers = await _at_once(merchant, "/payments", [order(external_id="a")] * MANY)
    assert {answer.status for answer in answers} == {201}
    assert len({answer.raw for answer in answers}) == 1
    assert (await merchant.get("/payments")).body["meta"]["total"] == 1


@pytest.mark.both_databases
async def test_64_different_bodies_with_one_external_id(service: ServiceFixture) -> None:
    """Whoever came first decides; the others read what it created."""
    merchant = await service.merchant()
    bodies: list[object] = [
        order(("mtn", "moov", "wave_ci", "VISA")[n % 4], external_id="a", amount=1000 + n, description=f"n° {n}")
        for n in range(MANY)
    ]
    answers = await _at_once(merchant, "/payments", bodies)
    assert {answer.status for answer in answers} == {201}
    [payment] = (await merchant.get("/payments")).data
    for answer in answers:
        assert answer.data | {"payment_url": None} == payment
    assert payment["description"] == f"n° {payment['amount'] - 1000}"


@pytest.mark.both_databases
async def test_64_payments_without_external_id_are_64_payments(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    answers = await _at_once(merchant, "/payments", [order()] * MANY)
    assert {answer.status for answer in answers} == {201}
    assert len({answer.data["reference"] for answer in answers}) == MANY
    assert len({answer.data["identifier"] for answer in answers}) == MANY
    assert (await merchant.get("/payments")).body["meta"]["total"] == MANY


async def test_a_live_provider_gets_one_request(live_service: ServiceFixture, operator: ScriptedProvider) -> None:
    merchant = (await live_service.merchant()).live
    answers = await _at_once(merchant, "/payments", [order(external_id="a")] * MANY)
    assert {answer.status for answer in answers} == {201}
    assert len({answer.data["reference"] for answer in answers}) == 1
    assert len(operator.charges) == 1


@pytest.mark.both_databases
async def test_64_refunds_at_once_are_one_refund(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.pay("0000", external_id="a")
    await service.run_worker()
    answers = await _at_once(merchant, "/payments/a/refund", [{"reason": f"n° {n}"} for n in range(MANY)])
    [made] = [answer for answer in answers if answer.status == 201]
    for answer in answers:
        if answer is not made:
            check_error(answer, "conflict")
    assert (await merchant.get("/refunds")).data == [made.data]
    assert (await merchant.get("/payments/a")).data["status"] == "refunded"
    assert (await merchant.get("/balance")).data["balance"] == 0


@pytest.mark.both_databases
async def test_64_live_refunds_at_once_are_booked_once(
    live_service: ServiceFixture, operator: ScriptedProvider
) -> None:
    merchant = (await live_service.merchant()).live
    operator.script("status", done)
    for name in ("a", "b"):
        await merchant.pay(external_id=name)
        await merchant.get(f"/payments/{name}")
    answers = await _at_once(merchant, "/payments/a/refund", [None] * MANY)
    assert sorted(answer.status for answer in answers) == [201] + [409] * (MANY - 1)
    assert (await merchant.get("/balance")).data["balance"] == 5000
    await live_service.run_worker()
    assert len(operator.refund_requests) == 1


@pytest.mark.both_databases
@pytest.mark.parametrize("ending", ["0000", "0003", "1234"])
async def test_64_reads_at_once_settle_once(service: ServiceFixture, ending: str) -> None:
    merchant = await service.merchant()
    await merchant.put("/webhooks/endpoint", {"url": "https://shop.example/h"})
    await merchant.pay(ending, external_id="a")
    service.clock.advance(10)
    answers = await asyncio.gather(*(merchant.get("/payments/a") for _ in range(MANY)))
    assert len({answer.raw for answer in answers}) == 1
    assert answers[0].data["status"] == ("failed" if ending == "0003" else "succeeded")
    assert (await merchant.get("/webhooks/deliveries")).body["meta"]["total"] == 1
    assert (await merchant.get("/balance")).data["balance"] == (0 if ending == "0003" else 5000)
