"""A server with the simulator advances it from its start, as real providers advance without being called."""

import asyncio
import json
import socket
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from guichet.clock import SECOND
from guichet.settings import Settings
from guichet.simulated_providers import SIMULATOR_STATE
from tests.cli.conftest import Cli, RunningCommand, until
from tests.ledger.ledger_history import RawSql
from tests.patience import PATIENCE

ORDER = {"amount": 5000, "operator": "mtn", "phone_number": "2290197001299"}
#: Seconds until the customer approves.
APPROVED_AFTER = 3600


def as_stored(server: RunningCommand, key: str) -> Any:
    """The stored status: listing polls no provider."""
    (payment,) = server.call("GET", "/v1/payments", key)[1]["data"]
    return payment["status"]


@pytest.mark.both_databases
def test_payments_due_while_the_server_was_down_are_notified_at_its_start(cli: Cli, settings: Settings) -> None:
    key = cli("merchant", "create", "Awa", "--json").json["keys"]["live"]
    # Without loops the simulated provider is not polled: that its callback comes shows that it went on.
    with cli.running("serve", "--no-worker") as server:
        scenario = {"family": "mtn", "scenario": "succeeds", "after": APPROVED_AFTER}
        assert server.call("POST", "/simulator/control/next", key, scenario)[0] < 300
        assert server.call("POST", "/v1/payments", key, ORDER)[0] == 201
        assert as_stored(server, key) == "pending"
        server.stop()
    with closing(sqlite3.connect(settings.home / SIMULATOR_STATE)) as simulator, simulator:
        simulator.execute("UPDATE transactions SET due_at = due_at - ?", (APPROVED_AFTER * SECOND,))
    # Its notification goes to the address that was served when the payment was made.
    port = server.address.rpartition(":")[2]
    with cli.start("serve", "--no-worker", "--port", port) as process:
        try:
            until(lambda: notified(settings))
        finally:
            process.kill()


def raw_answer(server: RunningCommand, path: str, body: object) -> bytes:
    """Every byte of the answer to a POST, until the server closes the connection."""
    host, _, port = server.address.removeprefix("http://").partition(":")
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nContent-Length: {len(sent)}\r\n\r\n"
    received = b""
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(head.encode() + sent)
        try:
            while chunk := connection.recv(4096):
                received += chunk
        except ConnectionResetError:
            pass
    return received


def test_the_mounted_simulator_closes_connections_too(sqlite_cli: Cli) -> None:
    """Before the first byte, and in the middle of the body; the server itself does not notice."""
    payin = "/simulator/feexpay/api/transactions/public/requesttopay/mtn"
    order = {"shop": "s", "amount": 500, "description": "x", "callback_info": "ref-1"}
    with sqlite_cli.running("serve", "--no-worker") as server:
        assert raw_answer(server, payin, {**order, "phoneNumber": "2290161009010"}) == b""
        head, _, body = raw_answer(server, payin, {**order, "phoneNumber": "2290161009017"}).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        [length] = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length")]
        assert 0 < len(body) < length
        held = server.call("GET", "/simulator/control/transactions", "k")[1]["transactions"]
        assert [each["scenario"] for each in held] == ["halfway", "lost_answer"]
        server.stop()
        assert "crashed" not in "".join(map(str, server.process.communicate()))


def test_a_provider_is_served_at_the_root_for_clients_that_take_no_base_path(sqlite_cli: Cli) -> None:
    with sqlite_cli.running("simulator", "--at-root", "wave", ready="/simulator/phone") as server:
        for path in ("/v1/balance", "/simulator/wave/v1/balance"):
            assert server.call("GET", path, "wave_sn_prod_key") == (200, {"amount": "0", "currency": "XOF"})
        calls = server.call("GET", "/simulator/control/calls", "k")[1]["calls"]
        assert [(each["family"], each["path"]) for each in calls] == [("wave", "/v1/balance")] * 2
    assert "no provider is called nobody" in sqlite_cli("simulator", "--at-root", "nobody").refusal


def notified(settings: Settings) -> bool:
    """Whether the callback waits for a worker, which asks about it."""
    rows = asyncio.run(RawSql(settings).run("SELECT status FROM provider_callbacks"))
    return rows == [("pending",)]
