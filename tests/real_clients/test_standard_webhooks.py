"""PyPI and npm `standardwebhooks` and `svix` verify our webhooks (docs/contract.md, "Webhooks").

The npm libraries stand in clients/node_modules, which `make clients` makes; without it their test is skipped, loudly.
GUICHET_REQUIRE_CLIENTS=1 fails it instead.
"""

import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import standardwebhooks

from guichet.clock import HOUR, SECOND, SystemClock, later
from guichet.settings import Settings
from tests.contract.webhooks import listen
from tests.fakes.clock import clock_of_the_machine
from tests.fakes.http_server import ReceivedRequest, ScriptedServer
from tests.service_fixture import MerchantClient, ServiceFixture, open_service

SCRIPT: Final = Path(__file__).with_name("standard_webhooks.js")
MODULES: Final = Path(__file__).parents[2] / "clients" / "node_modules"


def accepted(received: ReceivedRequest, secret: str, body: bytes | None = None) -> list[bool]:
    """By PyPI standardwebhooks and PyPI svix."""
    import svix  # It takes half a second of processor, in each runner of tests.

    sent = received.body if body is None else body
    found = []
    for library in (standardwebhooks, svix):
        try:
            library.Webhook(secret).verify(sent, received.headers)
        except (standardwebhooks.WebhookVerificationError, svix.webhooks.WebhookVerificationError):
            found.append(False)
        else:
            found.append(True)
    return found


@pytest.fixture
async def sqlite_service(sqlite_settings: Settings) -> AsyncIterator[ServiceFixture]:
    """The libraries compare the times in signatures with the machine's clock."""
    async with open_service(sqlite_settings, clock_of_the_machine()) as opened:
        yield opened


async def send(service: ServiceFixture, merchant: MerchantClient, server: ScriptedServer) -> ReceivedRequest:
    await merchant.post("/webhooks/test")
    await service.run_worker()
    return server.received[-1]


async def test_the_libraries_accept_ours_and_nothing_else(sqlite_service: ServiceFixture) -> None:
    merchant = await sqlite_service.merchant()
    async with ScriptedServer(host="127.0.0.1") as server:
        secret = await listen(merchant, server)
        await merchant.pay("0000", metadata={"note": "Café à emporter"})
        await sqlite_service.run_worker()
        received = server.received[0]
    assert accepted(received, secret) == [True, True]
    assert accepted(received, secret, received.body + b" ") == [False, False]
    assert accepted(received, "whsec_" + "A" * 40) == [False, False]
    assert received.headers["webhook-id"] == received.headers["x-service-delivery"]
    assert received.headers["x-service-signature"].startswith(f"t={received.headers['webhook-timestamp']},")


async def test_an_old_secret_signs_beside_the_new_one_for_some_hours(sqlite_service: ServiceFixture) -> None:
    service, merchant = sqlite_service, await sqlite_service.merchant()
    async with ScriptedServer(host="127.0.0.1") as server:
        old = await listen(merchant, server)
        rotation: dict[str, Any] = {"url": server.url(), "rotate_secret": True}
        new = (await merchant.put("/webhooks/endpoint", {**rotation, "overlap_hours": 2})).data["secret"]
        both = await send(service, merchant, server)
        await merchant.put("/webhooks/endpoint", {"url": server.url()})
        still = await send(service, merchant, server)
        service.clock.advance(2 * HOUR // SECOND)
        after = await send(service, merchant, server)
        newest = (await merchant.put("/webhooks/endpoint", rotation)).data["secret"]
        at_once = await send(service, merchant, server)
    for received in (both, still):
        assert accepted(received, old) == accepted(received, new) == [True, True]
        assert received.headers["x-service-signature"].count("v1=") == 1
    for received, only in ((after, new), (at_once, newest)):
        assert len(received.headers["webhook-signature"].split()) == 1
        # The test's clock is ahead of the libraries'.
        moment = int(received.headers["webhook-timestamp"]) * SECOND
        assert moment > later(SystemClock().now(), HOUR)
        assert received.headers["webhook-signature"] == standardwebhooks.Webhook(only).sign(
            received.headers["webhook-id"], _moment(received), received.body.decode()
        )


def _moment(received: ReceivedRequest) -> Any:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(int(received.headers["webhook-timestamp"]), UTC)


@pytest.mark.parametrize(("hours", "refused"), [(-1, True), (25, True), ("2", True), (None, False), (24, False)])
async def test_overlap_hours_has_bounds(sqlite_service: ServiceFixture, hours: object, refused: bool) -> None:
    merchant = await sqlite_service.merchant()
    answer = await merchant.put("/webhooks/endpoint", {"url": "https://shop.example/h", "overlap_hours": hours})
    assert (answer.status == 422) is refused


async def test_the_libraries_of_node_accept_ours(sqlite_service: ServiceFixture) -> None:
    if shutil.which("node") is None or not (MODULES / "svix").is_dir():
        message = "LOUD: webhooks were NOT verified by npm standardwebhooks and svix: clients/node_modules is missing"
        if os.environ.get("GUICHET_REQUIRE_CLIENTS"):
            pytest.fail(message)
        pytest.skip(message)
    merchant = await sqlite_service.merchant()
    async with ScriptedServer(host="127.0.0.1") as server:
        secret = await listen(merchant, server)
        received = await send(sqlite_service, merchant, server)
    for key, expected in ((secret, [True, True]), ("whsec_" + "A" * 40, [False, False])):
        given = {"headers": received.headers, "body": received.body.decode(), "secret": key}
        run = subprocess.run(
            ["node", str(SCRIPT)],
            input=json.dumps(given),
            env={**os.environ, "NODE_PATH": str(MODULES)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(run.stdout) == expected
