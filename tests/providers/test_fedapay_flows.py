"""Whole payments and refunds through the simulated FedaPay, where it differs from the other providers
(docs/providers/fedapay.md, "Asking for its state", "Refunds")."""

from typing import Any

from guichet.incidents import repository as incidents
from guichet.settings import Settings
from tests.invariants import check_books
from tests.payments.confirming import confirmed
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.simulated_providers import SimulatedProviders, open_simulated_providers
from tests.providers.test_routes import account, pay, route, shown

FEDAPAY = PROVIDER_CASES["fedapay"].settings
MOOV = "22997129999"


async def opened_kinds(simulated: SimulatedProviders) -> list[str]:
    return [str(each.kind) for each in await incidents.still_open(simulated.service.ctx.db)]


async def test_what_was_canceled_and_approved_twelve_seconds_later_ends_paid(settings: Settings) -> None:
    async with open_simulated_providers(settings, route("moov", account("fp", "fedapay", FEDAPAY))) as simulated:
        reference = (await pay(simulated, "moov", MOOV)).data["reference"]
        [debit] = await simulated.held()
        refusal = {"decision": "refuse", "reason": "insufficient_funds"}
        await simulated.control("POST", f"/transactions/{debit['id']}/decide", json=refusal)
        await simulated.turn(6)
        assert (await shown(simulated, reference))["status"] == "pending"
        await simulated.control("POST", f"/transactions/{debit['id']}/undo")
        await simulated.turn(6)
        await simulated.turn(6)
        assert (await shown(simulated, reference))["status"] == "succeeded"
        await check_books(simulated.service.ctx.db)


async def test_money_that_comes_days_after_a_refusal_is_found(sqlite_settings: Settings) -> None:
    """Without a callback: it is asked about daily, because the refusal was not final."""
    async with open_simulated_providers(sqlite_settings, route("moov", account("fp", "fedapay", FEDAPAY))) as simulated:
        reference = (await pay(simulated, "moov", MOOV)).data["reference"]
        [debit] = await simulated.held()
        await simulated.control("POST", f"/transactions/{debit['id']}/decide", json={"decision": "refuse"})
        for _ in range(6):
            await simulated.turn(20)
        assert (await shown(simulated, reference))["status"] == "failed"
        for _ in range(4):
            await simulated.turn(12 * 3600)
        await simulated.control("POST", "/dashboard", json={"family": "fedapay", "callback_url": None})
        await simulated.control("POST", f"/transactions/{debit['id']}/undo")
        for _ in range(3):
            await simulated.turn(12 * 3600)
        assert (await shown(simulated, reference))["status"] == "failed"
        assert "paid_after_failure" in await opened_kinds(simulated)
        await check_books(simulated.service.ctx.db)


async def test_a_request_that_nobody_answers_ends_with_the_transaction(sqlite_settings: Settings) -> None:
    async with open_simulated_providers(sqlite_settings, route("moov", account("fp", "fedapay", FEDAPAY))) as simulated:
        await simulated.force("fedapay", "lost_request")
        reference = (await pay(simulated, "moov", MOOV)).data["reference"]
        for _ in range(3):
            await simulated.turn(7 * 3600)
        assert (await shown(simulated, reference))["status"] == "pending"
        for _ in range(3):
            await simulated.turn(3600)
        assert (await shown(simulated, reference))["status"] == "failed"
        assert await simulated.held() == []


async def paid_on_page(simulated: SimulatedProviders, mode: str, payer: str) -> Any:
    """The refund of a payment that `payer` made on FedaPay's page over the network `mode`."""
    answer = await pay(simulated, "moov_ci", "2250777129999")
    async with simulated.http.get(answer.data["redirect_url"], params={"mode": mode}) as page:
        assert page.status == 200
    [debit] = await simulated.held()
    decision = {"decision": "approve", "payer": payer}
    await simulated.control("POST", f"/transactions/{debit['id']}/decide", json=decision)
    for _ in range(3):
        await simulated.turn(5)
    assert (await shown(simulated, answer.data["reference"]))["status"] == "succeeded"
    refund = (await simulated.merchant.live.post(f"/payments/{answer.data['reference']}/refund")).data
    for _ in range(3):
        await simulated.turn(5)
    return (await simulated.merchant.live.get(f"/refunds/{refund['reference']}")).data


async def credits_to(simulated: SimulatedProviders) -> list[str]:
    return [tx["phone"] for tx in await simulated.held() if tx["kind"] == "credit"]


ON_PAGE = {**FEDAPAY, "page_operators": "moov_ci"}


async def test_whoever_paid_on_the_page_over_our_network_gets_the_refund(sqlite_settings: Settings) -> None:
    async with open_simulated_providers(
        sqlite_settings, route("moov_ci", account("fp", "fedapay", ON_PAGE))
    ) as simulated:
        assert (await paid_on_page(simulated, "moov_ci", "2250777120042"))["status"] == "succeeded"
        assert await credits_to(simulated) == ["2250777120042"]
        await check_books(simulated.service.ctx.db)


async def test_after_a_payment_over_another_network_a_person_says_who_paid(sqlite_settings: Settings) -> None:
    async with open_simulated_providers(
        sqlite_settings, route("moov_ci", account("fp", "fedapay", ON_PAGE))
    ) as simulated:
        refund = await paid_on_page(simulated, "wave_ci", "2250777120042")
        assert (refund["status"], await credits_to(simulated)) == ("pending", [])
        assert await opened_kinds(simulated) == ["payee_unconfirmed"]
        await confirmed(simulated.service.ctx, refund["reference"], "+2250777120043")
        for _ in range(3):
            await simulated.turn(5)
        assert await credits_to(simulated) == ["2250777120043"]


async def test_a_closed_network_goes_to_the_next_route_and_charges_once(sqlite_settings: Settings) -> None:
    feexpay = account("second", "feexpay", PROVIDER_CASES["feexpay"].settings)
    async with open_simulated_providers(
        sqlite_settings, route("moov", account("first", "fedapay", FEDAPAY), feexpay)
    ) as simulated:
        await simulated.force("fedapay", "not_configured")
        await simulated.force("feexpay", "succeeds")
        reference = (await pay(simulated, "moov", MOOV)).data["reference"]
        for _ in range(3):
            await simulated.turn(5)
        assert (await shown(simulated, reference))["status"] == "succeeded"
        assert [tx["family"] for tx in await simulated.held()] == ["feexpay"]
