"""Staff change the credentials of an account while the answer to a debit or a refund is lost: nothing is sent twice,
and nothing is concluded from an account that never heard of it (docs/decisions.md, "Account fingerprint").
"""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from guichet.domain.approvals import ActRequest
from guichet.incidents import repository as incidents
from guichet.settings import Settings
from tests.approving import ask_and_approve
from tests.invariants import check_books
from tests.providers.conformance import TURNS, no_fees
from tests.providers.provider_cases import PROVIDER_CASES, ProviderCase
from tests.providers.simulated_providers import Setup, SimulatedProviders, open_simulation

#: What staff change, where it leads to an account that took nothing of ours.
CHANGES: Mapping[str, Mapping[str, str]] = {
    "mtn": {"disbursement_api_user": "other-user"},
    "wave": {"api_key": "wave_sn_prod_other"},
    "pawapay": {"token": "other"},
    "feexpay": {"shop": "othershop01"},
    "sonatel": {"retailer_msisdn": "772220000"},
    "stripe": {"secret_key": "sk_live_other"},
    "fedapay": {"secret_key": "sk_live_other"},
    "paydunya": {"token": "other"},
}
#: Accounts that no setting names. Of these, the keys of Wave and PayDunya tell nobody whose they are.
KEYS = ("wave", "pawapay", "stripe", "paydunya", "fedapay")
#: Seconds until a refund is sent, where that is not at once: PayDunya's token is stored first.
SENT_AFTER = {"paydunya": (5,)}
#: Seconds: an hour, long enough for three answers "not found" to prove something.
HOUR = TURNS[:12]
#: Seconds until the next question about what is an hour old.
NEXT_HOURS = (3600, 3600)


def setup_of(case: ProviderCase, **settings: str) -> Setup:
    [(name, account)] = case.setup.accounts.items()
    via = {"refund_via": "transfer"} if case.provider == "mtn" else {}
    return Setup({name: structs.replace(account, settings={**account.settings, **via, **settings})}, case.setup.routes)


async def company(simulated: SimulatedProviders, provider: str, name: str) -> None:
    """The account that the key leads to."""
    await simulated.control("POST", "/dashboard", json={"family": provider, "company": name})


async def turns(simulated: SimulatedProviders, seconds: tuple[int, ...] = HOUR) -> None:
    for each in seconds:
        await simulated.turn(each)


async def paid(simulated: SimulatedProviders, case: ProviderCase) -> str:
    await no_fees(simulated, case.operator)
    last = "771239001"
    body = {"amount": 5000, "operator": case.operator, "phone_number": f"{case.dial}{last}", **case.order}
    if case.digits == "amount":
        body["amount"] = 19001
    reference: str = (await simulated.merchant.live.post("/payments", body)).data["reference"]
    return reference


async def lost_refund(simulated: SimulatedProviders, case: ProviderCase, scenario: str) -> tuple[str, str]:
    """The references of a payment and of its refund, whose answer is lost."""
    payment = await paid(simulated, case)
    await turns(simulated, (2, 5, 5))
    await simulated.force(case.provider, scenario, "credit")
    answer = await simulated.merchant.live.post(f"/payments/{payment}/refund")
    await simulated.service.worker.run_until_idle()  # The clock stands still: the refund is not asked about yet.
    await turns(simulated, SENT_AFTER.get(case.provider, ()))
    return payment, answer.data["reference"]


async def shown(simulated: SimulatedProviders, path: str) -> str:
    """The status as it is stored and told; the provider is asked by the worker."""
    return str((await simulated.nudged(simulated.merchant.live.get(path))).data["status"])


async def moved(simulated: SimulatedProviders, kind: str) -> list[Any]:
    return [each["state"] for each in await simulated.held(kind=kind)]


