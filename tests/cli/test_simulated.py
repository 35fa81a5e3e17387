"""A server with the simulator advances it from its start, as real providers advance without being called."""

import time
from typing import Any

from tests.cli.conftest import Cli, RunningCommand, until

ORDER = {"amount": 5000, "operator": "mtn", "phone_number": "2290197001299"}
#: Seconds until the customer approves: the server is down by then.
APPROVED_AFTER = 1.5


def as_stored(server: RunningCommand, key: str) -> Any:
    """The stored status: listing polls no provider."""
    (payment,) = server.call("GET", "/v1/payments", key)[1]["data"]
    return payment["status"]


def test_payments_due_while_the_server_was_down_are_settled_at_its_start(cli: Cli) -> None:
    key = cli("merchant", "create", "Awa", "--json").json["keys"]["live"]
    # Without loops the simulated provider is not polled: only its callback can settle the payment.
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
            until(lambda: settled(server, key), 20)
        finally:
            process.kill()


def settled(server: RunningCommand, key: str) -> bool:
    try:
        return bool(as_stored(server, key) == "succeeded")
    except OSError:  # It is not up yet.
        return False
