"""A service with hosted pages: on the embedded database, and on both."""

from collections.abc import AsyncIterator

import pytest

from guichet.settings import Settings
from tests.checkout.checkout_fixture import CheckoutFixture, open_checkout


@pytest.fixture
async def checkout(sqlite_settings: Settings) -> AsyncIterator[CheckoutFixture]:
    async with open_checkout(sqlite_settings) as opened:
        yield opened


@pytest.fixture
async def any_checkout(settings: Settings) -> AsyncIterator[CheckoutFixture]:
    """On SQLite and on PostgreSQL."""
    async with open_checkout(settings) as opened:
        yield opened
