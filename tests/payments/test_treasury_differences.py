"""What a provider or a statement says that we have, compared with the ledger."""

import pytest

from guichet.clock import DAY, HOUR, SECOND
from guichet.domain.approvals import ActRequest
from guichet.domain.money import Hundredths
from guichet.incidents import repository as incidents
from guichet.providers.capabilities import FloatBalance
from guichet.treasury import movements, readings
from guichet.treasury.balances import totals
from guichet.treasury.differences import compare
from tests.approving import ask_and_approve
from tests.fakes.scripted_provider import done
from tests.ledger.test_treasury_movements import ACTOR, NUMBERS
from tests.ledger.test_treasury_movements import record as record_for
from tests.payments.conftest import LivePayments
from tests.payments.test_refunds import paid, refund_of

PLACE = "float:first::XOF"


async def stated(live: LivePayments, amount: int) -> int:
    """The difference, in hundredths, when the account states this balance in francs."""
    before = await totals(live.ctx.db)
    await compare(live.ctx, "first", live.first, [FloatBalance("", Hundredths(amount * 100), "XOF")], before)
    [reading] = [each for each in await readings.latest(live.ctx.db, live.ctx.clock.now()) if each.place == PLACE]
    return reading.difference


async def differing(live: LivePayments) -> list[str]:
    return [str(each.detail) for each in await incidents.still_open(live.ctx.db) if each.kind == "float_differs"]


async def wait(live: LivePayments, microseconds: int) -> None:
    live.ctx.clock.advance(microseconds / SECOND)


async def test_what_is_in_flight_is_no_difference(live: LivePayments) -> None:
    payment = await paid(live)
    assert [await stated(live, each) for each in (5088, 5000, 6000)] == [0, -88_00, 912_00]
    await live.merchant.pay(amount=1000)
    assert [await stated(live, each) for each in (5088, 6106, 6107)] == [0, 0, 1_00], "a payment may have arrived"
    await refund_of(live, payment)
    assert [await stated(live, each) for each in (0, 5087)] == [-5088_00, -1_00], "a refund that was not sent did not"
    live.first.script("refund", done)


async def test_an_announced_settlement_has_left_the_wallet(live: LivePayments) -> None:
    await paid(live)
    sent = await record_for(live.service, announced=True, amount=2000_00, from_="first", to="bank:eco")
    assert [await stated(live, each) for each in (3088, 5088)] == [0, 2000_00]
    await movements.end(live.ctx, sent.reference, "posted", ACTOR, "bank statement")
    assert await stated(live, 3088) == 0


async def test_two_readings_a_day_apart_that_differ_are_an_incident_until_one_agrees(live: LivePayments) -> None:
    await paid(live)
    assert await stated(live, 5000) == -88_00
    await wait(live, 23 * HOUR)
    await stated(live, 5000)
    assert await differing(live) == [], "not a day yet"
    await wait(live, HOUR)
    await stated(live, 5000)
    [detail] = await differing(live)
    assert "-88 XOF" in detail
    assert PLACE in detail
    await record_for(live.service, kind="fee", amount=88_00, from_="first")
    assert await stated(live, 5000) == 0
    assert await differing(live) == []
    for _ in range(2):
        await wait(live, 3 * DAY)
        await stated(live, 4000)
    assert await differing(live) == [], "readings three days apart say nothing of the days between"


@pytest.mark.both_databases
async def test_a_statement_that_two_people_record_is_a_reading(live: LivePayments) -> None:
    await paid(live)
    for day in range(2):
        facts = {"kind": "statement", "to": "first", "currency": "XOF", "amount": 5000_00}
        await ask_and_approve(live.ctx, ActRequest("treasury.record", NUMBERS[day], facts, "page 3"))  # type: ignore[arg-type]
        await wait(live, DAY)
    [reading] = await readings.latest(live.ctx.db, live.ctx.clock.now())
    assert (reading.source, reading.difference) == ("statement", -88_00)
    assert len(await differing(live)) == 1


@pytest.mark.parametrize("days", [1, 100])
async def test_readings_are_kept_for_ninety_days(live: LivePayments, days: int) -> None:
    await stated(live, 0)
    await wait(live, days * DAY)
    await stated(live, 0)
    oldest = await readings.oldest(live.ctx.db, PLACE)
    assert oldest is not None
    assert (live.ctx.clock.now() - oldest.read_at >= DAY) == (days == 1)
