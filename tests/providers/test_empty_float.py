"""Our balance with each simulated provider is empty when a refund is due: the customer is paid once it is filled."""

from dataclasses import replace
from typing import Any

import pytest

from guichet.incidents import repository as incidents
from guichet.providers.shared.client import ProviderAccount
from guichet.settings import Settings
from guichet_simulator.scenarios import BY_NAME
from tests.invariants import check_books
from tests.providers.conformance import no_fees
from tests.providers.provider_cases import PROVIDER_CASES, ProviderCase
from tests.providers.simulated_providers import Setup, SimulatedProviders, open_simulated_providers


async def set_float(simulated: SimulatedProviders, provider: str, *, empty: bool, ambiguous: bool = False) -> None:
    body = {"family": provider, "float_empty": empty, "float_ambiguous": ambiguous}
    await simulated.control("POST", "/dashboard", json=body)


#: Each provider, and whether it says so by a code that may mean the payee too: our balance must then be read. Stripe
#: otherwise keeps the refund, and makes it by itself.
SAID = [(name, False) for name in ("mtn", "pawapay", "feexpay", "sonatel", "stripe", "wave", "paydunya", "fedapay")]
SAID += [(name, True) for name in ("mtn", "feexpay", "stripe", "paydunya")]


@pytest.mark.parametrize(("name", "ambiguous"), SAID)
async def test_a_refund_waits_for_the_float_and_pays_once(
    sqlite_settings: Settings, name: str, ambiguous: bool
) -> None:
    case = PROVIDER_CASES[name]
    async with open_simulated_providers(sqlite_settings, case.setup) as simulated:
        await no_fees(simulated, case.operator)
        live = simulated.merchant.live
        body = {**case.body("90", BY_NAME["succeeds"]), "return_url": "https://shop.example/back"}
        payment = (await simulated.nudged(live.post("/payments", body))).data
        for _ in range(3):
            await simulated.turn(5)
        await set_float(simulated, name, empty=True, ambiguous=ambiguous)
        refund = (await live.post(f"/payments/{payment['reference']}/refund")).data
        for seconds in (1, 60, 60, 3600):
            await simulated.turn(seconds)
        assert (await live.get(f"/refunds/{refund['reference']}")).data["status"] == "pending"
        assert (await live.get("/balance")).data["balance"] == 0
        assert [each.kind for each in await incidents.still_open(simulated.service.ctx.db)] == ["float_empty"]
        again = await live.post(f"/payments/{payment['reference']}/refund")
        assert again.status == 409

        await set_float(simulated, name, empty=False)
        for _ in range(5):
            await simulated.turn(600)
        assert (await live.get(f"/refunds/{refund['reference']}")).data["status"] == "succeeded"
        [credit] = [each for each in await simulated.held() if each["kind"] == "credit"]
        assert credit["state"] == "succeeded"
        assert await incidents.still_open(simulated.service.ctx.db) == []
        await check_books(simulated.service.ctx.db)


@pytest.mark.parametrize("name", ["mtn", "feexpay", "stripe", "wave"])
async def test_with_enough_of_ours_an_ambiguous_refusal_is_tried_once_more(
    sqlite_settings: Settings, name: str
) -> None:
    """After ten minutes, under a new reference; the customer of the first payment is paid then, and the second one's
    account takes nothing."""
    case = PROVIDER_CASES[name]
    async with open_simulated_providers(sqlite_settings, case.setup) as simulated:
        await no_fees(simulated, case.operator)
        live = simulated.merchant.live
        once, always, _ = [await paid(simulated, case, number) for number in range(3)]
        await simulated.force(name, "ambiguous_refusal", "credit")
        first = (await live.post(f"/payments/{once['reference']}/refund")).data
        await simulated.turn(1)
        await simulated.turn(599)
        assert (await live.get(f"/refunds/{first['reference']}")).data["status"] == "pending"
        await simulated.turn(5)
        await simulated.turn(5)
        assert (await live.get(f"/refunds/{first['reference']}")).data["status"] == "succeeded"

        await simulated.force(name, "ambiguous_refusal", "credit", times=None)
        second = (await live.post(f"/payments/{always['reference']}/refund")).data
        await simulated.turn(1)
        assert (await live.get(f"/refunds/{second['reference']}")).data["status"] == "pending"
        await simulated.turn(605)
        assert (await live.get(f"/refunds/{second['reference']}")).data["status"] == "failed"
        assert (await live.get(f"/payments/{always['reference']}")).data["status"] == "succeeded"
        assert len([each for each in await simulated.held() if each["kind"] == "credit"]) == 1
        await check_books(simulated.service.ctx.db)


async def paid(simulated: SimulatedProviders, case: ProviderCase, number: int) -> Any:
    scenario = replace(BY_NAME["succeeds"], digits=f"{number:02}")
    await simulated.force(case.provider, "succeeds")
    body = {**case.body("88", scenario), "return_url": "https://shop.example/back"}
    payment = (await simulated.nudged(simulated.merchant.live.post("/payments", body))).data
    for _ in range(3):
        await simulated.turn(5)
    return payment


async def test_a_wave_key_with_signing_collects_and_refunds(sqlite_settings: Settings) -> None:
    """The simulated Wave refuses every request that is not signed, GETs too, as the real one does."""
    secret = "wave_sn_AKS_simulator"
    case = PROVIDER_CASES["wave"]
    account = ProviderAccount("wave", "wave", "{sim}/wave", {**case.settings, "signing_secret": secret})
    async with open_simulated_providers(sqlite_settings, Setup({"wave": account}, {"wave_sn": ["wave"]})) as simulated:
        await simulated.control("POST", "/dashboard", json={"family": "wave", "signing_secret": secret})
        live = simulated.merchant.live
        body = {"amount": 5000, "operator": "wave_sn", "phone_number": "221771239001"}
        body["return_url"] = "https://shop.example/back"
        payment = (await simulated.nudged(live.post("/payments", body))).data
        for _ in range(3):
            await simulated.turn(5)
        assert (await live.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
        await live.post(f"/payments/{payment['reference']}/refund")
        await simulated.turn(5)
        assert (await live.get(f"/payments/{payment['reference']}")).data["status"] == "refunded"


async def test_a_wave_key_with_signing_refuses_unsigned_requests(sqlite_settings: Settings) -> None:
    case = PROVIDER_CASES["wave"]
    account = ProviderAccount("wave", "wave", "{sim}/wave", case.settings)
    async with open_simulated_providers(sqlite_settings, Setup({"wave": account}, {"wave_sn": ["wave"]})) as simulated:
        await simulated.control("POST", "/dashboard", json={"family": "wave", "signing_secret": "s"})
        assert "missing-signature" in await simulated.service.ctx.registry.provider("wave").probe()
