"""`test_scenario` of POST /payments, over HTTP on both databases (docs/contract.md, "The test environment")."""

import re

import pytest
from sqlalchemy import bindparam, select

from guichet.clock import DAY, MINUTE, SECOND
from guichet.db.engine import require
from guichet.db.tables import refunds
from guichet.domain.failures import REFUSAL_REASONS
from guichet.domain.sandbox_scenarios import SAMPLE_LINK, sample_link
from guichet.incidents import repository as incidents
from guichet.payments import repository as payments
from guichet.providers.sandbox.provider import EXPIRES_AFTER
from guichet.server import health_checks
from tests.contract.shapes import check_error, order, refused_fields
from tests.contract.tables import Row, column, table
from tests.service_fixture import MerchantClient, ServiceFixture

ROWS = table("sandbox-scenarios")
BY_SCENARIO = [row["Scenario"] for row in ROWS if row["By"] == "scenario"]
MICROSECOND = 1e-6
_POLLS = select(refunds.c.poll_count).where(refunds.c.reference == bindparam("reference"))


async def _stored(merchant: MerchantClient, external_id: str = "a") -> str:
    """The status as it is stored: a list polls no provider."""
    [payment] = (await merchant.get(f"/payments?external_id={external_id}")).data
    status: str = payment["status"]
    return status


async def _paid(merchant: MerchantClient, scenario: str) -> None:
    await merchant.pay("0000", external_id="a", test_scenario=scenario)
    assert (await merchant.get("/payments/a")).data["status"] == "succeeded"


@pytest.mark.parametrize("row", ROWS, ids=column("sandbox-scenarios", "Scenario"))
async def test_a_scenario_begins_as_documented(service: ServiceFixture, row: Row) -> None:
    merchant = await service.merchant()
    wanted = order(phone_number="22997000000", external_id="a", test_scenario=row["Scenario"])
    answer = await merchant.post("/payments", wanted)
    assert answer.status == int(row["HTTP"]), answer.raw
    assert await _stored(merchant) == row["At creation"]
    await service.run_worker()
    decided_by_its_number = await _stored(merchant) == "succeeded"
    assert decided_by_its_number is (row["By"] == "number")


@pytest.mark.parametrize("scenario", column("sandbox-scenarios", "Scenario"))
async def test_a_live_key_is_refused(shared_service: ServiceFixture, scenario: str) -> None:
    merchant = await shared_service.merchant()
    body = order(test_scenario=scenario)
    assert refused_fields(await merchant.live.post("/payments", body)) == {"test_scenario"}
    both = await merchant.live.post("/payments", body | {"amount": 0})
    assert refused_fields(both) == {"amount", "test_scenario"}
    assert (await merchant.live.get("/payments")).data == []


