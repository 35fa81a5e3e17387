"""The database of a test, opened without the rest of the service."""

from collections.abc import AsyncIterator

import pytest

from guichet.bootstrap import database
from guichet.db.engine import Database
from guichet.settings import Settings


@pytest.fixture
async def db(settings: Settings) -> AsyncIterator[Database]:
    opened = database(settings)
    await opened.open()
    yield opened
    await opened.close()
