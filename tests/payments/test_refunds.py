"""Refunds: hold, disburse, post or release; once."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from guichet.clock import SECOND
from guichet.db.engine import require
from guichet.domain.money import Hundredths
from guichet.domain.payments import INCIDENT_AGE
from guichet.domain.posting_rules import WALLET, Movement, Posting
from guichet.incidents import repository as incidents
from guichet.ledger import postings
from guichet.providers.base import Accepted, FloatEmpty, NotProcessed, RefundRequest, Refused, Succeeded, Unknown
from guichet.refunds import pending as pending_refunds
from guichet.refunds import repository as refunds
from guichet.refunds.disbursement import process_refund
from tests.fakes.scripted_provider import done, slow
from tests.invariants import check_books
from tests.payments.conftest import LivePayments
from tests.service_fixture import ServiceFixture


async def paid(live: LivePayments, amount: int = 5000) -> Any:
    live.first.script("status", done)
    payment = await live.merchant.pay(amount=amount)
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "succeeded"
    return payment


async def refund_of(live: LivePayments, payment: Any) -> Any:
    answer = await live.merchant.post(f"/payments/{payment['reference']}/refund")
    assert answer.status == 201, answer.raw
    return answer.data


@pytest.mark.both_databases
@pytest.mark.parametrize("env", ["live", "test"])
async def test_sixty_four_requests_at_once_make_one_refund(live: LivePayments, env: str) -> None:
    if env == "live":
        merchant, payment = live.merchant, await paid(live)
    else:
        merchant = type(live.merchant)(live.service, live.merchant.id, live.merchant.keys, "test")
        payment = await merchant.pay("0000")
        await live.service.run_worker()
    path = f"/payments/{payment['reference']}/refund"
    answers = await asyncio.gather(*(merchant.post(path) for _ in range(64)))
    assert Counter(answer.status for answer in answers) == {201: 1, 409: 63}
    assert {answer.error["code"] for answer in answers if answer.status == 409} == {"conflict"}
    assert len((await merchant.get("/refunds")).data) == 1
    await live.service.run_worker(60)
    assert (await merchant.post(path)).status == 409
    assert len(live.first.references_of("refund")) == (1 if env == "live" else 0)
    await check_books(live.ctx.db)


async def test_a_refund_holds_the_wallets_part_then_posts_it(live: LivePayments) -> None:
    live.first.script("refund", Accepted("r-1"))
    live.first.script("refund_status", Accepted(), done)
    await paid(live, 3000)
    payment = await paid(live)
    assert await live.balance() == 8000
    refund = await refund_of(live, payment)
    assert (refund["status"], refund["amount"], refund["processed_at"]) == ("pending", 5087.5, None)
    assert await live.balance() == 3000, "held at once: it cannot be spent twice"
    await live.service.run_worker()
    assert await live.state(payment["reference"]) == "succeeded"
    read = (await live.merchant.get(f"/refunds/{refund['reference']}")).data
    assert read["status"] == "pending"
    read = (await live.merchant.get(f"/refunds/{refund['reference']}")).data
    assert read["status"] == "succeeded", "a read refreshes a disbursement in progress"
    assert read["processed_at"] is not None
    assert await live.state(payment["reference"]) == "refunded"
    assert await live.balance() == 3000
    assert await live.queued_events() == [
        "payment.succeeded",
        "payment.succeeded",
        "refund.succeeded",
        "payment.refunded",
    ]
    assert len(live.first.references_of("refund")) == 1


async def test_a_refused_disbursement_releases_the_held_amount(live: LivePayments) -> None:
    live.first.script("refund", Refused("limit_reached"))
    payment = await paid(live)
    refund = await refund_of(live, payment)
    assert await live.balance() == 0
    await live.service.run_worker()
    assert (await live.merchant.get(f"/refunds/{refund['reference']}")).data["status"] == "failed"
    assert await live.state(payment["reference"]) == "succeeded"
    assert await live.balance() == 5000
    assert await live.queued_events() == ["payment.succeeded", "refund.failed"]
    assert (await live.merchant.post(f"/payments/{payment['reference']}/refund")).status == 409, "one refund, ever"


async def test_a_refund_that_the_wallet_does_not_cover_is_refused(live: LivePayments) -> None:
    """D23: the merchant spent the money meanwhile."""
    payment = await paid(live)
    async with live.ctx.db.transaction() as tx:
        away = [Posting("amount", WALLET, "payout", Hundredths(100_000))]
        await postings.post(
            tx, [Movement(live.merchant.id, "live", "XOF", "test.payout", 1, away, live.ctx.clock.now())]
        )
    assert await live.balance() == 4000
    refund = await refund_of(live, payment)
    assert refund["status"] == "pending"
    assert await live.balance() == 4000
    await live.service.run_worker()
    assert (await live.merchant.get(f"/refunds/{refund['reference']}")).data["status"] == "failed"
    assert await live.balance() == 4000
    assert live.first.references_of("refund") == [], "nobody is asked to pay what is not there"
    assert await live.queued_events() == ["payment.succeeded", "refund.failed"]


@pytest.mark.both_databases
async def test_two_refunds_cannot_spend_the_same_money(live: LivePayments) -> None:
    live.first.script("refund", done)
    both = [await paid(live), await paid(live)]
    async with live.ctx.db.transaction() as tx:
        away = [Posting("amount", WALLET, "payout", Hundredths(400_000))]
        await postings.post(
            tx, [Movement(live.merchant.id, "live", "XOF", "test.payout", 1, away, live.ctx.clock.now())]
        )
    requested = await asyncio.gather(*(refund_of(live, payment) for payment in both))
    await live.service.run_worker(5)
    ends = [(await live.merchant.get(f"/refunds/{each['reference']}")).data["status"] for each in requested]
    assert sorted(ends) == ["failed", "succeeded"]
    assert await live.balance() == 1000


async def test_only_a_succeeded_payment_can_be_refunded(live: LivePayments) -> None:
    live.first.script("status", Accepted())
    payment = await live.merchant.pay()
    path = f"/payments/{payment['reference']}/refund"
    assert (await live.merchant.post(path)).status == 409
    live.first.script("status", Refused("expired"))
    await live.service.run_worker(5)
    assert (await live.merchant.post(path)).status == 409
    assert (await live.merchant.get("/refunds")).data == []


async def test_an_unknown_disbursement_is_polled_and_never_sent_again(live: LivePayments) -> None:
    live.first.script("refund", Unknown("timeout"))
    live.first.script("refund_status", Unknown(), Unknown(), done)
    payment = await paid(live)
    await refund_of(live, payment)
    for seconds in (0, 5, 5, 10, 20, 60):
        await live.service.run_worker(seconds)
    assert await live.state(payment["reference"]) == "refunded"
    assert len(live.first.references_of("refund")) == 1
    assert len(live.first.references_of("refund_status")) == 3


@pytest.mark.both_databases
async def test_an_unprocessed_disbursement_is_sent_again(live: LivePayments) -> None:
    live.first.script("refund", NotProcessed(), NotProcessed(), done)
    payment = await paid(live)
    await refund_of(live, payment)
    for seconds in (0, 5, 5, 10, 20):
        await live.service.run_worker(seconds)
    assert await live.state(payment["reference"]) == "refunded"
    assert len(live.first.references_of("refund")) == 3
    assert live.first.references_of("refund_status") == []


@pytest.mark.both_databases
@pytest.mark.parametrize("answer", [NotProcessed(), Refused("refused")])
async def test_the_answer_of_a_process_that_was_held_up_says_nothing_about_a_newer_request(
    live: LivePayments, answer: NotProcessed | Refused
) -> None:
    """Its lease has run out: another process has sent the next one to another provider. Both would pay, or the hold
    would be released while the money is on its way."""

    async def held_up(request: RefundRequest) -> NotProcessed | Refused:
        row = require(await refunds.by_reference(live.ctx.db, live.merchant.id, "live", request.reference))
        live.service.clock.advance(31)
        for _ in range(2):  # Our balance was too low for that one: a new request.
            row = await process_refund(live.ctx, row)
        assert (row.request_number, row.provider_account) == (1, "second")
        return answer

    live.first.script("refund", held_up)
    live.first.script("refund_status", FloatEmpty())
    live.second.script("refund_status", done)
    payment = await paid(live)
    await refund_of(live, payment)
    for seconds in (0, 60, 60):
        await live.service.run_worker(seconds)
    assert await live.state(payment["reference"]) == "refunded"
    assert len(live.first.references_of("refund")) == len(live.second.references_of("refund")) == 1


async def test_a_refund_with_another_amount_is_not_booked(live: LivePayments) -> None:
    live.first.script("refund", lambda request: Succeeded(request.amount - 100, request.currency))
    live.first.script("refund_status", done)
    payment = await paid(live)
    refund = await refund_of(live, payment)
    await live.service.run_worker()
    stored = require(await refunds.by_reference(live.ctx.db, live.merchant.id, "live", refund["reference"]))
    assert stored.status == "pending"
    assert await live.balance() == 0, "still held"
    await live.service.run_worker(60)
    assert await live.state(payment["reference"]) == "refunded"


@pytest.mark.both_databases
async def test_a_refund_of_a_process_that_died_while_sending_is_polled(live: LivePayments) -> None:
    """That it is sent is stored before the first byte."""
    marks = []

    async def look(request: RefundRequest) -> Unknown:
        row = require(await refunds.by_reference(live.ctx.db, live.merchant.id, "live", request.reference))
        marks.append(row.sent_at)
        return Unknown("killed here")

    live.first.script("refund", look)
    live.first.script("refund_status", done)
    payment = await paid(live)
    refund = await refund_of(live, payment)
    row = require(await refunds.by_reference(live.ctx.db, live.merchant.id, "live", refund["reference"]))
    now = live.ctx.clock.now()
    # What a process leaves that died between the mark and the answer: claimed, leased, marked.
    await pending_refunds.QUEUE.claim(live.ctx.db, now, now + 30_000_000, 1)
    await pending_refunds.lease(live.ctx.db, row.id, now, now + 30_000_000, now)
    await pending_refunds.mark_sent(
        live.ctx.db, row.id, provider_account="first", fingerprint=None, provider_data=None, now=now
    )
    await live.service.run_worker(29)
    assert live.first.references_of("refund") == live.first.references_of("refund_status") == []
    await live.service.run_worker(1)
    assert live.first.references_of("refund") == []
    assert len(live.first.references_of("refund_status")) == 1
    assert await live.state(payment["reference"]) == "refunded"
    assert marks == []


@pytest.mark.both_databases
async def test_several_workers_send_a_refund_once(live: LivePayments) -> None:
    live.first.script("refund", slow(done, 0.05))
    payments_made = [await paid(live) for _ in range(3)]
    for payment in payments_made:
        await refund_of(live, payment)
    workers = [live.service.opened.worker() for _ in range(4)]
    await asyncio.gather(*(worker.run_until_idle() for worker in workers))
    assert Counter(live.first.references_of("refund")).most_common(1)[0][1] == 1
    assert len(live.first.references_of("refund")) == 3


async def test_a_test_refund_succeeds_at_once_with_events_in_order(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.put("/webhooks/endpoint", {"url": "https://localhost:9/hook"})
    payment = await merchant.pay("0000")
    await service.run_worker()
    refund = (await merchant.post(f"/payments/{payment['reference']}/refund")).data
    assert (refund["status"], refund["amount"]) == ("succeeded", 5087.5)
    log = (await merchant.get("/webhooks/deliveries")).data
    assert [each["event"] for each in reversed(log)] == ["payment.succeeded", "refund.succeeded", "payment.refunded"]
    await check_books(service.ctx.db, events_queued=True)


async def test_an_old_refund_whose_answer_is_success_was_never_stuck(live: LivePayments) -> None:
    live.first.script("refund_status", done)
    refund = await refund_of(live, await paid(live))
    await live.service.run_worker()
    await live.service.run_worker(INCIDENT_AGE // SECOND)
    assert (await live.merchant.get(f"/refunds/{refund['reference']}")).data["status"] == "succeeded"
    assert await incidents.about(live.ctx.db, live.merchant.id, refund["reference"]) == []


async def test_an_old_refund_without_an_end_is_stuck(live: LivePayments) -> None:
    live.first.script("refund_status", Unknown())
    refund = await refund_of(live, await paid(live))
    await live.service.run_worker()
    await live.service.run_worker(INCIDENT_AGE // SECOND)
    assert (await live.merchant.get(f"/refunds/{refund['reference']}")).data["status"] == "pending"
    (incident,) = await incidents.about(live.ctx.db, live.merchant.id, refund["reference"])
    assert (incident.kind, incident.closed_at) == (incidents.STUCK, None)
