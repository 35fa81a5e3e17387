"""Decisions D12, D13 and D42 of docs/decisions.md: pages, date filters and dates. A test is named after each."""

import re

import pytest

from guichet.clock import SECOND, earlier, iso, later, whole_second
from tests.contract.shapes import refused_fields
from tests.service_fixture import ServiceFixture


async def test_d12_a_page_past_the_end_is_empty_and_true(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    await merchant.pay()
    answer = await merchant.get("/payments?page=7")
    assert (answer.data, answer.body["meta"]["total"], answer.body["meta"]["last_page"]) == ([], 1, 1)
    for query in ("/payments?per_page=101", "/payments?from=x", "/balance?currency=x", "/payment-modes?type=x"):
        assert refused_fields(await merchant.get(query))


@pytest.mark.both_databases
async def test_d13_bounds_are_inclusive_and_offsets_are_understood(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    born = later(whole_second(service.clock.now()), SECOND)
    service.clock.advance((born - service.clock.now()) / SECOND)
    await merchant.pay()

    async def found(query: str) -> bool:
        return bool((await merchant.get(f"/payments?{query}")).data)

    exact, before, after = iso(born), iso(earlier(born, 1)), iso(later(born, 1))
    assert await found(f"from={exact}&to={exact}")
    assert not await found(f"from={after}")
    assert not await found(f"to={before}")
    naive, in_lagos = exact[:-1], iso(later(born, 3600 * SECOND))[:-1] + "+01:00"
    for text in (
        naive,
        in_lagos,
        in_lagos.replace("+", "%2B"),
        in_lagos.replace("+", " ").replace(" ", "%20"),
        exact.lower(),
    ):
        assert await found(f"from={text}&to={text}"), text
    assert not await found(f"from={iso(born)[:-1]}-01:00")
    day, next_day = exact[:10], iso(later(born, 86_400 * SECOND))[:10]
    assert await found(f"from={day}")
    assert not await found(f"to={day}")
    assert await found(f"to={next_day}&from={day}")


async def test_d42_dates_are_utc_with_microseconds(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    service.clock.advance(0.000001)
    dates = [(await merchant.pay())[name] for name in ("created_at", "updated_at")]
    dates.append((await merchant.get("/balance")).data["updated_at"])
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", date) for date in dates)
