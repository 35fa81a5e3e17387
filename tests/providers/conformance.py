"""What every provider must survive: all scenarios of the simulator, compared with the simulated provider's own books.

One run makes a payment for each scenario in one service, and advances the clock from the first second to beyond the
third day. Then, whatever the provider did:

    no customer was debited or refunded twice; a payment failed only if the provider holds no money and will take none;
    a success is a debit of exactly our amount; the merchant sees what the provider did, or an incident is open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guichet.domain.catalogue import ModeOverride
from guichet.domain.money import Hundredths
from guichet.domain.payments import request_reference
from guichet.incidents import repository as incidents
from guichet.merchants.catalogue import set_override
from guichet_simulator.app import PROVIDERS as SIMULATED
from guichet_simulator.scenarios import SCENARIOS, Scenario
from tests.invariants import check_books
from tests.providers.provider_cases import LOST_AND_NOT_TAKEN, NOT_TAKEN, OUR_FAULT, REFUSED_AT_ONCE, ProviderCase
from tests.providers.simulated_providers import SimulatedProviders

#: Seconds between turns of the clock: close together while customers wait, then over three days.
TURNS = (1, 1, 1, 2, 5, 5, 15, 30, 60, 300, 900, 2400, 7200, 6 * 3600, 12 * 3600, 24 * 3600, 36 * 3600)
_SOON = 5
#: Requests of one refund that are looked for in the provider's books.
_MOST_REQUESTS = 10

#: A wrongly stated amount or currency is never credited: the payment stays pending, with an incident.
MISSTATED = frozenset({"wrong_amount", "wrong_currency", "hidden_amount"})


@dataclass
class Case:
    """One payment in the matrix and, in the end, what each side states about it."""

    scenario: Scenario
    body: Mapping[str, Any]
    answer: Any
    reference: str = ""
    payment: Any = None
    refund: Any = None
    debits: list[dict[str, Any]] = field(default_factory=list)
    credits: list[dict[str, Any]] = field(default_factory=list)
    incidents: list[str] = field(default_factory=list)


def rows(provider_case: ProviderCase) -> list[Scenario]:
    [simulated] = [each for each in SIMULATED if each.name == provider_case.provider]
    skipped = {*simulated.not_shown, *provider_case.undecidable}
    return [each for each in SCENARIOS if each.name not in skipped]


async def no_fees(simulated: SimulatedProviders, operator: str) -> None:
    """The debit is then the amount, whose last digits the simulator reads."""
    await set_override(simulated.service.ctx.db, ModeOverride(None, operator, None, 0, Hundredths(0)))
    simulated.clock.advance(2)


async def pay_all(
    simulated: SimulatedProviders,
    provider_case: ProviderCase,
    prefix: str,
    scenarios: Sequence[Scenario],
    *,
    repeats: bool = False,
) -> list[Case]:
    """A payment for each scenario. `repeats`: the merchant asks for each a second time, as after a lost answer."""
    merchant = simulated.merchant.live
    cases = []
    for scenario in scenarios:
        body = {**provider_case.body(prefix, scenario), "external_id": f"{prefix}-{scenario.name}"}
        answer = await simulated.nudged(merchant.post("/payments", body))
        refused = answer.status != 201
        again = await simulated.nudged(merchant.post("/payments", body)) if repeats or refused else answer
        assert (again.status, again.data["external_id"]) == (201, body["external_id"])
        cases.append(Case(scenario, body, answer, again.data["reference"]))
    return cases


async def advance_to_the_end(simulated: SimulatedProviders, cases: Sequence[Case]) -> None:
    """Advances the clock from the first second to beyond the third day; the merchant reads its payments."""
    for number, seconds in enumerate(TURNS):
        await simulated.turn(seconds)
        if number == _SOON:
            for case in cases:
                await simulated.nudged(simulated.merchant.live.get(f"/payments/{case.reference}"))


async def read_results(simulated: SimulatedProviders, provider_case: ProviderCase, cases: Sequence[Case]) -> None:
    """Reads into `cases` what the merchant, the provider and the staff see in the end."""
    merchant = simulated.merchant.live
    held = await simulated.held(family=provider_case.provider)
    reported = [(each.reference, each.kind) for each in await incidents.still_open(simulated.service.ctx.db)]
    for case in cases:
        case.payment = (await merchant.get(f"/payments/{case.reference}")).data
        ours = {case.reference, provider_case.stored_as(case.reference)}
        mine = [tx for tx in held if _concerns(tx, ours, case)]
        case.debits = [tx for tx in mine if tx["kind"] == "debit"]
        parents = {tx["operator_ref"] for tx in case.debits}
        if case.refund:
            case.refund = (await merchant.get(f"/refunds/{case.refund['reference']}")).data
            ours = {request_reference(case.refund["reference"], number) for number in range(_MOST_REQUESTS)}
            case.credits = [
                tx for tx in held if tx["kind"] == "credit" and (tx["reference"] in ours or tx["parent"] in parents)
            ]
            refund_incidents = [kind for reference, kind in reported if reference == case.refund["reference"]]
        else:
            refund_incidents = []
        case.incidents = [str(kind) for reference, kind in reported if reference == case.reference] + list(
            map(str, refund_incidents)
        )


def _concerns(tx: Mapping[str, Any], ours: set[str], case: Case) -> bool:
    if tx["reference"] is not None:
        return tx["reference"] in ours
    # Coris stores no reference of ours: the customer's number identifies the payment.
    return bool(tx["phone"] == case.body["phone_number"])


def moved(transactions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [tx for tx in transactions if tx["state"] == "succeeded"]


def any_pending(transactions: Sequence[Mapping[str, Any]]) -> bool:
    return any(tx["state"] == "pending" for tx in transactions)


def faults_of_debit(provider_case: ProviderCase, case: Case) -> list[str]:
    """One sentence for each fault of a payment in the end; empty if there is none."""
    name, status = case.scenario.name, case.payment["status"]
    debited = moved(case.debits)
    faults = []
    if len(debited) > 1:
        faults.append(f"debited {len(debited)} times")
    if status == "failed" and (debited or any_pending(case.debits)):
        faults.append("failed, though the provider took or may take the money")
    if status == "succeeded" and [tx["amount"] for tx in debited] != [str(case.payment["total_amount"])]:
        faults.append(f"succeeded, but the provider debited {[tx['amount'] for tx in debited]}")
    expected = _expected(provider_case, case, debited)
    if status != expected:
        faults.append(f"is {status}, should be {expected}")
    if status == "pending" and name in MISSTATED and "mismatch" not in case.incidents:
        faults.append(f"a mismatch without an incident: {case.incidents}")
    if status == "pending" and "stuck" not in case.incidents:
        faults.append(f"pending for days without an incident: {case.incidents}")
    at_once = 500 if name in OUR_FAULT else 402 if name in NOT_TAKEN | REFUSED_AT_ONCE else None
    if at_once and case.answer.status != at_once:
        faults.append(f"answered {case.answer.status} at initiation")
    return [f"{provider_case.provider} {name}: {fault}" for fault in faults]


def _expected(provider_case: ProviderCase, case: Case, debited: Sequence[object]) -> str:
    if case.scenario.name in MISSTATED | provider_case.stays_pending or any_pending(case.debits):
        return "pending"
    return "succeeded" if debited else "failed"


def faults_of_refund(provider_case: ProviderCase, case: Case) -> list[str]:
    name, status = case.scenario.name, case.refund["status"]
    paid = moved(case.credits)
    faults = []
    if len(paid) > 1:
        faults.append(f"paid back {len(paid)} times")
    if status == "failed" and (paid or any_pending(case.credits)):
        faults.append("failed, though the provider paid or may pay")
    if status == "succeeded" and [tx["amount"] for tx in paid] != [str(case.refund["amount"])]:
        faults.append(f"succeeded, but the provider paid {[tx['amount'] for tx in paid]}")
    misstated = name in MISSTATED and provider_case.provider != "wave"  # Its refund states no amount.
    waits = misstated or name in NOT_TAKEN | LOST_AND_NOT_TAKEN or any_pending(case.credits)
    if provider_case.provider == "feexpay" and name == "not_configured":
        waits = False  # "payouts are not enabled" is an explicit refusal (docs/providers/feexpay.md, "Errors")
    expected = "pending" if waits else "succeeded" if paid else "failed"
    if status != expected:
        faults.append(f"is {status}, should be {expected}")
    shown = {"succeeded": "refunded"}.get(status, "succeeded")
    if case.payment["status"] != shown:
        faults.append(f"the payment is {case.payment['status']}, should be {shown}")
    if status == "pending" and not case.incidents:
        faults.append("pending for days without an incident")
    return [f"{provider_case.provider} refund {name}: {fault}" for fault in faults]


async def check_money(simulated: SimulatedProviders, cases: Sequence[Case]) -> None:
    """Our books balance, and the merchant's balance is what was credited less what was refunded."""
    await check_books(simulated.service.ctx.db)
    kept = sum(case.payment["amount"] for case in cases if case.payment["status"] == "succeeded")
    kept -= sum(case.payment["amount"] for case in cases if case.refund and case.refund["status"] == "pending")
    balance = (await simulated.merchant.live.get("/balance")).data
    assert balance["balance"] == kept
