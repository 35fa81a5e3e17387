"""A live payment is created: which provider account takes it, and what follows from each response."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from guichet.clock import SECOND
from guichet.db.engine import require
from guichet.domain.money import Hundredths
from guichet.payments import repository as payments
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Accepted, Charge, NotProcessed, Refused, Succeeded, Unknown
from tests.fakes.scripted_provider import done, taken
from tests.payments.conftest import LivePayments, stored


async def test_a_payment_is_stored_before_its_request_is_sent(live: LivePayments) -> None:
    seen = []

    async def look(charge: Charge) -> Accepted:
        row = await payments.by_reference(live.ctx.db, live.merchant.id, "live", charge.payment.reference)
        seen.append((require(row).status, require(row).provider_account))
        return taken(charge)

    live.first.script("initiate", NotProcessed())
    live.second.script("initiate", look)
    payment = await live.merchant.pay()
    assert seen == [("pending", "second")]
    assert (await stored(live, payment)).provider_reference == f"op-{payment['reference'][:8]}"


async def test_a_refusal_at_initiation_is_answered_402_without_a_webhook(live: LivePayments) -> None:
    live.first.script("initiate", Refused("insufficient_funds"))
    answer = await live.merchant.post(
        "/payments", {"amount": 5000, "operator": "mtn", "phone_number": "22997001234", "external_id": "e"}
    )
    assert (answer.status, answer.error["code"]) == (402, "payment_failed")
    assert live.second.calls == [], "a refusal is an answer: no other route is tried"
    assert (await live.merchant.get("/payments/e")).data["status"] == "failed"
    await live.service.run_worker(3599)
    assert live.first.references_of("status") == [], "it is asked about again an hour later"
    assert await live.queued_events() == []


async def test_only_an_unprocessed_request_goes_to_the_next_route(live: LivePayments) -> None:
    live.first.script("initiate", NotProcessed())
    live.second.script("status", done)
    payment = await live.merchant.pay()
    assert (await stored(live, payment)).provider_account == "second"
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "succeeded"
    assert [verb for verb, _ in live.first.calls] == ["initiate"]
    assert [verb for verb, _ in live.second.calls] == ["initiate", "status"]


async def test_an_unknown_result_stays_with_its_route(live: LivePayments) -> None:
    live.first.script("initiate", Unknown("socket closed"))
    live.first.script("status", Unknown(), done)
    payment = await live.merchant.pay()
    assert payment["status"] == "pending"
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "pending"
    await live.service.run_worker(30)
    assert await live.state(payment["reference"]) == "succeeded"
    assert live.second.calls == []
    assert await live.queued_events() == ["payment.succeeded"]


async def test_a_payment_that_no_route_accepts_fails(live: LivePayments) -> None:
    live.first.script("initiate", NotProcessed())
    live.second.script("initiate", NotProcessed())
    answer = await live.merchant.post("/payments", {"amount": 5000, "operator": "mtn", "phone_number": "22997001234"})
    assert (answer.status, answer.error["code"]) == (402, "payment_failed")
    assert [each["status"] for each in (await live.merchant.get("/payments")).data] == ["failed"]


@pytest.mark.both_databases
@pytest.mark.parametrize("others_say", [Refused("payer_not_found"), Unknown(), Accepted()])
async def test_a_payment_that_is_still_being_initiated_is_not_polled(live: LivePayments, others_say: Any) -> None:
    """The first provider would not know the payment, while the second is about to take the money."""
    asked, answered = asyncio.Event(), asyncio.Event()

    async def not_processed(_: Charge) -> NotProcessed:
        asked.set()
        await answered.wait()
        return NotProcessed()

    live.first.script("initiate", not_processed)
    live.first.script("status", others_say)
    creating = asyncio.create_task(live.merchant.pay(external_id="e"))
    await asked.wait()
    for _ in range(3):
        assert (await live.merchant.get("/payments/e")).data["status"] == "pending"
    assert live.first.references_of("status") == []
    answered.set()
    payment = await creating
    assert (await stored(live, payment)).provider_account == "second"
    live.second.script("status", done)
    assert (await live.merchant.get("/payments/e")).data["status"] == "succeeded", "a read polls at once afterwards"


async def test_a_final_payment_goes_to_no_other_route(live: LivePayments) -> None:
    """It was settled meanwhile: the next provider must not debit the customer."""

    async def settled_meanwhile(charge: Charge) -> NotProcessed:
        row = await stored(live, {"reference": charge.payment.reference})
        await settle_payment(live.ctx, row, Refused("expired"))
        return NotProcessed()

    live.first.script("initiate", settled_meanwhile)
    payment = await live.merchant.pay()
    assert payment["status"] == "failed"
    assert live.second.calls == []


@pytest.mark.both_databases
async def test_a_payment_of_a_killed_process_is_polled(live: LivePayments) -> None:
    """The payment was inserted, then the process was killed before the provider's response."""
    payment = await live.merchant.pay()
    row = await stored(live, payment)
    orphan = structs.replace(row, id=0, reference="0d4f4a52-6f7e-4a5b-9f6d-2f1f0f1a8f10", provider_reference=None)
    now = live.ctx.clock.now()
    orphan = structs.replace(orphan, next_poll_at=now + 30 * SECOND, lease_expires_at=now + 30 * SECOND, created_at=now)
    assert await payments.insert_new(live.ctx.db, orphan, orphan.next_poll_at)
    live.first.script("status", done)
    await live.service.run_worker(29)
    assert await live.state(orphan.reference) == "pending"
    await live.service.run_worker(1)
    assert await live.state(orphan.reference) == "succeeded"


async def test_another_amount_at_initiation_is_told_as_such_and_nothing_else(
    live: LivePayments, capsys: pytest.CaptureFixture[str]
) -> None:
    live.first.script("initiate", Succeeded(Hundredths(100), "XOF"))
    live.first.script("status", done)
    payment = await live.merchant.pay()
    logged = capsys.readouterr().err
    assert "provider.mismatch" in logged
    assert "initiation.unknown" not in logged
    assert (await live.state(payment["reference"]), await live.balance()) == ("pending", 0)
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "succeeded"
