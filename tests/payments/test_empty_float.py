"""Refunds that our own balance with a provider (the float) does not cover: they wait, and nothing is given back to the
merchant meanwhile."""

from typing import Any

import pytest

from guichet.domain.payments import Refund
from guichet.incidents import repository as incidents
from guichet.providers.base import AlreadyRefunded, FloatEmpty, Refused
from guichet.refunds import repository as refunds
from tests.fakes.scripted_provider import done, slow, taken
from tests.payments.conftest import LivePayments
from tests.payments.test_refunds import paid, refund_of

EMPTY = FloatEmpty("NOT_ENOUGH_FUNDS")


async def open_kinds(live: LivePayments) -> list[str]:
    return [incident.kind for incident in await incidents.still_open(live.ctx.db)]


async def row(live: LivePayments, refund: Any) -> Refund:
    found = await refunds.by_reference(live.ctx.db, live.merchant.id, "live", refund["reference"])
    assert found is not None
    return found


async def test_a_refund_waits_until_the_float_is_filled(live: LivePayments) -> None:
    live.first.script("refund", EMPTY, EMPTY, done)
    live.second.script("refund", EMPTY)
    refund = await refund_of(live, await paid(live))
    await live.service.run_worker()
    assert (await row(live, refund)).status == "pending"
    assert await live.balance() == 0, "the hold stays: the customer is still to be paid"
    assert await open_kinds(live) == ["float_empty"]

    await live.service.run_worker(60)
    assert (await row(live, refund)).status == "pending"
    await live.service.run_worker(60)
    assert (await row(live, refund)).status == "succeeded"
    assert await open_kinds(live) == []
    first, second, third = live.first.references_of("refund")
    assert len({first, second, third}) == 3, "a provider remembers a failed reference: each request has its own"
    assert first == refund["reference"]


@pytest.mark.both_databases
async def test_another_account_that_can_pay_is_tried_at_once(live: LivePayments) -> None:
    live.first.script("refund", EMPTY)
    live.second.script("refund", done)
    refund = await refund_of(live, await paid(live))
    await live.service.run_worker()
    stored = await row(live, refund)
    assert (stored.status, stored.provider_account) == ("succeeded", "second")
    assert not live.second.refund_requests[0].collected_here, "a payout, since the other account collected"
    assert live.second.references_of("refund") != live.first.references_of("refund")


async def test_a_float_that_proves_empty_later_leads_to_a_new_request(live: LivePayments) -> None:
    """The provider accepts the refund, and says afterwards that our balance did not cover it."""
    live.first.script("refund", taken)
    live.first.script("refund_status", EMPTY)
    live.second.script("refund", done)
    refund = await refund_of(live, await paid(live))
    await live.service.run_worker()
    await live.service.run_worker(5)
    waiting = await row(live, refund)
    assert (waiting.status, waiting.sent_at, waiting.provider_reference) == ("pending", None, None)
    await live.service.run_worker(60)
    assert ((await row(live, refund)).status, len(live.second.references_of("refund"))) == ("succeeded", 1)


async def test_the_oldest_refund_is_paid_first(live: LivePayments) -> None:
    """Newer ones do not take the money that comes in, however often they are looked at."""
    live.first.script("refund", EMPTY)
    live.second.script("refund", EMPTY)
    older = await refund_of(live, await paid(live))
    await live.service.run_worker(30)
    newer = await refund_of(live, await paid(live))
    await live.service.run_worker()
    assert live.first.references_of("refund") == [older["reference"]], "the newer one waits without a request"
    live.first.script("refund", done, EMPTY, done)
    await live.service.run_worker(55)
    assert ((await row(live, older)).status, (await row(live, newer)).status) == ("succeeded", "pending")
    assert len(live.first.references_of("refund")) == 3, "tried as soon as the older one was paid"
    await live.service.run_worker(60)
    assert (await row(live, newer)).status == "succeeded"


@pytest.mark.both_databases
async def test_those_who_wait_in_line_are_not_tried_in_vain_and_follow_at_once(live: LivePayments) -> None:
    live.first.script("refund", EMPTY)
    live.second.script("refund", EMPTY)
    waiting = [await refund_of(live, await paid(live)) for _ in range(6)]
    await live.service.run_worker()
    asked = len(live.first.references_of("refund"))
    for _ in range(3):
        live.first.script("refund", EMPTY)
        live.second.script("refund", EMPTY)
        await live.service.run_worker(60)
    assert len(live.first.references_of("refund")) - asked == 3, "the oldest one, once a minute"
    live.first.script("refund", *[done] * 6)
    live.second.script("refund", *[done] * 6)  # Asked by who finds nobody in front there any more.
    await live.service.run_worker(60)
    assert {(await row(live, refund)).status for refund in waiting} == {"succeeded"}


async def test_a_newer_refund_does_not_overtake_one_that_is_being_sent(live: LivePayments) -> None:
    """Both are due in the same second; which one gets the money must not be the provider's choice."""
    live.first.script("refund", EMPTY)
    live.second.script("refund", EMPTY)
    older = await refund_of(live, await paid(live))
    await live.service.run_worker()
    newer = await refund_of(live, await paid(live))
    await live.service.run_worker()
    live.first.script("refund", slow(done, 0.05), EMPTY)
    await live.service.run_worker(120)
    assert live.first.references_of("refund")[1] == (await row(live, older)).request_reference
    assert ((await row(live, older)).status, (await row(live, newer)).status) == ("succeeded", "pending")


async def test_money_that_was_given_back_before_is_not_given_to_the_merchant(live: LivePayments) -> None:
    live.first.script("refund", AlreadyRefunded("DEPOSIT_ALREADY_REFUNDED"))
    live.first.script("refund_status", AlreadyRefunded("DEPOSIT_ALREADY_REFUNDED"))
    refund = await refund_of(live, await paid(live))
    await live.service.run_worker(60)
    assert (await row(live, refund)).status == "pending"
    assert await live.balance() == 0
    assert await open_kinds(live) == ["already_refunded"]


async def test_a_refusal_after_an_empty_float_releases_the_hold(live: LivePayments) -> None:
    live.first.script("refund", EMPTY, Refused("payer_not_found"))
    live.second.script("refund", EMPTY)
    refund = await refund_of(live, await paid(live))
    await live.service.run_worker()
    await live.service.run_worker(60)
    assert (await row(live, refund)).status == "failed"
    assert await live.balance() == 5000
    assert await open_kinds(live) == []
