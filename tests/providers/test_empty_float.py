"""Our balance with each simulated provider is empty when a refund is due: the customer is paid once it is filled."""

import pytest

from guichet.providers.shared.client import ProviderAccount
from guichet.settings import Settings
from tests.invariants import check_books
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.simulated_providers import Setup, SimulatedProviders, open_simulated_providers


async def set_float(simulated: SimulatedProviders, provider: str, *, empty: bool) -> None:
    await simulated.control("POST", "/dashboard", json={"family": provider, "float_empty": empty})


@pytest.mark.parametrize("name", ["mtn", "pawapay", "feexpay", "sonatel"])
async def test_a_refund_waits_for_the_float_and_pays_once(sqlite_settings: Settings, name: str) -> None:
    case = PROVIDER_CASES[name]
    account = ProviderAccount(name, name, f"{{sim}}/{name}", case.settings)
    async with open_simulated_providers(sqlite_settings, Setup({name: account}, {case.operator: [name]})) as simulated:
        live = simulated.merchant.live
        body = {"amount": 5000, "operator": case.operator, "phone_number": f"{case.dial}771239001", **case.order}
        payment = (await simulated.nudged(live.post("/payments", body))).data
        for _ in range(3):
            await simulated.turn(5)
        await set_float(simulated, name, empty=True)
        refund = (await live.post(f"/payments/{payment['reference']}/refund")).data
        for _ in range(3):
            await simulated.turn(60)
        assert (await live.get(f"/refunds/{refund['reference']}")).data["status"] == "pending"
        assert (await live.get("/balance")).data["balance"] == 0

        await set_float(simulated, name, empty=False)
        for _ in range(5):
            await simulated.turn(60)
        assert (await live.get(f"/refunds/{refund['reference']}")).data["status"] == "succeeded"
        [credit] = [each for each in await simulated.held() if each["kind"] == "credit"]
        assert credit["state"] == "succeeded"
        await check_books(simulated.service.ctx.db)


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
