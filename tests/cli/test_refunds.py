"""`guichet refund …` in a process of its own."""

from typing import Any

import pytest

from guichet.accounts import approvals
from guichet.domain.audit_log import ActRefused
from guichet.domain.ids import ApprovalId
from guichet.settings import Settings
from tests.approving import AWA, ZOE, approver, join_staff
from tests.cli.conftest import Cli
from tests.fakes.clock import clock_of_the_machine
from tests.fakes.scripted_provider import ScriptedProvider, done
from tests.payments.conftest import LivePayments
from tests.payments.test_payee import PAYER, STRANGER, on_a_page, paid_by
from tests.payments.test_refunds import refund_of
from tests.service_fixture import open_service

WHY = ("--evidence", "ticket 4411", "--by", AWA)


async def test_a_person_confirms_who_gets_a_refund(settings: Settings, cli: Cli) -> None:
    provider = ScriptedProvider()
    provider.own_refunds = False
    provider.script("initiate", on_a_page)
    provider.script("status", paid_by(None))
    provider.script("refund", done)
    connections: dict[str, Any] = {"accounts": {"first": provider}, "routes": {"mtn": ["first"]}}
    async with open_service(settings, clock_of_the_machine(), **connections) as service:
        live = LivePayments(service, (await service.merchant()).live, provider, provider)
        payment = await live.merchant.pay()
        await service.run_worker(5)
        refund = (await refund_of(live, payment))["reference"]
        await service.run_worker()
        for email in (AWA, ZOE):
            await join_staff(service.ctx, email)
    [incident] = cli("incidents", "--json").json["incidents"]
    assert (incident["kind"], incident["reference"]) == ("payee_unconfirmed", refund)

    confirm = ("refund", "confirm-payee", refund)
    assert cli(*confirm, "--phone", "0166000002", *WHY).refusal.endswith("such as 2290197001234.")
    assert cli(*confirm, "--phone", PAYER, "--evidence", " ", "--by", "Awa").misuse.count("printable characters")
    nobody = "00000000-0000-4000-8000-000000000000"
    assert cli("refund", "confirm-payee", nobody, "--phone", PAYER, *WHY).refusal == f"There is no refund {nobody}."
    assert "a reference is expected" in cli("refund", "confirm-payee", "r-1", "--phone", PAYER, *WHY).misuse
    asked = cli(*confirm, "--phone", f"+{PAYER}", *WHY, "--json").json
    assert asked["act"] == "refund.confirm_payee"
    assert len(cli("incidents", "--json").json["incidents"]) == 1, "nothing is done yet"

    async with open_service(settings, clock_of_the_machine(), **connections) as service:
        await approvals.approve(service.ctx, ApprovalId(asked["approval"]), await approver(service.ctx), "seen")
        assert cli("incidents", "--json").json["incidents"] == []
        await service.run_worker(1)
        assert [request.payee_number for request in provider.refund_requests] == [PAYER]
        late = cli(*confirm, "--phone", STRANGER, *WHY, "--json").json
        with pytest.raises(ActRefused, match="already sent to a provider"):
            await approvals.approve(service.ctx, ApprovalId(late["approval"]), await approver(service.ctx), "seen")
