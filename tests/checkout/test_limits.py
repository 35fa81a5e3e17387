"""Guessing addresses is limited; waiting for a payment is not."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from guichet.settings import Settings
from tests.checkout.checkout_fixture import CheckoutFixture, open_checkout

LIMIT = 10


@pytest.fixture
async def strict(sqlite_settings: Settings) -> AsyncIterator[CheckoutFixture]:
    async with open_checkout(replace(sqlite_settings, page_rate_limit=LIMIT)) as opened:
        yield opened


async def test_guessing_addresses_is_limited_even_for_existing_ones(strict: CheckoutFixture) -> None:
    path = await strict.link()
    statuses = [(await strict.get(f"/pay/{'A' * 22}/{n:022}")).status for n in range(LIMIT + 5)]
    assert statuses == [404] * LIMIT + [429] * 5
    refused = await strict.get(path)
    assert refused.status == 429
    assert "Attendez une minute" in refused.text
    assert int(refused.headers["Retry-After"]) > 0
    assert (await strict.get("/checkout/x")).status == 429


async def test_a_waiting_customer_is_not_limited(strict: CheckoutFixture) -> None:
    waiting = await strict.waiting(await strict.link())
    for _ in range(LIMIT * 5):
        assert (await strict.get(waiting + "/status")).status == 200


async def test_known_pages_are_limited_too(strict: CheckoutFixture) -> None:
    path = await strict.link() + "/qr"
    statuses = [(await strict.get(path)).status for _ in range(LIMIT * 25)]
    assert statuses[: LIMIT * 20] == [200] * (LIMIT * 20)
    assert statuses[-1] == 429


async def test_the_api_has_a_separate_limit(strict: CheckoutFixture) -> None:
    for n in range(LIMIT + 1):
        await strict.get(f"/pay/{'A' * 22}/{n:022}")
    assert await strict.api("GET", "/payments") == []
