"""A provider that debits a customer after it refused: found by its callback and given back (simulated providers)."""

from collections import Counter

import pytest

from guichet.back_office import manual_settlement
from guichet.db.engine import require
from guichet.domain.audit_log import Actor, ActRefused
from guichet.domain.late_results import LateResult
from guichet.domain.payments import Payment
from guichet.incidents import repository as incidents
from guichet.late_money import decisions as late_decisions
from guichet.late_money import repository as store
from guichet.ledger.audit import audit
from guichet.payments import repository
from guichet.refunds import repository as refund_repository
from guichet.settings import Settings
from tests.providers.provider_cases import PROVIDER_CASES, ProviderCase
from tests.providers.simulated_providers import SimulatedProviders, open_simulated_providers
from tests.providers.test_routes import MTN, PAWAPAY, account, pay, route, shown

AWA = Actor("Awa", "awa")
HOUR, DAY = 3600, 86_400


@pytest.mark.both_databases
@pytest.mark.parametrize(("provider", "settings_of_account"), [("mtn", MTN), ("pawapay", PAWAPAY)])
async def test_money_that_comes_late_goes_back_to_the_payer(
    settings: Settings, provider: str, settings_of_account: dict[str, str]
) -> None:
    async with open_simulated_providers(settings, route("mtn", account("one", provider, settings_of_account))) as run:
        ctx = run.service.ctx
        await run.force(provider, "declined")
        reference = (await pay(run, "mtn", "22997001234")).data["reference"]
        await run.turn(5)
        await run.turn(5)
        assert (await shown(run, reference))["status"] == "failed"
        [debit] = await run.held(kind="debit")
        await run.control("POST", f"/transactions/{debit['id']}/undo")
        await run.turn(6)
        await run.turn(6)
        assert [each.kind for each in await incidents.still_open(ctx.db)] == ["paid_after_failure"]

        payment = require(await repository.find(ctx.db, reference))
        found = require(await store.about(ctx.db, payment))
        await run.force(provider, "succeeds", "credit")
        returning = await late_decisions.resolve(ctx, found, "payer", AWA, "the order was cancelled")
        for _ in range(4):
            await run.turn(10)
        assert require(await store.about(ctx.db, payment)).stage == "returned"
        books = (await run.control("GET", "/transactions"))["books"]
        assert Counter({each["reference"]: each["debits"] - each["credits"] for each in books}) == Counter(
            {reference: 1, returning.return_reference: -1}
        )
        assert (await shown(run, reference))["status"] == "failed", "what was told stays"
        assert await incidents.still_open(ctx.db) == []
        assert (await audit(ctx.db, ctx.clock, lambda text: None)).fault is None


REFUNDING = [name for name, case in PROVIDER_CASES.items() if case.refunds]


async def lost_return(run: SimulatedProviders, case: ProviderCase, scenario: str) -> tuple[Payment, LateResult]:
    """A debit that succeeded after its failure was told, and whose return met `scenario`."""
    ctx = run.service.ctx
    await run.force(case.provider, "declined")
    body = {"amount": 10_000, "operator": case.operator, "phone_number": f"{case.dial}771230000", **case.order}
    answer = await run.nudged(run.merchant.live.post("/payments", body))
    # Where the customer's code comes with the request, the refusal is its answer.
    reference = answer.body["error"]["reference"] if answer.status == 402 else answer.data["reference"]
    for _ in range(4):
        await run.turn(5)
    if (await shown(run, reference))["status"] == "pending":  # Its page lets the customer try again until it expires.
        await run.turn(DAY)
        await run.turn(HOUR)
    assert (await shown(run, reference))["status"] == "failed"
    [debit] = await run.held(kind="debit")
    await run.control("POST", f"/transactions/{debit['id']}/undo")
    await run.turn(HOUR)
    await run.turn(DAY)
    payment = require(await repository.find(ctx.db, reference))
    found = require(await store.about(ctx.db, payment))
    assert found.stage == "found"
    await run.force(case.provider, scenario, "credit")
    returning = await late_decisions.resolve(ctx, found, "payer", AWA, "the order was cancelled")
    await run.nudged(run.service.worker.run_until_idle())
    return payment, returning


async def decided(run: SimulatedProviders, late: LateResult, decision: late_decisions.Decision) -> bool:
    try:
        await run.nudged(late_decisions.resolve(run.service.ctx, late, decision, AWA, "a call"))
    except ActRefused:
        return False
    return True


