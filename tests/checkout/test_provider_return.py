"""The way back from a provider's page to the merchant's, in live (docs/contract.md, "Resources")."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from guichet.settings import Settings
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.simulated_providers import SimulatedProviders, open_simulated_providers
from tests.providers.test_routes import FEEXPAY, PERSON, account, pay, route

SETUPS = {
    **{name: PROVIDER_CASES[name].setup for name in ("stripe", "wave", "orange")},
    "feexpay": route("free_sn", account("feexpay", "feexpay", FEEXPAY)),
}
BACK = "https://shop.example/back?order=42#end"


async def pressed(simulated: SimulatedProviders, button: str) -> str:
    """Where the provider's page sends the browser of the customer who pressed this button."""
    [debit] = await simulated.held()
    form = {"decision": button, "hosted": "1"}
    async with simulated.http.post(
        f"{simulated.simulator}/phone/{debit['id']}", data=form, allow_redirects=False
    ) as answer:
        assert answer.status == 303
        return answer.headers["Location"]


async def followed(simulated: SimulatedProviders, address: str) -> tuple[int, str]:
    """The status and Location that our own address answers."""
    assert address.startswith(simulated.service.base_url), address

    async def ask() -> tuple[int, str]:
        async with simulated.http.get(address, allow_redirects=False) as answer:
            return answer.status, answer.headers.get("Location", "")

    return await simulated.nudged(ask())


@pytest.mark.parametrize(
    ("provider_name", "operator", "phone", "more"),
    [
        ("stripe", "VISA", "22997120000", PERSON),
        ("wave", "wave_sn", "221771230000", {}),
        ("orange", "orange_ml", "22377123000", {}),
        ("feexpay", "free_sn", "221771230000", {}),
    ],
)
async def test_a_customer_comes_back_with_the_reference_and_the_status(
    settings: Settings, provider_name: str, operator: str, phone: str, more: dict[str, Any]
) -> None:
    async with open_simulated_providers(settings, SETUPS[provider_name]) as simulated:
        created = (await pay(simulated, operator, phone, return_url=BACK, **more)).data
        status, location = await followed(simulated, await pressed(simulated, "approve"))
        assert status == 303
        where = urlsplit(location)
        assert (where.netloc, where.path, where.fragment) == ("shop.example", "/back", "end")
        assert parse_qs(where.query) == {"order": ["42"], "reference": [created["reference"]], "status": ["succeeded"]}


async def test_a_customer_who_gives_up_comes_back_too(sqlite_settings: Settings) -> None:
    async with open_simulated_providers(sqlite_settings, PROVIDER_CASES["stripe"].setup) as simulated:
        created = (await pay(simulated, "VISA", "22997120000", return_url=BACK, **PERSON)).data
        status, location = await followed(simulated, await pressed(simulated, "cancel"))
        assert status == 303
        assert parse_qs(urlsplit(location).query)["status"] == ["pending"]
        assert created["reference"] in location


async def test_the_way_back_exists_for_nothing_else(sqlite_settings: Settings) -> None:
    """Neither for an unknown token nor for the page of a test payment, whose own page leads back."""
    async with open_simulated_providers(sqlite_settings, PROVIDER_CASES["stripe"].setup) as simulated:
        card = {"amount": 5000, "operator": "VISA", "return_url": BACK, **PERSON}
        test_page = (await simulated.merchant.post("/payments", card)).data["payment_url"]
        for page in (test_page, f"{simulated.service.base_url}/checkout/{'x' * 32}"):
            assert (await followed(simulated, f"{page}/return"))[0] == 404
        live = (await pay(simulated, "VISA", "22997120000", return_url=BACK, **PERSON)).data
        assert "/checkout/" not in live["payment_url"]
