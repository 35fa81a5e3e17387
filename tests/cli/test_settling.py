"""`guichet payment settle`, `guichet refund settle` and `guichet late-money`, against the simulated providers."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from guichet.accounts import approvals
from guichet.bootstrap import service
from guichet.domain.audit_log import ActRefused
from guichet.domain.ids import ApprovalId
from guichet.provider_accounts import live_providers
from guichet.settings import load
from tests.approving import AWA, ZOE, approver, join_staff
from tests.cli.conftest import Cli, RunningCommand, until
from tests.ports import free_port

SAID = ("--evidence", "ticket 4711", "--by", AWA)


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

    def ask(self, *command: str) -> None:
        asked = self.cli(*command, *SAID)
        assert "waits until" in asked.out, asked

    def approve(self, request: int) -> None:
        """As another person. Raises ActRefused; somebody else may be asking the provider at that moment."""

        async def work() -> None:
            settings = load(self.cli.environ)
            providers = live_providers(settings)
            async with service(settings, providers=providers) as opened:
                await approvals.approve(opened.ctx, ApprovalId(request), await approver(opened.ctx), "seen")

        for attempt in range(40):
            try:
                asyncio.run(work())
            except ActRefused as refused:
                if "try again" not in str(refused) or attempt == 39:
                    raise
                time.sleep(0.5)
            else:
                return

    def refuse(self, request: int) -> None:
        async def work() -> None:
            async with service(load(self.cli.environ)) as opened:
                await approvals.refuse(opened.ctx, ApprovalId(request), await approver(opened.ctx), "no")

        asyncio.run(work())

    def status(self, reference: str) -> Any:
        return self.server.call("GET", f"/v1/payments/{reference}", self.key)[1]["data"]["status"]


@pytest.fixture
def live(cli: Cli, port: int) -> Iterator[Live]:
    here = cli.having(GUICHET_PUBLIC_URL=f"http://127.0.0.1:{port}")
    key = here("merchant", "create", "Awa", "--json").json["keys"]["live"]
    with here.start("serve", "--port", port) as process:
        server = RunningCommand(process, f"http://127.0.0.1:{port}")
        try:
            until(lambda: _answers(server))
            asyncio.run(_join(here))
            yield Live(here, server, key)
        finally:
            process.kill()


async def _join(cli: Cli) -> None:
    async with service(load(cli.environ)) as opened:
        for email in (AWA, ZOE):
            await join_staff(opened.ctx, email)


def _answers(server: RunningCommand) -> bool:
    try:
        return server.call("GET", "/readyz", "")[0] == 200
    except OSError:
        return False


def test_a_stuck_payment_is_ended_and_the_log_says_by_whom(live: Live) -> None:
    stuck = live.pay("9009")
    live.ask("payment", "settle", stuck, "--succeeded")
    with pytest.raises(ActRefused, match="is: pending"):
        live.approve(1)
    assert live.status(stuck) == "pending"
    live.refuse(1)
    live.ask("payment", "settle", stuck, "--failed")
    assert live.status(stuck) == "pending"
    live.approve(2)
    assert live.status(stuck) == "failed"
    entries = live.cli("audit-log", "list", "--about", stuck, "--json").json["entries"]
    [entry] = [each for each in entries if each["action"] == "payment.settled"]
    assert (entry["actor"], entry["reason"], entry["after"]["provider_says"]) == (AWA, "ticket 4711", "pending")
    assert "is failed already" in live.cli("payment", "settle", stuck, "--failed", *SAID).refusal
    assert live.cli("ledger", "audit").code == 0


def test_two_people_override_a_provider(live: Live) -> None:
    wrong_amount = live.pay("9019")
    until(lambda: live.cli("incidents", "--json").json["incidents"] or live.status(wrong_amount) != "pending")
    live.ask("payment", "settle", wrong_amount, "--succeeded", "--override")
    assert live.status(wrong_amount) == "pending"
    live.approve(1)
    assert live.status(wrong_amount) == "succeeded"
    assert live.cli("incidents", "--json").json["incidents"] == []
    assert live.cli("ledger", "audit").code == 0


def test_a_refund_is_ended_by_hand(live: Live) -> None:
    payment = live.pay("9109")
    until(lambda: live.status(payment) == "succeeded")
    status, body = live.server.call("POST", f"/v1/payments/{payment}/refund", live.key, {})
    assert status == 201, body
    refund = body["data"]["reference"]
    live.ask("refund", "settle", refund, "--failed", "--override")
    live.approve(1)
    assert live.server.call("GET", "/v1/refunds", live.key)[1]["data"][0]["status"] == "failed"


def test_misuse_is_explained(sqlite_cli: Cli) -> None:
    reference = "01a202b1-10b7-453a-868b-cad7dfa87efe"
    assert "a reference is expected" in sqlite_cli("payment", "settle", "42", "--failed", *SAID).misuse
    assert "--succeeded or --failed" in sqlite_cli("payment", "settle", reference, *SAID).misuse
    assert "--evidence" in sqlite_cli("payment", "settle", reference, "--failed", "--by", "Awa").misuse
    assert "printable" in sqlite_cli("payment", "settle", reference, "--failed", "--evidence", " ", "--by", "A").misuse
    assert sqlite_cli("late-money", "show", reference).refusal == f"There is no late money about {reference}."
    assert sqlite_cli("late-money", "list", "--json").json == {"late_money": []}