async def test_an_unknown_scenario_is_refused_and_the_known_ones_are_named(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    answer = await merchant.post("/payments", order(test_scenario="nothing"))
    assert refused_fields(answer) == {"test_scenario"}
    [sentence] = answer.error["details"]["test_scenario"]
    assert re.findall(r"'(\w+)'", sentence) == column("sandbox-scenarios", "Scenario")


@pytest.mark.parametrize("scenario", column("sandbox-scenarios", "Scenario"))
async def test_a_card_has_the_scenarios_that_leave_its_page_alone(
    shared_service: ServiceFixture, scenario: str
) -> None:
    merchant = await shared_service.merchant()
    answer = await merchant.post("/payments", order("VISA", test_scenario=scenario))
    if scenario in BY_SCENARIO:
        assert refused_fields(answer) == {"test_scenario"}
    else:
        assert (answer.status, answer.data["status"]) == (201, "pending")


async def test_a_repeated_request_keeps_the_first_scenario(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    first = await merchant.pay("0000", external_id="a")
    assert (await merchant.pay("0000", external_id="a", test_scenario="amount_mismatch")) == first
    assert (await merchant.get("/payments/a")).data["status"] == "succeeded"


@pytest.mark.parametrize("asked", [True, False])
async def test_a_refund_fails_as_in_live(service: ServiceFixture, *, asked: bool) -> None:
    merchant = await service.merchant()
    await _paid(merchant, "refund_failed")
    refund = (await merchant.post("/payments/a/refund")).data
    assert (refund["status"], refund["processed_at"]) == ("pending", None)
    assert (await merchant.get("/balance")).data["balance"] == 0
    if asked:
        final = (await merchant.get(f"/refunds/{refund['reference']}")).data
    else:
        await service.run_worker(5)
        [final] = (await merchant.get("/refunds")).data
    assert final["status"] == "failed"
    assert await _stored(merchant) == "succeeded"
    assert (await merchant.get("/balance")).data["balance"] == 5000


@pytest.mark.both_databases
async def test_a_refund_stays_pending_and_the_worker_gives_up_asking(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await _paid(merchant, "refund_pending")
    refund = (await merchant.post("/payments/a/refund")).data
    assert refund["status"] == "pending"
    for _ in range(4):
        await service.run_worker(DAY / SECOND)
    assert (await merchant.get(f"/refunds/{refund['reference']}")).data["status"] == "pending"
    (polls,) = await service.ctx.db.one(_POLLS, reference=refund["reference"])
    assert polls == 3, "by the request, by the worker, by the read: the worker asked once in four days"


@pytest.mark.parametrize(("choice", "status"), [("succeeded", "succeeded"), ("failed", "failed")])
async def test_a_redirecting_operator(service: ServiceFixture, choice: str, status: str) -> None:
    merchant = await service.merchant()
    wanted = order(external_id="a", return_url="https://shop.example/back", test_scenario="redirect")
    payment = (await merchant.post("/payments", wanted)).data
    assert payment["payment_url"] is None
    assert (await merchant.post("/payments", wanted)).data["redirect_url"] == payment["redirect_url"]
    await service.run_worker(365 * DAY / SECOND)
    assert (await merchant.get("/payments/a")).data["status"] == "pending"
    path = payment["redirect_url"].removeprefix(service.ctx.settings.public_url)
    shown = await service.call("GET", path)
    assert shown.status == 200
    assert "MTN MoMo" in shown.raw.decode()
    assert "carte" not in shown.raw.decode()
    chosen = await service.call(
        "POST",
        path,
        f"outcome={choice}".encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded", "Origin": service.base_url},
    )
    assert chosen.headers["Location"] == (f"https://shop.example/back?reference={payment['reference']}&status={status}")
    assert (await merchant.get("/payments/a")).data["status"] == status
    assert "redirect_url" not in (await merchant.post("/payments", wanted)).data


async def test_a_wrong_code_is_answered_as_in_live(shared_service: ServiceFixture) -> None:
    merchant = await shared_service.merchant()
    wanted = order("coris", external_id="a", test_scenario="wrong_otp")
    error = check_error(await merchant.post("/payments", wanted), "payment_failed")
    assert error["message"] == REFUSAL_REASONS["bad_otp"].message
    assert await _stored(merchant) == "failed"


async def test_a_payment_that_seems_to_come_from_a_link(service: ServiceFixture) -> None:
    merchant, ctx = await service.merchant(), service.ctx
    plain, linked = await merchant.pay("0000"), await merchant.pay("0000", test_scenario="payment_link")
    await service.run_worker()
    found = [require(await payments.find(ctx.db, each["reference"])) for each in (plain, linked)]
    assert [sample_link(each) for each in found] == [None, SAMPLE_LINK]
    assert [each.link_id for each in found] == [None, None], "no link exists, so none is used up"


async def test_a_payment_expires(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.pay("0000", external_id="a", test_scenario="expired")
    await service.run_worker(EXPIRES_AFTER / SECOND - MICROSECOND)
    assert (await merchant.get("/payments/a")).data["status"] == "pending"
    await service.run_worker(MICROSECOND)
    assert await _stored(merchant) == "failed"
    assert EXPIRES_AFTER == 15 * MINUTE


async def test_a_mismatch_is_an_incident_and_credits_nothing(service: ServiceFixture) -> None:
    merchant = await service.merchant()
    await merchant.pay("0000", external_id="a", test_scenario="amount_mismatch")
    assert (await merchant.get("/payments/a")).data["status"] == "pending"
    for _ in range(10):
        await service.run_worker(DAY / SECOND)
    assert await _stored(merchant) == "pending"
    assert (await merchant.get("/balance")).data["balance"] == 0
    [incident] = await incidents.still_open(service.ctx.db)
    assert (incident.kind, incident.env, incident.occurrences) == ("mismatch", "test", 3)
    assert str(incident.detail) == "asked 5088 XOF, the provider states 5089 XOF"


async def test_incidents_of_the_test_environment_are_listed_last_and_alert_nobody(service: ServiceFixture) -> None:
    merchant, ctx = await service.merchant(), service.ctx
    await merchant.pay(external_id="a", test_scenario="amount_mismatch")
    await merchant.get("/payments/a")
    assert await health_checks.open_incidents(ctx.db) == []
    await merchant.report_mismatch("00000000-0000-4000-8000-000000000001")
    assert [each.env for each in await incidents.still_open(ctx.db)] == ["live", "test"]
    [(kind, count, _)] = await health_checks.open_incidents(ctx.db)
    assert (kind, count) == ("mismatch", 1)
