"""Shops to pay at: on the embedded database, and on both."""

from collections.abc import AsyncIterator

import pytest

from guichet.settings import Settings
from tests.checkout.checkout_fixture import Shop, open_shop


@pytest.fixture
async def shop(sqlite_settings: Settings) -> AsyncIterator[Shop]:
    async with open_shop(sqlite_settings) as opened:
        yield opened


@pytest.fixture
async def any_shop(settings: Settings) -> AsyncIterator[Shop]:
    """On SQLite and on PostgreSQL."""
    async with open_shop(settings) as opened:
        yield opened
