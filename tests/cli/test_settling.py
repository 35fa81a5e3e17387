"""`guichet payment settle`, `guichet refund settle` and `guichet late-money`, against the simulated providers."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.conftest import Cli, RunningCommand, until
from tests.ports import free_port

SAID = ("--evidence", "ticket 4711", "--by", "Awa")


@pytest.fixture
def port(cli: Cli) -> int:
    return free_port()


class Live:
    """A running server with simulated providers, and a merchant's live key."""

    def __init__(self, cli: Cli, server: RunningCommand, key: str) -> None:
        self.cli, self.server, self.key = cli, server, key

    def pay(self, ending: str) -> str:
        order = {"amount": 5000, "operator": "mtn", "phone_number": f"229019700{ending}"}
        status, body = self.server.call("POST", "/v1/payments", self.key, order)
        assert status == 201, body
        return str(body["data"]["reference"])

    def status(self, reference: str) -> Any:
        return self.server.call("GET", f"/v1/payments/{reference}", self.key)[1]["data"]["status"]


@pytest.fixture
def live(cli: Cli, port: int) -> Iterator[Live]:
    here = cli.having(GUICHET_PUBLIC_URL=f"http://127.0.0.1:{port}")
    key = here("merchant", "create", "Awa", "--json").json["keys"]["live"]
    with here.start("serve", "--port", port) as process:
        server = RunningCommand(process, f"http://127.0.0.1:{port}")
        try:
            until(lambda: _answers(server), 20)
            yield Live(here, server, key)
        finally:
            process.kill()


def _answers(server: RunningCommand) -> bool:
    try:
        return server.call("GET", "/readyz", "")[0] == 200
    except OSError:
        return False


def test_a_stuck_payment_is_ended_and_the_log_says_by_whom(live: Live) -> None:
    stuck = live.pay("9009")
    refused = live.cli("payment", "settle", stuck, "--succeeded", *SAID).refusal
    assert "is: pending" in refused
    assert live.status(stuck) == "pending"
    done = live.cli("payment", "settle", stuck, "--failed", *SAID, "--json").json
    assert (done["reference"], done["status"], done["provider_says"]) == (stuck, "failed", "pending")
    assert live.status(stuck) == "failed"
    (entry,) = live.cli("audit-log", "list", "--about", stuck, "--json").json["entries"]
    assert (entry["action"], entry["actor"], entry["reason"]) == ("payment.settled", "Awa", "ticket 4711")
    again = live.cli("payment", "settle", stuck, "--failed", *SAID).refusal
    assert "is failed already" in again
    assert live.cli("ledger", "audit").code == 0


def test_two_people_override_a_provider(live: Live) -> None:
    wrong_amount = live.pay("9019")
    until(lambda: live.cli("incidents", "--json").json["incidents"] or live.status(wrong_amount) != "pending", 20)
    first = live.cli("payment", "settle", wrong_amount, "--succeeded", "--override", *SAID)
    assert (first.code, "second person" in first.out) == (0, True)
    assert live.status(wrong_amount) == "pending"
    second = live.cli("payment", "settle", wrong_amount, "--succeeded", "--override", "--approve", "Zoé", "--json").json
    assert (second["status"], second["approval_needed"]) == ("succeeded", False)
    assert live.cli("incidents", "--json").json["incidents"] == []
    assert live.cli("ledger", "audit").code == 0


def test_a_refund_is_ended_by_hand(live: Live) -> None:
    payment = live.pay("9109")
    until(lambda: live.status(payment) == "succeeded", 20)
    status, body = live.server.call("POST", f"/v1/payments/{payment}/refund", live.key, {})
    assert status == 201, body
    refund = body["data"]["reference"]
    # It is on its way as far as the provider says; the worker may also be asking at that moment.
    until(lambda: "is: pending" in live.cli("refund", "settle", refund, "--failed", *SAID).refusal, 40)
    override = ("refund", "settle", refund, "--failed", "--override")
    until(lambda: live.cli(*override, *SAID).code == 0, 40)
    until(lambda: live.cli(*override, "--approve", "Zoé").code == 0, 40)
    assert live.server.call("GET", "/v1/refunds", live.key)[1]["data"][0]["status"] == "failed"


def test_misuse_is_explained(sqlite_cli: Cli) -> None:
    reference = "01a202b1-10b7-453a-868b-cad7dfa87efe"
    assert "a reference is expected" in sqlite_cli("payment", "settle", "42", "--failed", *SAID).misuse
    assert "--succeeded or --failed" in sqlite_cli("payment", "settle", reference, *SAID).misuse
    assert "--by and --evidence" in sqlite_cli("payment", "settle", reference, "--failed", "--by", "Awa").misuse
    assert "belongs to --override" in sqlite_cli("refund", "settle", reference, "--failed", "--approve", "Z").misuse
    assert "printable" in sqlite_cli("payment", "settle", reference, "--failed", "--evidence", " ", "--by", "A").misuse
    assert sqlite_cli("payment", "settle", reference, "--failed", *SAID).refusal == f"There is no payment {reference}."
    assert sqlite_cli("refund", "settle", reference, "--failed", *SAID).refusal == f"There is no refund {reference}."
    assert sqlite_cli("late-money", "show", reference).refusal == f"There is no late money about {reference}."
    assert sqlite_cli("late-money", "list", "--json").json == {"late_money": []}