@pytest.mark.parametrize("name", CHANGES)
async def test_a_refund_is_not_paid_again_through_another_account(settings: Settings, name: str) -> None:
    case = PROVIDER_CASES[name]
    async with open_simulation(settings, setup_of(case)) as simulation:
        async with simulation.running(setup_of(case)) as simulated:
            _, refund = await lost_refund(simulated, case, "lost_answer")
            await company(simulated, name, "autre")
        async with simulation.running(setup_of(case, **CHANGES[name])) as simulated:
            await turns(simulated)
            # Wave's list of transactions names the refund: where only the key differs, an explicit answer counts.
            known = "succeeded" if name == "wave" else "pending"
            assert await shown(simulated, f"/refunds/{refund}") == known
            assert len(await simulated.held(kind="credit")) == 1
            await company(simulated, name, "")
        async with simulation.running(setup_of(case)) as simulated:
            await turns(simulated, NEXT_HOURS)
            assert await shown(simulated, f"/refunds/{refund}") == "succeeded"
            assert await moved(simulated, "credit") == ["succeeded"]
            await check_books(simulated.service.ctx.db)


@pytest.mark.parametrize("name", CHANGES)
async def test_a_debited_payment_does_not_fail_because_another_account_does_not_know_it(
    settings: Settings, name: str
) -> None:
    case = PROVIDER_CASES[name]
    changed = {"api_user": "other-user"} if name == "mtn" else CHANGES[name]
    async with open_simulation(settings, setup_of(case)) as simulation:
        async with simulation.running(setup_of(case)) as simulated:
            await simulated.force(name, "lost_answer")
            payment = await paid(simulated, case)
            await company(simulated, name, "autre")
        async with simulation.running(setup_of(case, **changed)) as simulated:
            await turns(simulated)
            assert await shown(simulated, f"/payments/{payment}") == "pending"
            assert len(await simulated.held(kind="debit")) == 1
            await company(simulated, name, "")
        async with simulation.running(setup_of(case)) as simulated:
            await turns(simulated, NEXT_HOURS)
            assert await shown(simulated, f"/payments/{payment}") == "succeeded"
            assert await moved(simulated, "debit") == ["succeeded"]


@pytest.mark.parametrize("name", ["pawapay", "stripe", "fedapay"])
async def test_a_refund_goes_on_under_a_renewed_key_of_the_same_account(settings: Settings, name: str) -> None:
    """The provider says that it is the same account: a refund that was lost on its way is sent again."""
    case = PROVIDER_CASES[name]
    async with open_simulation(settings, setup_of(case)) as simulation:
        async with simulation.running(setup_of(case)) as simulated:
            _, refund = await lost_refund(simulated, case, "lost_request")
            assert await simulated.held(kind="credit") == []
        async with simulation.running(setup_of(case, **CHANGES[name])) as simulated:
            await turns(simulated)
            assert await shown(simulated, f"/refunds/{refund}") == "succeeded"
            assert await moved(simulated, "credit") == ["succeeded"]


@pytest.mark.both_databases
async def test_another_key_of_wave_waits_until_two_people_confirm_the_account(settings: Settings) -> None:
    case = PROVIDER_CASES["wave"]
    async with open_simulation(settings, setup_of(case)) as simulation:
        async with simulation.running(setup_of(case)) as simulated:
            _, refund = await lost_refund(simulated, case, "lost_request")
            await simulated.force("wave", "lost_answer")
            asked = await paid(simulated, case)
        async with simulation.running(setup_of(case, **CHANGES["wave"])) as simulated:
            ctx = simulated.service.ctx
            await turns(simulated)
            assert await shown(simulated, f"/payments/{asked}") == "succeeded", "an explicit answer counts"
            assert await shown(simulated, f"/refunds/{refund}") == "pending"
            assert await simulated.held(kind="credit") == []
            [incident] = await incidents.still_open(ctx.db)
            assert (incident.kind, incident.provider_account) == ("account_changed", "wave_one")
            await ask_and_approve(ctx, ActRequest("account.confirm", refund, {}, "the portal shows both keys"))
            await turns(simulated, NEXT_HOURS)
            assert await incidents.still_open(ctx.db) == []
            assert await shown(simulated, f"/refunds/{refund}") == "succeeded"
            assert await moved(simulated, "credit") == ["succeeded"]
