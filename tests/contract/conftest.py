"""A merchant's own webhook server, and a service whose live environment has a scripted provider."""

from collections.abc import AsyncIterator

import pytest

from guichet.settings import Settings
from tests.contract.tables import column
from tests.fakes.http_server import ScriptedServer
from tests.fakes.scripted_provider import ScriptedProvider
from tests.service_fixture import ServiceFixture, open_service


@pytest.fixture
async def receiver() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(host="127.0.0.1") as server:
        yield server


@pytest.fixture
def operator() -> ScriptedProvider:
    return ScriptedProvider()


@pytest.fixture
async def live_service(settings: Settings, operator: ScriptedProvider) -> AsyncIterator[ServiceFixture]:
    """Every operator code of the contract leads to `operator` in production."""
    routes = {code: ["scripted"] for code in column("operators", "Code")}
    async with open_service(settings, accounts={"scripted": operator}, routes=routes) as opened:
        yield opened
