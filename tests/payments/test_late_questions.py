"""When a provider is asked about what ended, and for how long."""

from typing import Any

import pytest

from guichet.back_office.manual_settlement import Decision, settle_by_hand
from guichet.domain.late_results import POLLS_AT_ONCE
from guichet.domain.payments import Payment
from guichet.providers.base import (
    Accepted,
    NotFound,
    Unknown,
)
from tests.fakes.scripted_provider import done, refused
from tests.payments.conftest import LivePayments, stored
from tests.payments.test_empty_float import open_kinds
from tests.payments.test_late_results import AWA, DAY, HOUR, accounts, failed, late


async def test_a_failed_payment_is_asked_about_after_an_hour_and_after_a_day(live: LivePayments) -> None:
    payment = await failed(live)
    await live.service.run_worker(HOUR - 1)
    assert live.first.calls == []
    await live.service.run_worker(1)
    await live.service.run_worker(DAY - HOUR - 1)
    assert live.first.references_of("status") == [payment.reference]
    await live.service.run_worker(1)
    assert live.first.references_of("status") == [payment.reference] * 2
    assert all(question.ask_only for question in live.first.questions[-2:]), "the customer must not be debited now"
    await live.service.run_worker(10 * DAY)
    assert len(live.first.calls) == 2
    assert await late(live, payment) is None


async def test_a_question_without_an_answer_is_repeated(live: LivePayments) -> None:
    payment = await failed(live)
    live.first.script("status", Unknown(), Unknown(), refused, Unknown(), done)
    for _ in range(3):
        await live.service.run_worker(HOUR)
    assert len(live.first.calls) == 3
    await live.service.run_worker(DAY)
    await live.service.run_worker(HOUR)
    assert (await late(live, payment) or payment).status == "open"


async def failed_by_hand(live: LivePayments, answer: Any = Unknown("no answer")) -> Payment:
    """A payment that two people failed, while the provider said nothing."""
    payment = await stored(live, await live.merchant.pay())
    live.first.script("status", answer)
    decision = Decision(succeeded=False, evidence="statement of 3 May", actor=AWA)
    await settle_by_hand(live.ctx, payment, decision)
    live.first.calls.clear()
    return await stored(live, {"reference": payment.reference})


async def days_of_questions(live: LivePayments, days: int) -> list[int]:
    """How often the provider was asked on each of these days; the worker looks after an hour, and thrice more."""
    asked = []
    for _ in range(days):
        before = len(live.first.calls)
        for hours in (1, 7, 8, 8):
            await live.service.run_worker(hours * HOUR)
        asked.append(len(live.first.calls) - before)
    return asked


@pytest.mark.parametrize("answer", [Accepted(), NotFound()])
async def test_a_failure_that_the_provider_never_stated_is_asked_about_daily(live: LivePayments, answer: Any) -> None:
    """A success on the third day comes without any callback."""
    payment = await failed_by_hand(live)
    live.first.script("status", answer)
    assert await days_of_questions(live, 3) == [2, 1, 1]
    live.first.script("status", done)
    assert await days_of_questions(live, 1) == [1]
    assert await open_kinds(live) == ["paid_after_failure"]
    assert await accounts(live) == {"float:first::XOF": -5088_00, "suspense:late": 5088_00}
    assert await live.state(payment.reference) == "failed"


async def test_it_is_asked_about_for_ninety_days(sqlite_live: LivePayments) -> None:
    live = sqlite_live
    payment = await failed_by_hand(live)
    live.first.script("status", Accepted())
    await live.service.run_worker(HOUR)
    for _ in range(100):
        await live.service.run_worker(DAY)
    assert 85 <= len(live.first.calls) <= 91
    assert await late(live, payment) is None


async def test_the_final_refusal_ends_the_questions(live: LivePayments) -> None:
    payment = await failed_by_hand(live)
    live.first.script("status", Accepted(), Accepted(), refused)
    assert await days_of_questions(live, 5) == [2, 1, 0, 0, 0]
    assert await late(live, payment) is None


async def test_a_refusal_that_the_provider_takes_back_is_asked_about_daily(live: LivePayments) -> None:
    payment = await failed(live)
    live.first.script("status", Accepted())
    assert await days_of_questions(live, 4) == [2, 1, 1, 1]
    live.first.script("status", done)
    await live.service.run_worker(DAY)
    assert (await late(live, payment) or payment).status == "open"


async def test_a_request_that_never_arrived_is_asked_about_daily(live: LivePayments) -> None:
    live.first.script("initiate", Unknown("no answer"))
    live.first.script("status", NotFound())
    payment = await live.merchant.pay()
    for _ in range(6):
        await live.service.run_worker(600)
    row = await stored(live, payment)
    assert row.status == "failed"
    live.first.calls.clear()
    assert (await days_of_questions(live, 4))[1:] == [1, 1, 1]
    live.first.script("status", done)
    await live.service.run_worker(DAY)
    assert (await late(live, row) or row).status == "open"


async def test_an_account_is_asked_within_its_budget(sqlite_live: LivePayments) -> None:
    """Thousands may be failed by hand on one day; none of the questions is lost."""
    live = sqlite_live
    payments = [await failed_by_hand(live) for _ in range(POLLS_AT_ONCE + 15)]
    live.first.calls.clear()
    live.first.script("status", Accepted())
    await live.service.run_worker(HOUR)
    assert len(live.first.calls) == POLLS_AT_ONCE
    for _ in range(3):
        await live.service.run_worker(60)
    assert set(live.first.references_of("status")) == {each.reference for each in payments}
    assert len(live.first.calls) == len(payments)
