"""Who gets a refund: the number that paid, as the provider states it, or as a person confirms it."""

from collections.abc import Callable
from typing import Any

import pytest

from guichet.db.engine import require
from guichet.domain.audit_log import Actor, ActRefused
from guichet.domain.payments import Refund
from guichet.incidents import repository as incidents
from guichet.providers.base import Accepted, Charge, FloatEmpty, RefundRequest, Succeeded
from guichet.refunds import payee
from guichet.refunds import pending as pending_refunds
from guichet.refunds import repository as refunds
from guichet.settings import Settings
from tests.fakes.scripted_provider import ScriptedProvider, done, refused, taken
from tests.invariants import check_books
from tests.payments.conftest import LivePayments, stored
from tests.payments.test_refunds import refund_of
from tests.service_fixture import open_service

ASKED = "22997001234"
STRANGER = "2290155000001"
PAYER = "2290166000002"


def on_a_page(charge: Charge) -> Accepted:
    return Accepted(f"op-{charge.payment.reference[:8]}", "https://provider.example/pay/1")


def paid_by(number: str | None) -> Callable[[Charge], Succeeded]:
    return lambda charge: Succeeded(charge.amount, charge.payment.currency, "tx", payer_number=number)


async def paid(live: LivePayments, payer: str | None, *, page: bool) -> Any:
    live.first.script("initiate", on_a_page if page else taken)
    live.first.script("status", paid_by(payer))
    payment = await live.merchant.pay()
    await live.service.run_worker(5)
    assert await live.state(payment["reference"]) == "succeeded"
    return payment


async def row(live: LivePayments, refund: Any) -> Refund:
    return require(await refunds.by_reference(live.ctx.db, live.merchant.id, "live", refund["reference"]))


async def open_incidents(live: LivePayments) -> list[tuple[str, str]]:
    return [(incident.kind, incident.reference) for incident in await incidents.still_open(live.ctx.db)]


async def confirm(live: LivePayments, refund: Any, number: str = PAYER) -> Refund:
    return await payee.confirm(live.ctx, await row(live, refund), number, Actor("Awa Diop", "awa"), "ticket 4411")


async def waiting_refund(live: LivePayments) -> Any:
    """A refund of a payment that somebody made on the provider's page, which has no refunds of its own."""
    live.first.own_refunds = False
    refund = await refund_of(live, await paid(live, None, page=True))
    await live.service.run_worker()
    return refund


@pytest.mark.parametrize("page", [True, False])
async def test_a_payout_goes_to_the_number_that_the_provider_states(live: LivePayments, page: bool) -> None:
    """Before, it went to the number in the merchant's request, whoever paid."""
    live.first.own_refunds = False
    live.first.script("refund", done)
    refund = await refund_of(live, await paid(live, PAYER, page=page))
    await live.service.run_worker()
    [request] = live.first.refund_requests
    assert request.payee_number == PAYER
    assert ((await row(live, refund)).status, (await row(live, refund)).payee_number) == ("succeeded", PAYER)


async def test_without_a_page_the_number_that_was_debited_is_the_payer(live: LivePayments) -> None:
    live.first.own_refunds = False
    live.first.script("refund", done)
    refund = await refund_of(live, await paid(live, None, page=False))
    await live.service.run_worker()
    assert [request.payee_number for request in live.first.refund_requests] == [ASKED]
    assert (await row(live, refund)).status == "succeeded"


async def test_the_providers_own_refund_needs_no_number(live: LivePayments) -> None:
    live.first.script("refund", done)
    refund = await refund_of(live, await paid(live, None, page=True))
    await live.service.run_worker()
    assert [request.payee_number for request in live.first.refund_requests] == [None]
    assert ((await row(live, refund)).status, await open_incidents(live)) == ("succeeded", [])


async def test_an_empty_float_does_not_make_it_a_payout_to_an_unknown_number(live: LivePayments) -> None:
    live.first.script("refund", FloatEmpty(), FloatEmpty(), done)
    refund = await refund_of(live, await paid(live, None, page=True))
    await live.service.run_worker()
    await live.service.run_worker(60)
    await live.service.run_worker(60)
    assert (await row(live, refund)).status == "succeeded"
    assert live.second.references_of("refund") == []


async def test_a_refund_without_a_known_payee_waits_for_a_person(live: LivePayments) -> None:
    refund = await waiting_refund(live)
    live.first.script("refund", done)
    for _ in range(3):
        await live.service.run_worker(3600)
    assert [*live.first.references_of("refund"), *live.second.references_of("refund")] == []
    assert (await live.merchant.get(f"/refunds/{refund['reference']}")).data["status"] == "pending"
    assert await live.balance() == 0, "the hold stays: the customer is still to be paid"
    assert await open_incidents(live) == [("payee_unconfirmed", refund["reference"])]

    await confirm(live, refund)
    assert await open_incidents(live) == []
    await live.service.run_worker()
    assert [request.payee_number for request in live.first.refund_requests] == [PAYER]
    assert ((await row(live, refund)).status, await live.state(refund["payment_reference"])) == (
        "succeeded",
        "refunded",
    )
    assert await live.queued_events() == ["payment.succeeded", "refund.succeeded", "payment.refunded"]


