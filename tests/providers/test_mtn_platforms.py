"""MTN's old and new platform side by side, as two accounts (docs/providers/mtn.md, "Addresses and credentials")."""

from guichet.providers.shared.client import ProviderAccount
from guichet.settings import Settings
from tests.invariants import check_books
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.simulated_providers import Setup, open_simulated_providers

#: As the new platform gives them out: an id that ends in `=`, a token with punctuation.
NEW_CREDENTIALS = {"api_user": "d2FsbGV0LXVzZXI=", "api_key": "p/un+ct:ua=tion&"}


async def test_each_payment_is_asked_about_on_the_platform_that_took_it(sqlite_settings: Settings) -> None:
    settings = PROVIDER_CASES["mtn"].settings
    accounts = {
        "mtn_old": ProviderAccount("mtn_old", "mtn", "{sim}/mtn", settings),
        "mtn_new": ProviderAccount("mtn_new", "mtn", "{sim}/mtn_new_platform", {**settings, **NEW_CREDENTIALS}),
    }
    setup = Setup(accounts, {"mtn": ["mtn_old", "mtn_new"]})
    async with open_simulated_providers(sqlite_settings, setup) as simulated:
        live = simulated.merchant.live
        body = {"amount": 5000, "operator": "mtn", "phone_number": "229771239001"}
        first = (await simulated.nudged(live.post("/payments", body))).data
        await simulated.force("mtn", "rate_limited", "debit")
        second = (await simulated.nudged(live.post("/payments", body))).data
        for _ in range(3):
            await simulated.turn(5)
        held = {each["reference"]: each["family"] for each in await simulated.held()}
        assert held == {first["reference"]: "mtn", second["reference"]: "mtn_new_platform"}
        for payment in (first, second):
            assert (await live.get(f"/payments/{payment['reference']}")).data["status"] == "succeeded"
            assert (await live.post(f"/payments/{payment['reference']}/refund")).status == 201
        for _ in range(3):
            await simulated.turn(5)
        for payment in (first, second):
            assert (await live.get(f"/payments/{payment['reference']}")).data["status"] == "refunded"
        await check_books(simulated.service.ctx.db)
