"""A server with the simulator advances it from its start, as real providers advance without being called."""

import asyncio
import time
from typing import Any

from guichet.settings import Settings
from tests.cli.conftest import Cli, RunningCommand, until
from tests.ledger.ledger_history import RawSql

ORDER = {"amount": 5000, "operator": "mtn", "phone_number": "2290197001299"}
#: Seconds until the customer approves: the server is down by then.
APPROVED_AFTER = 1.5


def as_stored(server: RunningCommand, key: str) -> Any:
    """The stored status: listing polls no provider."""
    (payment,) = server.call("GET", "/v1/payments", key)[1]["data"]
    return payment["status"]


def test_payments_due_while_the_server_was_down_are_notified_at_its_start(cli: Cli, settings: Settings) -> None:
    key = cli("merchant", "create", "Awa", "--json").json["keys"]["live"]
    # Without loops the simulated provider is not polled: that its callback comes shows that it went on.
    with cli.running("serve", "--no-worker") as server:
        scenario = {"family": "mtn", "scenario": "succeeds", "after": APPROVED_AFTER}
        assert server.call("POST", "/simulator/control/next", key, scenario)[0] < 300
        assert server.call("POST", "/v1/payments", key, ORDER)[0] == 201
        assert as_stored(server, key) == "pending"
        server.stop()
    time.sleep(APPROVED_AFTER)
    # Its notification goes to the address that was served when the payment was made.
    port = server.address.rpartition(":")[2]
    with cli.start("serve", "--no-worker", "--port", port) as process:
        try:
            until(lambda: notified(settings), 20)
        finally:
            process.kill()


def notified(settings: Settings) -> bool:
    """Whether the callback waits for a worker, which asks about it."""
    rows = asyncio.run(RawSql(settings).run("SELECT status FROM provider_callbacks"))
    return rows == [("pending",)]
