"""A merchant's own webhook server, and a house whose live environment has an operator."""

from collections.abc import AsyncIterator

import pytest

from guichet.settings import Settings
from tests.contract.tables import column
from tests.fakes.http_server import Peer
from tests.fakes.scripted_provider import ScriptedOperator
from tests.service_fixture import House, open_house


@pytest.fixture
async def receiver() -> AsyncIterator[Peer]:
    async with Peer(host="127.0.0.1") as peer:
        yield peer


@pytest.fixture
def operator() -> ScriptedOperator:
    return ScriptedOperator()


@pytest.fixture
async def live_house(settings: Settings, operator: ScriptedOperator) -> AsyncIterator[House]:
    """Every operator code of the contract leads to `operator` in production."""
    routes = {code: ["scripted"] for code in column("operators", "Code")}
    async with open_house(settings, accounts={"scripted": operator}, routes=routes) as opened:
        yield opened
