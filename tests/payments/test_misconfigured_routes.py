"""A route of ours that does not work is no refusal by the customer: 500, one incident, a payment that failed."""

import asyncio
from typing import Any

import pytest

from guichet.domain.payments import Payment
from guichet.incidents import repository as incidents
from guichet.providers.base import Accepted, NotProcessed, Refused
from guichet.settings import Settings
from tests.contract.shapes import check_error, check_resource
from tests.invariants import check_books
from tests.payments.conftest import LivePayments, stored
from tests.service_fixture import open_service

ORDER = {"amount": 5000, "operator": "mtn", "phone_number": "22997001234"}
MANY = 24


async def _incidents(live: LivePayments) -> list[tuple[str, str | None]]:
    return [(each.kind, each.provider_account) for each in await incidents.still_open(live.ctx.db)]


@pytest.mark.parametrize("result", [NotProcessed("configuration", "401 no"), Refused("configuration", "404 no")])
async def test_a_refused_account_is_a_server_error_that_names_a_failed_payment(
    live: LivePayments, result: NotProcessed | Refused
) -> None:
    live.second.script("initiate", result)
    answer = await live.merchant.post("/payments", ORDER | {"operator": "moov", "external_id": "a"})
    error = check_error(answer, "server_error")
    payment = check_resource("payment", (await live.merchant.get("/payments/a")).data)
    assert (payment["reference"], payment["status"]) == (error["reference"], "failed")
    assert payment["failure"]["code"] == "operator_unavailable"
    row = await stored(live, payment)
    assert (row.failure_reason, row.next_poll_at, row.lease_expires_at) == ("configuration", None, None)
    assert await live.queued_events() == []
    [incident] = await incidents.still_open(live.ctx.db)
    assert (incident.kind, incident.provider_account) == ("misconfigured_route", "second")
    assert (incident.reference, str(incident.detail)) == (row.reference, f"moov: {result.raw}")
    # A repeat finds the payment that failed (D11), and asks nobody.
    again = await live.merchant.post("/payments", ORDER | {"operator": "moov", "external_id": "a"})
    assert (again.status, again.data) == (201, payment)
    assert len(live.second.charges) == 1
    assert (await live.balance()) == 0


@pytest.mark.both_databases
async def test_many_failures_of_many_merchants_are_one_incident(live: LivePayments) -> None:
    live.first.script("initiate", NotProcessed("configuration"))
    live.second.script("initiate", NotProcessed("configuration", "403"))
    merchants = [live.merchant, (await live.service.merchant()).live]
    answers = await asyncio.gather(*(merchants[n % 2].post("/payments", ORDER) for n in range(MANY)))
    assert {answer.status for answer in answers} == {500}
    assert len({answer.error["reference"] for answer in answers}) == MANY
    assert await _incidents(live) == [("misconfigured_route", "second")], "the last account of the route decides"


async def test_an_incident_that_was_closed_opens_again(live: LivePayments) -> None:
    live.second.script("initiate", NotProcessed("configuration"))
    for _ in range(2):
        await live.merchant.post("/payments", ORDER | {"operator": "moov"})
        [incident] = await incidents.still_open(live.ctx.db)
        assert await incidents.close(live.ctx.db, incident.id, live.ctx.clock.now())
    assert await incidents.still_open(live.ctx.db) == []


async def test_an_operator_without_a_route_is_our_fault(settings: Settings) -> None:
    async with open_service(settings) as service:
        merchant = (await service.merchant()).live
        answers = [await merchant.post("/payments", {**ORDER, "operator": code}) for code in ("mtn", "moov")]
        for answer in answers:
            error = check_error(answer, "server_error")
            payment = (await merchant.get(f"/payments/{error['reference']}")).data
            assert (payment["status"], payment["failure"]["code"]) == ("failed", "operator_unavailable")
        [incident] = await incidents.still_open(service.ctx.db)
        assert (incident.kind, str(incident.detail)) == ("misconfigured_route", "mtn: no account serves it")
        await check_books(service.ctx.db)


async def test_a_route_that_fails_over_makes_no_incident(live: LivePayments) -> None:
    live.first.script("initiate", NotProcessed("configuration"))
    assert (await live.merchant.pay())["status"] == "pending"
    assert await _incidents(live) == []


@pytest.mark.parametrize("reason", ["operator_unavailable", "currency_not_accepted", "payer_not_found"])
async def test_what_is_not_our_fault_stays_a_402_without_an_incident(live: LivePayments, reason: Any) -> None:
    live.second.script("initiate", NotProcessed(reason))
    answer = await live.merchant.post("/payments", ORDER | {"operator": "moov"})
    check_error(answer, "payment_failed")
    assert await _incidents(live) == []


async def test_an_account_that_is_refused_later_is_an_incident_too(live: LivePayments) -> None:
    live.second.script("initiate", Accepted(provider_reference="p"))
    live.second.script("status", Refused("configuration", "PAYEE_NOT_ALLOWED_TO_RECEIVE"))
    payment = await live.merchant.pay(operator="moov")
    await live.service.run_worker(5)
    row: Payment = await stored(live, payment)
    assert (row.status, row.failure_reason) == ("failed", "configuration")
    assert await live.queued_events() == ["payment.failed"]
    assert await _incidents(live) == [("misconfigured_route", "second")]