async def test_a_waiting_refund_is_looked_at_once_an_hour(live: LivePayments) -> None:
    refund = await waiting_refund(live)
    before = await row(live, refund)
    await live.service.run_worker(3599)
    assert await row(live, refund) == before
    live.first.own_refunds = True
    live.first.script("refund", done)
    await live.service.run_worker(1)
    assert (await row(live, refund)).status == "succeeded", "meanwhile the provider can refund by itself"
    assert await open_incidents(live) == []


async def test_a_confirmed_payee_survives_a_restart_and_is_asked_about_by_that_number(settings: Settings) -> None:
    provider = ScriptedProvider()
    provider.own_refunds = False
    provider.script("initiate", on_a_page)
    provider.script("status", paid_by(None))
    connections: dict[str, Any] = {"accounts": {"first": provider}, "routes": {"mtn": ["first"]}}
    async with open_service(settings, **connections) as service:
        live = LivePayments(service, (await service.merchant()).live, provider, provider)
        payment = await live.merchant.pay()
        await service.run_worker(5)
        refund = await refund_of(live, payment)
        await service.run_worker()
    async with open_service(settings, service.clock, **connections) as service:
        live = LivePayments(service, live.merchant, provider, provider)
        await service.run_worker(60)
        assert provider.references_of("refund") == []
        await confirm(live, refund)
    provider.script("refund", taken)
    asked: list[RefundRequest] = []

    def paid_out(request: RefundRequest) -> Succeeded:
        asked.append(request)
        return done(request)

    provider.script("refund_status", paid_out)
    async with open_service(settings, service.clock, **connections) as service:
        await service.run_worker()
        await service.run_worker(60)
        await check_books(service.ctx.db)
    assert [request.payee_number for request in (*provider.refund_requests, *asked)] == [PAYER, PAYER]


@pytest.mark.both_databases
async def test_a_confirmation_while_the_refund_is_looked_at_is_not_overlooked(live: LivePayments) -> None:
    """The worker has read the refund as unconfirmed; the person's answer is stored before the worker lets it wait."""
    refund = await waiting_refund(live)
    confirmed = await confirm(live, refund)
    async with live.ctx.db.transaction() as tx:
        assert not await pending_refunds.wait_for_payee(tx, confirmed.id, live.ctx.clock.now() + 3_600_000_000)
    live.first.script("refund", done)
    await live.service.run_worker()
    assert (await row(live, refund)).status == "succeeded"


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        ("0197001234", "with its country code"),
        ("22901970*1234", "with its country code"),
        ("Awa", "with its country code"),
        ("2250701020304", "begins with 229"),
    ],
)
async def test_a_number_that_cannot_be_the_payers_is_refused(live: LivePayments, number: str, sentence: str) -> None:
    refund = await waiting_refund(live)
    with pytest.raises(ActRefused, match=sentence):
        await confirm(live, refund, number)
    assert (await row(live, refund)).payee_number is None
    assert await open_incidents(live) == [("payee_unconfirmed", refund["reference"])]


async def test_nobody_can_redirect_a_refund_whose_payer_is_known(live: LivePayments) -> None:
    live.first.own_refunds = False
    live.first.script("refund", FloatEmpty())
    live.second.script("refund", FloatEmpty())
    refund = await refund_of(live, await paid(live, PAYER, page=True))
    await live.service.run_worker()
    with pytest.raises(ActRefused, match="is known"):
        await confirm(live, refund, STRANGER)
    assert (await row(live, refund)).payee_number == PAYER


async def test_a_number_cannot_be_changed_once_the_refund_was_sent(live: LivePayments) -> None:
    refund = await waiting_refund(live)
    live.first.script("refund", taken)
    await confirm(live, refund, STRANGER)
    await confirm(live, refund, PAYER)  # A mistake can be corrected until then.
    await live.service.run_worker()
    with pytest.raises(ActRefused, match="already sent"):
        await confirm(live, refund, STRANGER)
    live.first.script("refund_status", refused)
    await live.service.run_worker(60)
    with pytest.raises(ActRefused, match="or is final"):
        await confirm(live, refund, STRANGER)
    assert [request.payee_number for request in live.first.refund_requests] == [PAYER]


async def test_a_provider_that_states_no_number_keeps_none(live: LivePayments) -> None:
    payment = await paid(live, None, page=True)
    assert (await stored(live, payment)).payer_number is None
