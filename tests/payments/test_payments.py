"""Live payments through operators that answer late, twice, wrongly or not at all."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import text

from guichet.clock import DAY, HOUR, SECOND
from guichet.db.engine import require
from guichet.domain.money import Hundredths
from guichet.domain.payments import POLL_INTERVALS, Payment
from guichet.domain.posting_rules import WalletStatus
from guichet.payments import incidents
from guichet.payments import repository as payments
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Accepted, Charge, NotProcessed, Refused, Succeeded, Unknown
from tests.fakes.scripted_provider import done, slow, taken
from tests.invariants import check_books
from tests.payments.conftest import LivePayments


async def stored(live: LivePayments, payment: Any) -> Payment:
    return require(await payments.by_reference(live.ctx.db, live.merchant.id, "live", payment["reference"]))


# --- once and only once -----------------------------------------------------------------------------------------------


async def test_many_settlers_apply_one_success(live: LivePayments) -> None:
    row = await stored(live, await live.merchant.pay())
    success = Succeeded(Hundredths(row.total_amount), row.currency, "tx")
    settled = await asyncio.gather(*(settle_payment(live.ctx, row, success) for _ in range(16)))
    assert {each.status for each in settled} == {"succeeded"}
    assert await live.balance() == 5000
    assert await live.queued_events() == ["payment.succeeded"]


@pytest.mark.parametrize("late", [Refused("expired"), Succeeded(Hundredths(1), "XOF")])
async def test_what_comes_after_a_success_changes_nothing(live: LivePayments, late: Refused | Succeeded) -> None:
    row = await stored(live, await live.merchant.pay())
    await settle_payment(live.ctx, row, Succeeded(Hundredths(row.total_amount), row.currency))
    after = await stored(live, {"reference": row.reference})
    live.service.clock.advance(60)
    assert (await settle_payment(live.ctx, row, late)).status == "succeeded"
    assert await stored(live, {"reference": row.reference}) == after
    assert await live.balance() == 5000
    assert await live.queued_events() == ["payment.succeeded"]


async def test_a_success_after_a_failure_changes_nothing(live: LivePayments) -> None:
    row = await stored(live, await live.merchant.pay())
    await settle_payment(live.ctx, row, Refused("rejected_by_payer"))
    success = Succeeded(Hundredths(row.total_amount), row.currency)
    assert (await settle_payment(live.ctx, row, success)).status == "failed"
    assert await live.balance() == 0
    assert await live.queued_events() == ["payment.failed"]


async def test_a_success_and_a_failure_at_once_leave_one_of_them(live: LivePayments) -> None:
    rows = [await stored(live, await live.merchant.pay()) for _ in range(8)]
    both = [(Succeeded(Hundredths(row.total_amount), row.currency), Refused("expired")) for row in rows]
    await asyncio.gather(
        *(settle_payment(live.ctx, row, end) for row, ends in zip(rows, both, strict=True) for end in ends)
    )
    await check_books(live.ctx.db, events_queued=True)
    succeeded = [row for row in rows if await live.state(row.reference) == "succeeded"]
    assert await live.balance() == 5000 * len(succeeded)


async def test_one_asks_at_a_time(live: LivePayments) -> None:
    """Twenty customers' reads at once make one question; who does not ask answers what is stored."""
    live.first.script("status", slow(done, 0.2))
    payment = await live.merchant.pay()
    answers = await asyncio.gather(*(live.merchant.get(f"/payments/{payment['reference']}") for _ in range(20)))
    assert len(live.first.asked("status")) == 1
    assert {answer.status for answer in answers} == {200}
    states = [answer.data["status"] for answer in answers]
    assert sorted(set(states)) == ["pending", "succeeded"]
    assert states.count("succeeded") == 1
    assert (await live.merchant.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
    assert len(live.first.asked("status")) == 1


async def test_a_question_whose_process_died_is_asked_again_when_its_lease_ends(live: LivePayments) -> None:
    payment = await live.merchant.pay()
    row = await stored(live, payment)
    now = live.ctx.clock.now()
    assert await payments.lease(live.ctx.db, row.id, now, now + 30 * SECOND)
    live.first.script("status", done)
    assert (await live.merchant.get(f"/payments/{payment['reference']}")).data["status"] == "pending"
    live.service.clock.advance(30)
    assert (await live.merchant.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"


# --- creation ---------------------------------------------------------------------------------------------------------


async def test_our_reference_is_stored_before_the_first_byte_leaves(live: LivePayments) -> None:
    seen = []

    async def look(charge: Charge) -> Accepted:
        row = await payments.by_reference(live.ctx.db, live.merchant.id, "live", charge.reference)
        seen.append((require(row).status, require(row).provider_account))
        return taken(charge)

    live.first.script("initiate", NotProcessed())
    live.second.script("initiate", look)
    payment = await live.merchant.pay()
    assert seen == [("pending", "second")]
    assert (await stored(live, payment)).provider_reference == f"op-{payment['reference'][:8]}"


async def test_a_refusal_at_initiation_is_told_in_the_answer_and_nowhere_else(live: LivePayments) -> None:
    live.first.script("initiate", Refused("insufficient_funds"))
    answer = await live.merchant.post(
        "/payments", {"amount": 5000, "operator": "mtn", "phone_number": "22997001234", "external_id": "e"}
    )
    assert (answer.status, answer.error["code"]) == (402, "payment_failed")
    assert live.second.calls == [], "a refusal is an answer: no other route is tried"
    assert (await live.merchant.get("/payments/e")).data["status"] == "failed"
    await live.service.run_worker(3600)
    assert live.first.asked("status") == []
    assert await live.queued_events() == []


async def test_only_a_request_that_was_not_taken_goes_to_the_next_route(live: LivePayments) -> None:
    live.first.script("initiate", NotProcessed())
    live.second.script("status", done)
    payment = await live.merchant.pay()
    assert (await stored(live, payment)).provider_account == "second"
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "succeeded"
    assert [verb for verb, _ in live.first.calls] == ["initiate"]
    assert [verb for verb, _ in live.second.calls] == ["initiate", "status"]


async def test_an_unknown_answer_stays_with_its_route(live: LivePayments) -> None:
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


async def test_when_no_route_takes_it_the_payment_has_failed(live: LivePayments) -> None:
    live.first.script("initiate", NotProcessed())
    live.second.script("initiate", NotProcessed())
    answer = await live.merchant.post("/payments", {"amount": 5000, "operator": "mtn", "phone_number": "22997001234"})
    assert (answer.status, answer.error["code"]) == (402, "payment_failed")
    assert [each["status"] for each in (await live.merchant.get("/payments")).data] == ["failed"]


@pytest.mark.parametrize("others_say", [Refused("payer_not_found"), Unknown(), Accepted()])
async def test_nobody_asks_about_a_debit_that_is_still_being_requested(live: LivePayments, others_say: Any) -> None:
    """The first operator would say that it knows nothing of it, while the second is about to take the money."""
    live.first.script("initiate", slow(NotProcessed(), 0.15))
    live.first.script("status", others_say)
    creating = asyncio.create_task(live.merchant.pay(external_id="e"))
    await asyncio.sleep(0.05)
    for _ in range(3):
        assert (await live.merchant.get("/payments/e")).data["status"] == "pending"
    assert live.first.asked("status") == []
    payment = await creating
    assert (await stored(live, payment)).provider_account == "second"
    live.second.script("status", done)
    assert (await live.merchant.get("/payments/e")).data["status"] == "succeeded", "a read asks at once afterwards"


async def test_a_payment_that_is_final_goes_to_no_other_route(live: LivePayments) -> None:
    """Whoever settled it meanwhile: the next operator must not debit for nothing."""

    async def settled_meanwhile(charge: Charge) -> NotProcessed:
        row = await stored(live, {"reference": charge.reference})
        await settle_payment(live.ctx, row, Refused("expired"))
        return NotProcessed()

    live.first.script("initiate", settled_meanwhile)
    payment = await live.merchant.pay()
    assert payment["status"] == "failed"
    assert live.second.calls == []


async def test_a_creation_that_never_came_back_is_asked_about(live: LivePayments) -> None:
    """What a process killed between the insert and the operator's answer leaves behind."""
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


# --- unknown, mismatch ------------------------------------------------------------------------------------------------


async def test_what_is_unknown_stays_pending_and_is_asked_at_growing_intervals(sqlite_live: LivePayments) -> None:
    """Then daily after 72 hours, for ever, with an incident for a person."""
    live, asked = sqlite_live, []

    def silent(charge: Charge) -> Unknown:
        asked.append(live.ctx.clock.now())
        return Unknown("timeout")

    live.first.script("status", silent)
    payment = await live.merchant.pay()
    started = live.ctx.clock.now()
    while live.ctx.clock.now() - started < 6 * DAY:
        (due,) = require(await live.ctx.db.one(text("SELECT min(next_poll_at) FROM payments WHERE status = 'pending'")))
        assert due is not None, "nothing pending is ever without a next question"
        assert due > live.ctx.clock.now()
        await live.service.run_worker((due - live.ctx.clock.now()) / SECOND)
    gaps = [(b - a) // SECOND for a, b in zip([started, *asked], asked, strict=False)]
    young = [gap for gap, at in zip(gaps, asked, strict=True) if at - started < 72 * HOUR + 1]
    old = gaps[len(young) + 1 :]
    assert young[1 : 1 + len(POLL_INTERVALS)] == list(POLL_INTERVALS)
    assert set(young[len(POLL_INTERVALS) :]) == {3600}
    assert old
    assert set(old) == {24 * 3600}
    assert await live.state(payment["reference"]) == "pending"
    (incident,) = await incidents.still_open(live.ctx.db)
    assert (incident.kind, incident.reference) == (incidents.STUCK, payment["reference"])
    live.first.script("status", done)
    assert (await live.merchant.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
    assert await live.balance() == 5000


async def test_reading_often_does_not_push_the_planned_question_away(sqlite_live: LivePayments) -> None:
    live = sqlite_live
    live.first.script("status", Accepted())
    payment = await live.merchant.pay()
    planned = (await stored(live, payment)).next_poll_at
    for _ in range(15):
        await live.merchant.get(f"/payments/{payment['reference']}")
    assert len(live.first.asked("status")) == 15, "a read asks at once"
    assert (await stored(live, payment)).next_poll_at == planned
    live.first.script("status", done)
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "succeeded"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda charge: Succeeded(charge.amount - 100, charge.currency),
        lambda charge: Succeeded(charge.amount + 100, charge.currency),
        lambda charge: Succeeded(charge.amount // 100, charge.currency),
        lambda charge: Succeeded(charge.amount, "XAF"),
        lambda charge: Succeeded(None, None),
    ],
)
async def test_another_amount_or_currency_is_never_credited(sqlite_live: LivePayments, wrong: Any) -> None:
    live = sqlite_live
    live.first.script("status", wrong)
    payment = await live.merchant.pay()
    for _ in range(3):
        assert (await live.merchant.get(f"/payments/{payment['reference']}")).data["status"] == "pending"
        await live.service.run_worker(60)
    assert await live.balance() == 0
    assert await live.queued_events() == []
    (incident,) = await incidents.still_open(live.ctx.db)
    assert (incident.kind, incident.reference) == (incidents.MISMATCH, payment["reference"])
    live.first.script("status", done)
    await live.service.run_worker(3600)
    assert await live.balance() == 5000


async def test_a_success_at_initiation_is_compared_too(live: LivePayments) -> None:
    live.first.script("initiate", lambda charge: Succeeded(charge.amount * 2, charge.currency), done)
    wrong, right = await live.merchant.pay(), await live.merchant.pay()
    assert await live.state(wrong["reference"]) == "pending"
    assert await live.state(right["reference"]) == "succeeded"
    assert await live.balance() == 5000
    live.first.script("status", done)
    await live.service.run_worker(5)
    assert await live.balance() == 10_000


async def test_a_silent_operator_delays_nobody_elses_questions(sqlite_live: LivePayments) -> None:
    live = sqlite_live
    live.first.script("status", slow(done, 60))
    live.second.script("status", done)
    await asyncio.gather(*(live.merchant.pay() for _ in range(150)))
    other = await live.merchant.pay(operator="moov")
    live.service.clock.advance(6)
    live.service.worker.start()
    async with asyncio.timeout(5):
        while await live.state(other["reference"]) != "succeeded":
            await asyncio.sleep(0.02)
    await live.service.worker.stop()
    assert len(live.first.asked("status")) <= 128


# --- wallets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", ["Gelé", "Fermé"])
async def test_a_frozen_wallet_keeps_what_was_already_paid(live: LivePayments, closed: WalletStatus) -> None:
    live.first.script("status", done)
    payment = await live.merchant.pay(external_id="e")
    await live.set_wallet(closed)
    refused = await live.merchant.post("/payments", {"amount": 5000, "operator": "mtn", "phone_number": "22997001234"})
    assert (refused.status, refused.error["code"]) == (409, "conflict")
    assert len((await live.merchant.get("/payments")).data) == 1, "nothing is recorded and nobody is asked"
    assert len(live.first.asked("initiate")) == 1
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "succeeded"
    assert await live.queued_events() == ["payment.succeeded"]
    assert await live.balance() == 0
    await check_books(live.ctx.db, events_queued=True)
    refund = await live.merchant.post("/payments/e/refund")
    assert (refund.status, refund.error["code"]) == (409, "conflict")
    await live.service.run_worker(3600)
    assert await live.balance() == 0
    await live.set_wallet("Actif")
    await live.service.run_worker(1)
    wallet = (await live.merchant.get("/balance")).data
    assert (wallet["balance"], wallet["balance_minor"], wallet["status"]) == (5000, 500_000, "Actif")
    await live.service.run_worker(3600)
    assert await live.balance() == 5000


async def test_what_waited_can_be_refunded_as_soon_as_the_wallet_is_open(live: LivePayments) -> None:
    """Before the worker has looked: the one refund a payment can have must not be lost to a race."""
    live.first.script("status", done)
    live.first.script("refund", done)
    payment = await live.merchant.pay()
    await live.set_wallet("Gelé")
    await live.service.run_worker(5)
    await live.set_wallet("Actif")
    assert (await live.merchant.post(f"/payments/{payment['reference']}/refund")).status == 201
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "refunded"
    assert await live.balance() == 0


async def test_a_frozen_wallet_stops_nothing_in_the_test_environment(live: LivePayments) -> None:
    await live.set_wallet("Gelé")
    test = replace(live.merchant, env="test")
    payment = await test.pay("0000")
    await live.service.run_worker()
    assert (await test.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
    assert (await test.get("/balance")).data["status"] == "Actif"


# --- what operators can move (D27) ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("currency", "amount", "fee", "asked"),
    [
        ("XOF", 5000, 87.5, 508_800),
        ("XOF", 5030, 88.03, 511_800),
        ("XOF", 5060, 88.55, 514_900),
        ("XOF", 4000, 70, 407_000),
        ("XAF", 5001, 87.52, 508_900),
        ("EUR", 50.01, 0.88, 5_089),
    ],
)
async def test_rounding_to_what_an_operator_can_move_is_booked(
    live: LivePayments, currency: str, amount: float, fee: float, asked: int
) -> None:
    charges = []

    def look(charge: Charge) -> Succeeded:
        charges.append((charge.amount, charge.currency))
        return done(charge)

    live.first.script("status", look)
    live.first.script("refund", done)
    payment = await live.merchant.pay(currency=currency, amount=amount)
    assert payment["fee_amount"] == fee
    await live.service.run_worker(5)
    assert charges == [(asked, currency)]
    assert await live.balance(currency) == amount
    await check_books(live.ctx.db, events_queued=True)
    await live.merchant.post(f"/payments/{payment['reference']}/refund")
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "refunded"
    assert await live.balance(currency) == 0
