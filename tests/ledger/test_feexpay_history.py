"""FeexPay lists at most 500 movements in a response, in no documented order, so a full one may hide others."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from guichet.clock import DAY, HOUR, Instant, from_datetime, later
from guichet.domain.money import Hundredths
from guichet.domain.reconciliation import Line
from guichet.providers.base import Unknown
from guichet.providers.feexpay.history import FeexPayHistory
from guichet.providers.shared.client import ProviderResponse
from tests.fakes.clock import ManualClock

START = from_datetime(datetime(2026, 1, 1, tzinfo=UTC))


class FakeFeexpayHistory:
    """As FeexPay answers: the rows of the requested days, and no more than 500 of them."""

    def __init__(self, per_day: Mapping[str, int], split: bool = True) -> None:
        self.requested: list[Any] = []
        self.rows = [
            {
                "reference": f"{day}-{number}",
                "reseau": "MOOV",
                "type": "PAYOUT_API" if split and number % 3 == 0 else "PAYMENT_API",
                "status": "FAILED" if split and number % 2 else "SUCCESSFUL",
                "amount": 100 + number,
                "callback_info": f"ours-{day}-{number}",
                "date": f"{day}T10:00:00.000Z",
            }
            for day, count in per_day.items()
            for number in range(count)
        ]

    async def request(self, body: Mapping[str, object]) -> ProviderResponse:
        self.requested.append(body)
        kind = {"PAYIN": "PAYMENT_API", "PAYOUT": "PAYOUT_API"}.get(str(body["type"]))
        wanted = [
            row
            for row in self.rows
            if str(body["start_date"]) <= str(row["date"])[:10] <= str(body["end_date"])
            and kind in (None, row["type"])
            and body["status"] in ("ALL", row["status"])
            and body.get("reseau") in (None, row["reseau"])
        ][:500]
        return ProviderResponse(200, msgspec.json.encode({"success": True, "total": len(wanted), "data": wanted}), True)


async def test_a_full_history_response_is_split_until_it_is_complete() -> None:
    gateway = FakeFeexpayHistory({"2026-01-01": 20, "2026-01-02": 499, "2026-01-20": 900, "2026-02-10": 7})
    found = await FeexPayHistory(gateway.request, "s", ManualClock()).lines(START, later(START, 45 * DAY))
    assert isinstance(found, list)
    assert {line.references[0] for line in found} == {row["callback_info"] for row in gateway.rows}
    assert len(found) == len(gateway.rows)
    for body in gateway.requested:
        assert (body["start_date"], body["shop"]) <= (body["end_date"], "s")
    first = found[0]
    moment = later(START, 10 * HOUR)
    assert first == Line(
        1, "refund", ("ours-2026-01-01-0", "2026-01-01-0"), Hundredths(10000), None, "succeeded", moment
    )
    assert {line.status for line in found} == {"succeeded", "failed"}


async def test_a_day_that_cannot_be_read_completely_is_refused() -> None:
    gateway = FakeFeexpayHistory({"2026-01-02": 600}, split=False)
    found = await FeexPayHistory(gateway.request, "s", ManualClock()).lines(START, later(START, 3 * DAY))
    assert isinstance(found, Unknown)
    assert "2026-01-02 has more" in str(found.raw)


async def test_an_unreadable_history_response_is_refused() -> None:
    async def broken(_: Mapping[str, object]) -> ProviderResponse:
        return ProviderResponse(200, b'{"success": true, "data": nul', True)

    assert isinstance(await FeexPayHistory(broken, "s", ManualClock()).lines(START, START), Unknown)


async def test_one_payment_is_found_behind_a_full_response() -> None:
    """The search for a lost answer reads on until it is complete; a busy shop has 500 transactions in three days."""
    gateway = FakeFeexpayHistory({"2026-01-01": 400, "2026-01-02": 400, "2026-01-03": 900})
    history = FeexPayHistory(gateway.request, "s", ManualClock())
    noon = later(START, 36 * HOUR)
    wanted = [row for row in gateway.rows if row["type"] == "PAYMENT_API"]
    for row in (wanted[0], wanted[300], wanted[-1]):
        found = await history.find(str(row["callback_info"]), operator="moov", sent_at=noon, kind="PAYIN")
        assert found == [row["reference"]]
    assert isinstance(await history.find("never-sent", operator="moov", sent_at=noon, kind="PAYIN"), Unknown)
    assert {body["type"] for body in gateway.requested} == {"PAYIN"}
    assert all("2026-01-01" <= body["start_date"] <= body["end_date"] <= "2026-01-03" for body in gateway.requested)


async def test_a_payment_that_the_first_response_lists_takes_one_request() -> None:
    gateway = FakeFeexpayHistory({"2026-01-02": 5})
    history = FeexPayHistory(gateway.request, "s", ManualClock())
    assert await history.find("ours-2026-01-02-1", operator="moov", sent_at=later(START, DAY), kind="PAYIN") == [
        "2026-01-02-1"
    ]
    assert len(gateway.requested) == 1


async def test_searches_of_ten_seconds_share_their_answers() -> None:
    gateway, clock = FakeFeexpayHistory({"2026-01-01": 300, "2026-01-02": 300}), ManualClock()
    history = FeexPayHistory(gateway.request, "s", clock)

    async def find(number: int, sent_at: Instant) -> list[str] | Unknown:
        return await history.find(f"ours-2026-01-02-{number}", operator="moov", sent_at=sent_at, kind="PAYIN")

    sent_at = later(START, 36 * HOUR)
    assert await asyncio.gather(*(find(number, sent_at) for number in (1, 2, 4))) == [
        [f"2026-01-02-{number}"] for number in (1, 2, 4)
    ]
    asked = len(gateway.requested)
    assert asked == len({tuple(body.values()) for body in gateway.requested}), "each request once"
    clock.advance(9)
    assert await find(5, sent_at) == ["2026-01-02-5"]
    assert len(gateway.requested) == asked
    clock.advance(2)
    assert await find(5, sent_at) == ["2026-01-02-5"]
    assert len(gateway.requested) > asked


async def test_a_payment_that_was_sent_after_an_answer_is_not_searched_in_it() -> None:
    gateway, clock = FakeFeexpayHistory({}), ManualClock()
    history = FeexPayHistory(gateway.request, "s", clock)
    for _ in range(2):
        clock.advance(1)
        found = await history.find("ours", operator="moov", sent_at=clock.now(), kind="PAYIN")
        assert isinstance(found, Unknown)
    assert len(gateway.requested) == 2


async def test_an_answer_that_was_cut_off_is_not_asked_for_again_by_every_payment() -> None:
    """Of a busy day it would be 500 rows, again and again; what is whole is asked for what was just sent."""
    gateway, clock = FakeFeexpayHistory({"2026-01-02": 4000}), ManualClock()
    history = FeexPayHistory(gateway.request, "s", clock)
    noon = later(START, 36 * HOUR)

    async def asked_by(sent_at: Instant) -> list[Any]:
        before = len(gateway.requested)
        await history.find("lost", operator="moov", sent_at=sent_at, kind="PAYIN")
        return gateway.requested[before:]

    def full(asked: list[Any]) -> int:
        return sum(body["start_date"] <= "2026-01-02" <= body["end_date"] for body in asked)

    first = await asked_by(noon)
    assert full(first) >= 4
    clock.advance(60)
    again = await asked_by(later(noon, 60_000_000))
    assert full(again) == 1, "only what is pending, which was whole"
    clock.advance(240)
    assert full(await asked_by(noon)) == full(first)
