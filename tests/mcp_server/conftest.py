"""What the tests of `guichet mcp` share with those of the console, and a live environment."""

from collections.abc import AsyncIterator

import pytest

from guichet.settings import Settings
from tests.console.conftest import sqlite_console
from tests.fakes.scripted_provider import ScriptedProvider
from tests.service_fixture import ServiceFixture, open_service

__all__ = ["sqlite_console"]


@pytest.fixture
async def live_service(sqlite_settings: Settings) -> AsyncIterator[ServiceFixture]:
    async with open_service(
        sqlite_settings, accounts={"scripted": ScriptedProvider()}, routes={"mtn": ["scripted"]}
    ) as opened:
        yield opened
