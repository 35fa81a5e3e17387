"""A merchant's own webhook server, a service whose live environment has a scripted provider, and `/openapi.json`."""

from collections.abc import AsyncIterator
from typing import Any

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


@pytest.fixture
async def document(sqlite_service: ServiceFixture) -> dict[str, Any]:
    """The OpenAPI document as the service answers it."""
    answer = await sqlite_service.call("GET", "/openapi.json")
    assert answer.status == 200
    return dict(answer.body)
