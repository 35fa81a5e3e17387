"""Refunds that are refused by a code that means the payee or our own balance: our balance tells which."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from guichet.domain.money import Hundredths
from guichet.providers.base import Accepted, AmbiguousRefusal, FloatEmpty, RefundRequest, RefundStatusResult, Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.refunds import pending as pending_refunds
from guichet.settings import Settings
from tests.fakes.scripted_provider import Scripted, ScriptedProvider, done, taken
from tests.payments.conftest import LivePayments, live_payments
from tests.payments.test_empty_float import open_kinds, row
from tests.payments.test_refunds import paid, refund_of

LOW = AmbiguousRefusal("insufficient_funds", "LOW_BALANCE_OR_PAYEE_LIMIT", code="LOW_BALANCE")
OTHER = AmbiguousRefusal("operator_unavailable", "INTERNAL_PROCESSING_ERROR", code="INTERNAL_PROCESSING_ERROR")
#: What our balance must hold for a refund of 5 088: a provider takes its fee on top.
NEEDED = 5088_00 * 105 // 100
TEN_MINUTES = 600


@dataclass
class ProviderWithFloat(ScriptedProvider):
    """States the balance that the test sets, in hundredths; None: it cannot be read."""

    float_alert_below: Mapping[str, Hundredths] = field(default_factory=dict)
    balance: int | None = NEEDED

    async def balances(self) -> list[FloatBalance] | Unknown:
        if self.balance is None:
            return Unknown("503")
        others = [FloatBalance("collection", Hundredths(9_000_000_00), "XOF"), FloatBalance("", Hundredths(0), "EUR")]
        return [*others, FloatBalance("", Hundredths(self.balance), "XOF")]


@pytest.fixture
def first() -> ProviderWithFloat:
    return ProviderWithFloat()


@pytest.fixture
async def live(settings: Settings, first: ProviderWithFloat) -> AsyncIterator[LivePayments]:
    async for each in live_payments(settings, first):
        yield each


async def refund_refused(live: LivePayments, *answers: Scripted) -> Any:
    """A refund whose requests are answered so; only the account that collected can refund."""
    live.first.script("refund", *answers)
    live.second.script("refund", FloatEmpty("the other account is empty"))
    refund = await refund_of(live, await paid(live))
    await live.service.run_worker()
    return refund


@pytest.mark.parametrize("balance", [0, NEEDED - 1, None])
async def test_with_a_balance_that_is_too_low_or_unknown_the_refund_waits(
    live: LivePayments, first: ProviderWithFloat, balance: int | None
) -> None:
    first.balance = balance
    refund = await refund_refused(live, LOW, LOW, done)
    assert (await row(live, refund)).status == "pending"
    assert await live.balance() == 0, "the hold stays: the customer is still to be paid"
    assert await open_kinds(live) == ["float_empty"]
    again = await live.merchant.post(f"/payments/{(await row(live, refund)).payment_reference}/refund")
    assert (again.status, again.error["code"]) == (409, "conflict")

    await live.service.run_worker(60)
    assert (await row(live, refund)).status == "pending"
    await live.service.run_worker(60)
    assert (await row(live, refund)).status == "succeeded"
    assert await open_kinds(live) == []
    assert len(set(live.first.references_of("refund"))) == 3, "a provider remembers a refused reference"


async def test_with_enough_of_ours_it_is_tried_once_more_after_ten_minutes(live: LivePayments) -> None:
    refund = await refund_refused(live, LOW, done)
    await live.service.run_worker(TEN_MINUTES - 1)
    assert (await row(live, refund)).status == "pending"
    assert len(live.first.references_of("refund")) == 1
    await live.service.run_worker(1)
    assert (await row(live, refund)).status == "succeeded"
    assert len(set(live.first.references_of("refund"))) == 2
    assert live.second.references_of("refund") == [], "no other account: nothing says that this one cannot pay"
    assert await open_kinds(live) == []


async def test_the_same_refusal_a_second_time_is_the_payees(live: LivePayments) -> None:
    refund = await refund_refused(live, LOW)
    await live.service.run_worker(TEN_MINUTES)
    stored = await row(live, refund)
    assert (stored.status, stored.failure_reason) == ("failed", "insufficient_funds")
    assert await live.balance() == 5000, "the hold is released"
    assert len(live.first.references_of("refund")) == 2


async def test_another_refusal_is_not_the_same(live: LivePayments) -> None:
    refund = await refund_refused(live, LOW, OTHER, OTHER)
    await live.service.run_worker(TEN_MINUTES)
    assert (await row(live, refund)).status == "pending"
    await live.service.run_worker(TEN_MINUTES)
    assert (await row(live, refund)).status == "failed"


async def test_a_balance_that_was_too_low_in_between_counts_as_no_refusal(
    live: LivePayments, first: ProviderWithFloat
) -> None:
    refund = await refund_refused(live, LOW)
    first.balance = 0
    await live.service.run_worker(TEN_MINUTES)
    first.balance = NEEDED
    await live.service.run_worker(60)
    assert (await row(live, refund)).status == "pending"
    await live.service.run_worker(TEN_MINUTES)
    assert (await row(live, refund)).status == "failed"


async def test_an_accepted_refund_that_fails_by_such_a_code_is_judged_alike(live: LivePayments) -> None:
    live.first.script("refund_status", LOW, done)
    refund = await refund_refused(live, taken)
    await live.service.run_worker(5)
    waiting = await row(live, refund)
    assert (waiting.status, waiting.sent_at, waiting.provider_reference) == ("pending", None, None)
    await live.service.run_worker(TEN_MINUTES)
    await live.service.run_worker(5)
    assert (await row(live, refund)).status == "succeeded"
    assert len(set(live.first.references_of("refund"))) == 2


@pytest.mark.both_databases
async def test_of_two_who_find_the_same_refusal_one_makes_the_new_request(live: LivePayments) -> None:
    """Else the second one would forget what the first one has sent meanwhile."""
    refund = await refund_refused(live, taken)
    seen, now = await row(live, refund), live.ctx.clock.now()
    assert await pending_refunds.start_next_request(live.ctx.db, seen, now, empty_account="first") is not None
    assert await pending_refunds.start_next_request(live.ctx.db, seen, now, empty_account="first") is None
    assert (await row(live, refund)).request_number == 1


async def test_a_refund_that_the_provider_keeps_until_our_balance_is_filled(live: LivePayments) -> None:
    def kept(request: RefundRequest) -> RefundStatusResult:
        return Accepted("re_1", float_empty=True)

    live.first.script("refund_status", kept, done)
    refund = await refund_refused(live, kept)
    assert await open_kinds(live) == ["float_empty"]
    await live.service.run_worker(5)
    assert (await row(live, refund)).status == "pending"
    await live.service.run_worker(5)
    assert (await row(live, refund)).status == "succeeded"
    assert len(live.first.references_of("refund")) == 1, "it pays by itself: a second request would pay twice"
    assert await open_kinds(live) == []
