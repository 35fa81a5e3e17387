"""Shops to pay at: on the embedded database, and on both."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.pages.shop import Shop, open_shop


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(tmp_path) as opened:
        yield opened
