"""When "not found" proves that a request never arrived: three answers over fifteen measured minutes."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

from guichet.clock import DAY, MINUTE, SECOND
from guichet.db.engine import require
from guichet.db.tables import payments
from guichet.domain.payments import NEVER_ARRIVED_ANSWERS, NEVER_ARRIVED_PERIOD, UNSEEN_END, Payment, Refund
from guichet.providers.base import Accepted, NotFound, RefundRequest, Refused, Unknown
from guichet.refunds import repository as refunds
from guichet.settings import Settings
from tests.fakes.scripted_provider import done
from tests.payments.conftest import LivePayments, stored
from tests.service_fixture import open_service

MINUTES = 60


async def lost(live: LivePayments) -> Any:
    """A payment whose initiation was not answered, and that its provider does not know."""
    live.first.script("initiate", Unknown("the answer was lost"))
    live.first.script("status", NotFound("404"))
    return await live.merchant.pay()


async def read(live: LivePayments, payment: Any) -> str:
    """The status after a question, which every read causes."""
    return str((await live.merchant.get(f"/payments/{payment['reference']}")).data["status"])


async def counted(live: LivePayments, payment: Any) -> tuple[int, int]:
    """(answers, minutes between them) as the row has them."""
    row = await stored(live, payment)
    return row.not_found_count, row.not_found_duration // MINUTE


async def test_three_answers_that_cover_fifteen_minutes_end_a_payment(live: LivePayments) -> None:
    payment = await lost(live)
    assert [await read(live, payment) for _ in range(10)] == ["pending"] * 10, "many answers cover no time"
    live.service.clock.advance(14.5 * MINUTES)
    assert await read(live, payment) == "pending"
    live.service.clock.advance(0.5 * MINUTES)
    assert await read(live, payment) == "failed"
    assert (await stored(live, payment)).failure_reason == "operator_unavailable"
    assert await live.queued_events() == ["payment.failed"]


async def test_two_answers_prove_nothing_however_far_apart_they_are(live: LivePayments) -> None:
    payment = await lost(live)
    assert await read(live, payment) == "pending"
    live.service.clock.advance(60 * MINUTES)
    assert await read(live, payment) == "pending"
    assert await counted(live, payment) == (NEVER_ARRIVED_ANSWERS - 1, 60)
    assert await read(live, payment) == "failed"


async def test_a_jump_of_the_clock_adds_nothing(live: LivePayments) -> None:
    payment = await lost(live)
    for _ in range(5):
        assert await read(live, payment) == "pending"
        live.service.clock.jump(DAY / SECOND)
        await live.service.worker.run_until_idle()
    assert (await counted(live, payment))[1] == 0
    assert await live.state(payment["reference"]) == "pending"


async def test_a_restart_adds_nothing(live: LivePayments, settings: Settings) -> None:
    """Another process got the answers before: the time until its own first answer was measured by nobody."""
    payment = await lost(live)
    for _ in range(NEVER_ARRIVED_ANSWERS):
        assert await read(live, payment) == "pending"
    live.service.clock.advance(20 * MINUTES)
    accounts, routes = {"first": live.first, "second": live.second}, {"mtn": ["first", "second"]}
    async with open_service(settings, live.service.clock, accounts=accounts, routes=routes) as restarted:
        again = replace(live, service=restarted, merchant=replace(live.merchant, service=restarted))
        assert await read(again, payment) == "pending"
        assert await counted(again, payment) == (NEVER_ARRIVED_ANSWERS + 1, 0)
        live.service.clock.advance(10 * MINUTES)
        # The old process answers in between: its gap began before the other one's answer, and is not counted twice.
        assert await read(live, payment) == "pending"
        assert await counted(live, payment) == (NEVER_ARRIVED_ANSWERS + 2, 0)
        live.service.clock.advance(15 * MINUTES)
        assert await read(live, payment) == "failed"


@pytest.mark.parametrize("answer", [Accepted(), Unknown("timeout")])
async def test_any_other_answer_begins_the_count_again(sqlite_live: LivePayments, answer: Any) -> None:
    live = sqlite_live
    payment = await lost(live)
    await read(live, payment)
    live.service.clock.advance(14 * MINUTES)
    await read(live, payment)
    assert await counted(live, payment) == (2, 14)
    live.first.script("status", answer, NotFound())
    await live.service.run_worker(1)
    assert await counted(live, payment) == (0, 0)
    live.service.clock.advance(5 * MINUTES)
    assert await read(live, payment) == "pending"
    assert await counted(live, payment) == (1, 0)


async def test_nothing_is_concluded_once_the_provider_knew_the_request(sqlite_live: LivePayments) -> None:
    """It gave its own reference: that it does not know ours now is a fault of its own."""
    live = sqlite_live
    live.first.script("status", NotFound())
    payment = await live.merchant.pay()
    for _ in range(5):
        live.service.clock.advance(20 * MINUTES)
        assert await read(live, payment) == "pending"


async def test_an_initiation_whose_end_nobody_saw_needs_two_minutes_more(sqlite_live: LivePayments) -> None:
    """Its process died: the request may have been sent until its longest time limit had passed."""
    live = sqlite_live
    payment = await lost(live)
    row = await stored(live, payment)
    assert row.initiation_ended_at == live.ctx.clock.now()
    async with live.ctx.db.transaction() as tx:
        await tx.write(_unseen(row))
    for _ in range(NEVER_ARRIVED_ANSWERS):
        assert await read(live, payment) == "pending"
    live.service.clock.advance(NEVER_ARRIVED_PERIOD / SECOND)
    assert await read(live, payment) == "pending"
    live.service.clock.advance(UNSEEN_END / SECOND)
    assert await read(live, payment) == "failed"


async def test_the_scheduled_polls_alone_end_a_payment_that_never_arrived(sqlite_live: LivePayments) -> None:
    live = sqlite_live
    payment = await lost(live)
    for _ in range(40):
        await live.service.run_worker(MINUTES)
    assert await live.state(payment["reference"]) == "failed"


async def test_a_refund_learns_that_its_request_never_arrived_only_after_the_same_proof(live: LivePayments) -> None:
    """What a repeated request is refused for is believed from then on (`RefundRequest.never_arrived`)."""
    proofs: list[bool] = []

    def answer(request: RefundRequest) -> NotFound | Refused:
        proofs.append(request.never_arrived)
        return Refused("refused") if request.never_arrived else NotFound()

    live.first.script("status", done)
    payment = await live.merchant.pay()
    assert await read(live, payment) == "succeeded"
    live.first.script("refund", Unknown("lost"))
    live.first.script("refund_status", answer)
    made = (await live.merchant.post(f"/payments/{payment['reference']}/refund", {})).data
    await live.service.worker.run_until_idle()
    for jump in (0, DAY / SECOND, 0):
        live.service.clock.jump(jump)
        await live.merchant.get(f"/refunds/{made['reference']}")
    assert proofs == [False] * 3
    row = await refund_row(live, made)
    assert (row.status, row.not_found_count, row.not_found_duration) == ("pending", 3, 0)
    live.service.clock.advance(17 * MINUTES)
    await live.merchant.get(f"/refunds/{made['reference']}")
    assert (await refund_row(live, made)).status == "pending"
    await live.merchant.get(f"/refunds/{made['reference']}")
    assert (await refund_row(live, made)).status == "failed"
    assert proofs == [False] * 4 + [True]


async def refund_row(live: LivePayments, made: Any) -> Refund:
    return require(await refunds.by_reference(live.ctx.db, live.merchant.id, "live", made["reference"]))


def _unseen(row: Payment) -> Any:
    return update(payments).where(payments.c.id == row.id).values(initiation_ended_at=None)
