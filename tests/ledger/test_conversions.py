"""Customers pay francs, and the provider holds euros: the day's conversions are booked from its list, and both floats
agree with what it states."""

from collections.abc import Mapping
from typing import Any

from guichet.clock import HOUR, SECOND, Instant, later
from guichet.domain.money import Hundredths
from guichet.domain.reconciliation import Line, Settled
from guichet.incidents import repository as incidents
from guichet.ledger import reconciliation_runs as runs
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.stripe.history import read_history as stripe_history
from guichet.settings import Settings
from guichet.treasury import conversions, readings, repository
from guichet.treasury.balances import totals
from tests.fakes.scripted_provider import ScriptedProvider
from tests.invariants import check_books
from tests.ledger.test_daily_reconciliation import at_noon, sold, to_five_in_the_morning, turn
from tests.ledger.test_provider_histories import said
from tests.ledger.test_treasury_movements import posted
from tests.providers.simulated_providers import SimulatedProviders
from tests.service_fixture import open_service

FRANCS, EUROS = "float:stripe_one::XOF", "float:stripe_one::EUR"
BETWEEN = "converted:stripe_one::XOF:EUR"
DAY = Instant(1_795_046_400 * SECOND)


async def differences(simulated: SimulatedProviders) -> dict[str, tuple[int, int]]:
    """By place, what the ledger held when the balance was read last, and what differed."""
    found = await readings.latest(simulated.service.ctx.db, simulated.clock.now())
    return {each.place: (each.ledger, each.difference) for each in found}


async def test_francs_that_are_held_in_euros_agree_with_what_stripe_states(settings: Settings) -> None:
    async with at_noon(settings, "stripe") as simulated:
        db = simulated.service.ctx.db
        await simulated.control("POST", "/dashboard", json={"family": "stripe", "held_in": "EUR"})
        await sold(simulated, "stripe")
        returned = await sold(simulated, "stripe")
        await turn(simulated, 10, times=3)
        assert (await simulated.merchant.live.post(f"/payments/{returned['reference']}/refund")).status == 201
        await turn(simulated, 10, times=3)
        francs = round(returned["total_amount"])
        assert (await totals(db))["XOF", FRANCS].held == francs * 100, "no list of the day was read yet"

        await to_five_in_the_morning(simulated)
        await turn(simulated, HOUR / SECOND)
        cents = round(francs * 0.1524)
        came = cents - cents // 50
        left = 2 * came - round(francs * 0.1539)
        assert await differences(simulated) == {FRANCS: (0, 0), EUROS: (left, 0)}
        kinds = [(each.kind, each.currency, each.source, each.destination) for each in await repository.latest(db)]
        assert sorted(kinds) == [
            ("conversion", "EUR", BETWEEN, EUROS),
            ("conversion", "EUR", EUROS, BETWEEN),
            ("conversion", "XOF", BETWEEN, FRANCS),
            ("conversion", "XOF", FRANCS, BETWEEN),
            ("fee", "EUR", "provider_fees", EUROS),
        ]

        await sold(simulated, "stripe")
        for _ in range(20):
            await turn(simulated, HOUR / SECOND)
            assert {each for _, each in (await differences(simulated)).values()} == {0}, "it is converted tomorrow"
        await to_five_in_the_morning(simulated)
        await turn(simulated, HOUR / SECOND)
        assert await differences(simulated) == {FRANCS: (0, 0), EUROS: (left + came, 0)}
        assert [each.kind for each in await incidents.still_open(db)] == []
        await check_books(db)


async def test_money_that_is_missing_after_its_conversion_differs(settings: Settings) -> None:
    async with at_noon(settings, "stripe") as simulated:
        await simulated.control("POST", "/dashboard", json={"family": "stripe", "held_in": "EUR"})
        await sold(simulated, "stripe")
        await turn(simulated, 10, times=3)
        await to_five_in_the_morning(simulated)
        await simulated.control("POST", "/dashboard", json={"family": "stripe", "held_in": "EUR", "float_empty": True})
        for _ in range(26):
            await turn(simulated, HOUR / SECOND)
        held, difference = (await differences(simulated))[EUROS]
        assert difference < 0
        assert -difference <= held
        assert [each.kind for each in await incidents.still_open(simulated.service.ctx.db)] == ["float_differs"]


def _line(number: int, francs: int, cents: int, at: Instant, fee: int = 0) -> Line:
    kind, settled = ("payment" if cents > 0 else "refund"), Settled(cents, fee, "EUR")
    return Line(number, kind, (), Hundredths(francs * 100), "XOF", "succeeded", at, settled=settled)  # type: ignore[arg-type]


async def test_a_day_is_booked_once_and_has_its_own_lines_only(settings: Settings) -> None:
    async with open_service(settings, accounts={"op": ScriptedProvider()}, routes={"mtn": ["op"]}) as service:
        lines = [
            _line(1, 1000, 152, later(DAY, -1)),
            _line(2, 5000, 762, DAY, fee=15),
            _line(3, 5000, -770, later(DAY, 23 * HOUR)),
            _line(4, 1000, 152, runs.day_of(later(DAY, 25 * HOUR))),
        ]
        for _ in range(2):
            await conversions.record(service.ctx, "op", DAY, lines)
        assert await posted(service) == {"float:op::EUR": -23, "converted:op::XOF:EUR": 8, "provider_fees": 15}
        assert len(await repository.latest(service.ctx.db)) == 5
        await check_books(service.ctx.db)


def _row(source: Mapping[str, Any], amount: int, kind: str, currency: str = "eur", fee: int = 0) -> dict[str, Any]:
    known = {"id": f"txn_{kind}", "created": 1_795_050_000, "reporting_category": kind, "type": kind}
    return {**known, "amount": amount, "fee": fee, "currency": currency, "source": source}


async def test_what_a_movement_became_is_read_from_the_list_of_stripe() -> None:
    """A dispute is listed for that alone, and not at all where nothing was converted."""
    charge = {"object": "charge", "id": "ch_1", "amount": 5000, "currency": "xof", "metadata": {"reference": "ours"}}
    dispute = {"object": "dispute", "id": "dp_1", "amount": 5000, "currency": "xof"}
    rows = [
        _row(charge, 762, "charge", fee=26),
        _row({**charge, "object": "refund", "status": "succeeded"}, -770, "refund"),
        _row({**charge, "object": "refund", "status": "failed"}, 765, "refund_failure"),
        _row(dispute, -768, "adjustment", fee=2000),
        _row(dispute, -5000, "adjustment", currency="xof"),
        _row({**charge, "currency": "eur"}, 5000, "charge", fee=99),
        _row(charge, 800, "charge", currency="gbp"),
    ]

    async def get(path: str, query: Mapping[str, str]) -> ProviderResponse:
        return said({"data": rows, "has_more": False})

    lines = await stripe_history(get, DAY, later(DAY, HOUR))
    assert isinstance(lines, list)
    assert [(each.kind, each.fee, each.settled) for each in lines] == [
        ("payment", None, Settled(762, 26, "EUR")),
        ("refund", None, Settled(-770, 0, "EUR")),
        ("refund", None, Settled(765, 0, "EUR")),
        ("dispute", None, Settled(-768, 2000, "EUR")),
        ("payment", 99, None),
        ("payment", None, None),
    ]
