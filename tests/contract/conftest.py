"""A merchant's own webhook server, a service whose live environment has a scripted provider, and `/openapi.json`."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
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


@pytest.fixture(scope="session")
def served_document(base_settings: Settings, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("document"))

    async def ask() -> bytes:
        async with open_service(replace(base_settings, database_url=f"sqlite:///{path}")) as service:
            answer = await service.call("GET", "/openapi.json")
            assert answer.status == 200
            return answer.raw

    return asyncio.run(ask())


@pytest.fixture
def document(served_document: bytes) -> dict[str, Any]:
    """The OpenAPI document as the service answers it."""
    return dict(msgspec.json.decode(served_document))
