"""npm fedapay, FedaPay's own library, against the simulated FedaPay.

It stands in clients/node_modules, which `make clients` makes; without it the tests are skipped, loudly.
GUICHET_REQUIRE_CLIENTS=1 fails them instead.
"""

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from guichet_simulator.app import SECRETS
from tests.guichet_simulator.conftest import CallbackReceiver, Simulator
from tests.guichet_simulator.test_sim_fedapay import PHONE, order, payout
from tests.real_clients.conftest import customer

SCRIPT: Final = Path(__file__).with_name("fedapay_client.js")
MODULES: Final = Path(__file__).parents[2] / "clients" / "node_modules"
KEY: Final = "sk_live_simulator"


@pytest.fixture(autouse=True)
def client_is_installed() -> None:
    if shutil.which("node") is None or not (MODULES / "fedapay").is_dir():
        message = "LOUD: the simulated FedaPay was NOT tried by npm fedapay: node or clients/node_modules is missing"
        if os.environ.get("GUICHET_REQUIRE_CLIENTS"):
            pytest.fail(message)
        pytest.skip(message)


async def fedapay(simulator: Simulator, call: str, key: str = KEY, **given: Any) -> Any:
    arguments = (str(SCRIPT), f"{simulator.url}/fedapay", key, call, json.dumps(given))
    environ = {**os.environ, "NODE_PATH": str(MODULES)}
    run = await asyncio.create_subprocess_exec("node", *arguments, env=environ, stdout=asyncio.subprocess.PIPE)
    out, _ = await run.communicate()
    return json.loads(out)


async def test_a_payment_is_made_paid_and_read(simulator: Simulator) -> None:
    made = await fedapay(simulator, "create", **order("order-1"))
    assert (made["status"], made["merchant_reference"]) == ("pending", "order-1")
    asked = await fedapay(simulator, "push", id=made["id"], mode="moov", phone=PHONE)
    assert asked["payment_intent"]["status"] == "pending"
    await customer(simulator, "order-1", "approve")
    found = await fedapay(simulator, "read", id=made["id"])
    assert found == {"status": "approved", "reference": "order-1", "paid": True}
    assert await simulator.debits(reference="order-1") == 1
    listed = await fedapay(simulator, "all", per_page=1)
    assert (listed["ids"], listed["meta"]["total_count"]) == ([made["id"]], 1)


async def test_refusals_are_the_librarys_errors(simulator: Simulator) -> None:
    made = await fedapay(simulator, "create", **order("order-1"))
    assert await fedapay(simulator, "create", **order("order-1")) == {"error": 422}
    assert await fedapay(simulator, "push", id=made["id"], mode="wave_ci", phone=PHONE) == {"error": 400}
    assert await fedapay(simulator, "read", id=99) == {"error": 404}
    assert await fedapay(simulator, "read", key="invalid", id=made["id"]) == {"error": 401}


async def test_a_payout_is_started_by_the_library(simulator: Simulator) -> None:
    await simulator.force("fedapay", "succeeds", "credit", after=0)
    made = await fedapay(simulator, "pay", **payout("back-1"))
    assert (await fedapay(simulator, "payout", id=made["id"]))["status"] == "sent"
    assert await simulator.credits(reference="back-1") == 1


async def test_balances_and_currencies_are_listed(simulator: Simulator) -> None:
    assert "moov" in {row["mode"] for row in await fedapay(simulator, "balances")}
    assert [row["iso"] for row in await fedapay(simulator, "currencies")] == ["XOF"]


async def test_the_library_accepts_our_events_and_no_forged_one(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    dashboard = {"family": "fedapay", "callback_url": f"{callback_receiver.url}/hook"}
    await simulator.json("POST", "/control/dashboard", json=dashboard)
    await simulator.force("fedapay", "forged_callback", after=1)
    made = await fedapay(simulator, "create", **order("order-1"))
    await fedapay(simulator, "push", id=made["id"], mode="moov", phone=PHONE)
    forged, true = [
        {"body": each.body.decode(), "signature": each.headers["x-fedapay-signature"], "secret": SECRETS["fedapay"]}
        for each in await callback_receiver.wait_for(2)
    ]
    assert (await fedapay(simulator, "event", **true))["entity"]["id"] == made["id"]
    assert "error" in await fedapay(simulator, "event", **forged)