@pytest.mark.parametrize(
    ("provider_name", "scenario"),
    [*((name, "lost_answer") for name in REFUNDING), ("mtn", "error_500"), ("paydunya", "unreadable")],
)
async def test_a_return_whose_answer_was_lost_is_never_sent_twice(
    sqlite_settings: Settings, provider_name: str, scenario: str
) -> None:
    """A person gives it up and sends another one: the provider is asked before, and what it cannot say takes a day."""
    case = PROVIDER_CASES[provider_name]
    async with open_simulated_providers(sqlite_settings, case.setup) as run:
        payment, returning = await lost_return(run, case, scenario)
        given_up = await decided(run, returning, "not-returned")
        again = require(await store.about(run.service.ctx.db, payment))
        assert not await decided(run, again, "payer"), "within a day nothing else leaves on a guess"
        assert given_up == (again.stage == "found")
        for seconds in (5, 60, HOUR, HOUR):
            await run.turn(seconds)
        assert len([each for each in await run.held(kind="credit") if each["state"] == "succeeded"]) == 1
        late = require(await store.about(run.service.ctx.db, payment))
        assert late.stage == "returned", "every one of them can be asked about a return"
        assert (await audit(run.service.ctx.db, run.service.ctx.clock, lambda text: None)).fault is None


POLLED = [name for name, case in PROVIDER_CASES.items() if case.polls]


@pytest.mark.parametrize("provider_name", POLLED)
async def test_a_success_on_the_third_day_is_found_without_a_callback(
    sqlite_settings: Settings, provider_name: str
) -> None:
    """Two people failed a payment that the provider has never ended; then it takes the money, and says nothing."""
    case = PROVIDER_CASES[provider_name]
    async with open_simulated_providers(sqlite_settings, case.setup) as run:
        ctx = run.service.ctx
        await run.force(provider_name, "never_final")
        body = {"amount": 10_000, "operator": case.operator, "phone_number": f"{case.dial}771230000", **case.order}
        answer = await run.nudged(run.merchant.live.post("/payments", body))
        await run.turn(10)
        payment = require(await repository.find(ctx.db, answer.data["reference"]))
        decision = manual_settlement.Decision(succeeded=False, evidence="the support says so", actor=AWA)
        run.clock.advance(10)
        await run.nudged(manual_settlement.settle_by_hand(ctx, payment, decision))
        for seconds in (HOUR, DAY, DAY, DAY / 2):
            await run.turn(seconds)
        [debit] = await run.held(kind="debit")
        await run.control("POST", f"/transactions/{debit['id']}/decide", json={"decision": "approve", "silent": True})
        assert await _about_payments(run) == []
        await run.turn(DAY)
        assert await _about_payments(run) == ["paid_after_failure"]
        assert (await shown(run, payment.reference))["status"] == "failed"
        assert (await audit(ctx.db, ctx.clock, lambda text: None)).fault is None


async def _about_payments(run: SimulatedProviders) -> list[str]:
    """Kinds of open incidents. Nobody recorded the balances with which the simulated accounts begin, which differ."""
    found = await incidents.still_open(run.service.ctx.db)
    return [each.kind for each in found if each.kind != "float_differs"]


#: A payout there takes two calls, of which only the second moves money.
ANNOUNCING = ("paydunya", "fedapay")


@pytest.mark.parametrize("provider_name", REFUNDING)
async def test_a_refund_that_was_failed_by_hand_can_be_asked_about(
    sqlite_settings: Settings, provider_name: str
) -> None:
    """Also where a refund has no state to ask for: nothing is sent again for the question."""
    case = PROVIDER_CASES[provider_name]
    async with open_simulated_providers(sqlite_settings, case.setup) as run:
        ctx = run.service.ctx
        await run.force(provider_name, "succeeds")
        body = {"amount": 10_000, "operator": case.operator, "phone_number": f"{case.dial}771230000", **case.order}
        answer = await run.nudged(run.merchant.live.post("/payments", body))
        for _ in range(3):
            await run.turn(5)
        reference = answer.data["reference"]
        await run.force(provider_name, "lost_request", "credit", times=None)
        answer = await run.merchant.live.post(f"/payments/{reference}/refund")
        assert answer.status == 201, answer.raw
        await run.nudged(run.service.worker.run_until_idle())
        refund = require(await refund_repository.find(ctx.db, answer.data["reference"]))
        run.clock.advance(10)
        # Of a payout that is announced and not submitted, the provider says that it is pending.
        decision = manual_settlement.Decision(
            succeeded=False, evidence="the support says so", actor=AWA, override=provider_name in ANNOUNCING
        )
        await run.nudged(manual_settlement.settle_by_hand(ctx, refund, decision))
        await run.control("DELETE", "/next")
        for seconds in (HOUR, DAY, DAY):
            await run.turn(seconds)
        late = require(await store.about(ctx.db, refund))
        assert (late.stage, late.refused_by_provider) == ("asking", False)
        assert await run.held(kind="credit") == [], "a question is no request"
        assert (await audit(ctx.db, ctx.clock, lambda text: None)).fault is None
