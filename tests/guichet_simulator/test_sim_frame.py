"""What all providers share: the store across a restart, the control API, the phone, the table of scenarios."""

import asyncio
from pathlib import Path

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from guichet.clock import Instant
from guichet_simulator.app import PROVIDERS, create_simulator
from guichet_simulator.scenarios import BY_NAME, SCENARIOS
from guichet_simulator.store import DuplicateRef, Store
from tests.fakes.clock import TurningClock
from tests.guichet_simulator.conftest import CallbackReceiver, Simulator, loopback, open_simulator, serve
from tests.guichet_simulator.test_sim_feexpay import KEY, PAYIN, STATUS, order


async def test_transactions_survive_a_restart(tmp_path: Path, callback_receiver: CallbackReceiver) -> None:
    state = tmp_path / "deep" / "simulator.sqlite"
    async with open_simulator(state=state) as first:
        await first.json(
            "POST", "/control/dashboard", json={"family": "feexpay", "callback_url": callback_receiver.url}
        )
        await first.force("feexpay", "succeeds", after=0.5)
        taken = await first.json("POST", f"{PAYIN}/mtn", json=order("2290161000000"), headers=KEY)
    first.clock.advance(0.6)
    await asyncio.sleep(0.1)
    assert callback_receiver.received == []
    async with open_simulator(state=state, clock=first.clock) as second:
        await callback_receiver.wait_for(1)
        answer = await second.json("GET", f"{STATUS}/{taken['reference']}", headers=KEY)
        assert answer["status"] == "SUCCESSFUL"
        assert await second.debits(reference="ref-1") == 1


async def test_a_mounted_simulator_has_the_same_addresses_and_sends_callbacks(
    callback_receiver: CallbackReceiver,
) -> None:
    sock, url = loopback()
    clock = TurningClock()
    inner = create_simulator(None, public_url=f"{url}/simulator", clock=clock)
    async with serve(Starlette(routes=[Mount("/simulator", inner)]), sock), aiohttp.ClientSession() as http:
        simulator = Simulator(f"{url}/simulator", http, clock, inner.state.store)
        await simulator.json(
            "POST", "/control/dashboard", json={"family": "feexpay", "callback_url": callback_receiver.url}
        )
        await simulator.force("feexpay", "succeeds", after=0)
        await simulator.json("POST", f"{PAYIN}/mtn", json=order("2290161000000"), headers=KEY)
        await callback_receiver.wait_for(1)
        async with http.get(f"{url}/simulator/") as answer:
            assert answer.url.path == "/simulator/phone"
            assert answer.status == 200


async def test_a_refused_callback_is_repeated_with_the_same_event(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    callback_receiver.answers[:] = [503]
    await simulator.json(
        "POST", "/control/dashboard", json={"family": "feexpay", "callback_url": callback_receiver.url}
    )
    await simulator.force("feexpay", "final_success")
    await simulator.json("POST", f"{PAYIN}/mtn", json=order("2290161000000"), headers=KEY)
    first, second = await callback_receiver.wait_for(2)
    assert first.body[:60] == second.body[:60]


async def test_a_transaction_is_decided_by_the_control_api(
    simulator: Simulator, callback_receiver: CallbackReceiver
) -> None:
    await simulator.json(
        "POST", "/control/dashboard", json={"family": "feexpay", "callback_url": callback_receiver.url}
    )
    await simulator.json("POST", f"{PAYIN}/mtn", json=order("2290161000000"), headers=KEY)
    [held] = (await simulator.truth())["transactions"]
    await simulator.json("POST", "/control/callbacks", 202, json={"transaction": held["id"], "claim": "succeeded"})
    [notice] = await callback_receiver.wait_for(1)
    assert b"SUCCESSFUL" in notice.body
    assert await simulator.debits() == 0
    path = f"/control/transactions/{held['id']}/decide"
    await simulator.json("POST", path, 422, json={"decision": "maybe"})
    decided = await simulator.json("POST", path, json={"decision": "refuse", "reason": "insufficient_funds"})
    assert (decided["state"], decided["reason"]) == ("failed", "insufficient_funds")
    await simulator.json("POST", path, 409, json={"decision": "approve"})
    assert await simulator.debits() == 0
    calls = (await simulator.json("GET", "/control/calls"))["calls"]
    assert [(call["method"], call["status"]) for call in calls] == [("POST", 200)]
    await simulator.json("POST", "/control/reset", 204)
    assert await simulator.truth() == {"transactions": [], "books": []}


async def test_the_control_api_refuses_unknown_names(simulator: Simulator) -> None:
    good = {"family": "mtn", "scenario": "refused"}
    for change in ({"family": "nobody"}, {"scenario": "nothing"}, {"call": "dance"}):
        await simulator.json("POST", "/control/next", 422, json=good | change)
    await simulator.json("POST", "/control/dashboard", 422, json={"family": "nobody"})
    await simulator.json("POST", "/control/callbacks", 422, json={"transaction": 1, "claim": "succeeded"})
    async with simulator.http.get(f"{simulator.url}/phone/99") as answer:
        assert answer.status == 404


async def test_the_books_are_kept_by_currency_and_provider(simulator: Simulator) -> None:
    await simulator.force("feexpay", "final_success", times=None)
    for segment, phone in (("mtn", "2290161000000"), ("mtn", "2290161000000"), ("mtn_cg", "242060000000")):
        await simulator.json("POST", f"{PAYIN}/{segment}", json=order(phone), headers=KEY)
    books = (await simulator.truth(reference="ref-1"))["books"]
    assert [(entry["currency"], entry["debits"], entry["debited"]) for entry in books] == [
        ("XOF", 2, "1000"),
        ("XAF", 1, "500"),
    ]
    await simulator.json("DELETE", "/control/next", 204)
    taken = await simulator.json("POST", f"{PAYIN}/mtn", json=order("2290161000000"), headers=KEY)
    assert taken["status"] == "PENDING"


def test_two_processes_decide_one_request_once(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "s.sqlite"), Store(tmp_path / "s.sqlite")
    values = {"provider": "mtn", "kind": "debit", "operator": "mtn", "ref": "1", "amount": 500_00, "currency": "XOF"}
    tx = first.add(values | {"state": "pending", "scenario": "waits", "created_at": 0})
    assert first.settle(tx, "succeeded", None, Instant(1))
    assert not second.settle(second.get(tx.id), "failed", "expired", Instant(2))
    assert not second.settle(tx, "succeeded", None, Instant(2))
    assert second.get(tx.id).state == "succeeded"
    assert len(second.rows("SELECT * FROM books")) == 1
    with pytest.raises(DuplicateRef):
        second.add(values | {"state": "pending", "scenario": "waits", "created_at": 0})
    first.close()
    second.close()


def test_the_table_of_scenarios_is_consistent() -> None:
    assert len({scenario.digits for scenario in SCENARIOS}) == len(SCENARIOS)
    assert len(BY_NAME) == len(SCENARIOS) + 2
    assert all(provider.not_shown.keys() <= BY_NAME.keys() for provider in PROVIDERS)
    assert BY_NAME["slow"].delay == 25
