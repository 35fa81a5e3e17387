"""An aggregator's Wave account collects for each of our merchants under a name of its own."""

from typing import Any

import pytest

from guichet.db.engine import Database
from guichet.incidents import repository as incidents
from guichet.merchants import provider_merchants
from guichet.providers.base import NotProcessed, Unknown
from guichet.providers.shared.client import ProviderAccount
from guichet.providers.wave.provider import Wave
from guichet.settings import Settings
from tests.providers.expectations import TAKEN, check, not_taken
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.provider_under_test import provider_under_test
from tests.providers.simulated_providers import Setup, SimulatedProviders, open_simulated_providers
from tests.providers.test_wave import charge, refund_request, session


@pytest.fixture
def setup() -> Setup:
    settings = {**PROVIDER_CASES["wave"].settings, "aggregated_merchants": "yes"}
    wave = ProviderAccount("wave_senegal", "wave", "{sim}/wave", settings)
    next_one = PROVIDER_CASES["pawapay"].setup.accounts["pawapay_one"]
    return Setup({"wave_senegal": wave, "pawapay": next_one}, {"wave_sn": ("wave_senegal", "pawapay")})


async def _pay(simulated: SimulatedProviders) -> Any:
    body = {"amount": 5000, "operator": "wave_sn", "phone_number": "221771230000"}
    return (await simulated.nudged(simulated.merchant.live.post("/payments", body))).data


async def _name_at_wave(simulated: SimulatedProviders) -> str:
    """An aggregated merchant for the merchant of the test, made and remembered; its id."""
    ctx = simulated.service.ctx
    provider = ctx.registry.provider("wave_senegal")
    assert isinstance(provider, Wave)
    made = await provider.merchants.create("Awa (1)")
    assert isinstance(made, str)
    await provider_merchants.remember(ctx.db, "wave_senegal", simulated.merchant.id, made, ctx.clock.now())
    return made


async def test_the_session_names_the_merchant(settings: Settings, setup: Setup) -> None:
    async with open_simulated_providers(settings, setup) as simulated:
        named = await _name_at_wave(simulated)
        payment = await _pay(simulated)
        [held] = await simulated.held(reference=payment["reference"])
        url = f"{simulated.simulator}/wave/v1/checkout/sessions/{held['page_url'].rpartition('/')[2]}"
        async with simulated.http.get(
            url, headers={"Authorization": f"Bearer {PROVIDER_CASES['wave'].settings['api_key']}"}
        ) as answer:
            assert (await answer.json())["aggregated_merchant_id"] == named
        assert await incidents.still_open(simulated.service.ctx.db) == []


@pytest.mark.both_databases
async def test_a_merchant_without_an_id_goes_the_next_way_and_is_reported_once(
    settings: Settings, setup: Setup
) -> None:
    async with open_simulated_providers(settings, setup) as simulated:
        for _ in range(3):
            await _pay(simulated)
        assert {held["family"] for held in await simulated.held()} == {"pawapay"}
        [incident] = await incidents.still_open(simulated.service.ctx.db)
        assert (incident.kind, incident.provider_account) == ("missing_aggregated_merchant", "wave_senegal")
        assert "guichet providers setup wave-merchants --account wave_senegal" in str(incident.detail)

        await _name_at_wave(simulated)
        await _pay(simulated)
        assert (await simulated.held())[0]["family"] == "wave", "a new id works at once"


async def test_other_accounts_cost_no_statement_more(
    sqlite_settings: Settings, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_for: list[Any] = []

    async def one(self: Database, statement: Any, **params: Any) -> Any:
        looked_for.append(str(statement))
        return await original(self, statement, **params)

    plain = ProviderAccount("plain", "wave", "{sim}/wave", PROVIDER_CASES["wave"].settings)
    async with open_simulated_providers(sqlite_settings, Setup({"plain": plain}, {"wave_sn": ("plain",)})) as simulated:
        kind = type(simulated.service.ctx.db)
        original = kind.one
        monkeypatch.setattr(kind, "one", one)
        await _pay(simulated)
    assert looked_for
    assert not [statement for statement in looked_for if "provider_merchants" in statement]


async def test_payments_and_payouts_without_an_id_are_not_sent() -> None:
    async with provider_under_test("wave", (200, session()), aggregated_merchants="yes") as wave:
        check(await wave.provider.initiate(charge("wave_sn")), not_taken())
        check(await wave.provider.refund(refund_request("wave_sn", collected_here=False)), not_taken())
        assert wave.received == []
        check(await wave.provider.initiate(charge("wave_sn", provider_merchant_id="am-7")), TAKEN)
        assert wave.sent()["aggregated_merchant_id"] == "am-7"
        taken = {"provider_merchant_id": "am-7"}
        await wave.provider.refund(refund_request("wave_sn", taken=taken, collected_here=False))
        assert wave.sent()["aggregated_merchant_id"] == "am-7"


async def test_the_list_is_read_to_its_end() -> None:
    pages = [
        {"page_info": {"has_next_page": True, "end_cursor": "c1"}, "items": [{"id": "am-1", "name": "A (1)"}]},
        {"page_info": {"has_next_page": False, "end_cursor": "c2"}, "items": [{"id": "am-2", "name": "B (2)"}]},
    ]
    async with provider_under_test("wave", *((200, page) for page in pages)) as wave:
        assert isinstance(wave.provider, Wave)
        assert await wave.provider.merchants.ids_by_name() == {"A (1)": "am-1", "B (2)": "am-2"}
        assert "after=c1" in wave.path()


@pytest.mark.parametrize("info", [{}, {"has_next_page": True, "end_cursor": None}])
async def test_a_page_that_does_not_say_where_it_goes_on_is_not_the_last(info: dict[str, object]) -> None:
    """What is not listed would be made again."""
    page = {"page_info": info, "items": [{"id": "am-1", "name": "A (1)"}]}
    async with provider_under_test("wave", (200, page)) as wave:
        assert isinstance(wave.provider, Wave)
        assert isinstance(await wave.provider.merchants.ids_by_name(), Unknown)


async def test_what_cannot_be_read_makes_no_merchant() -> None:
    async with provider_under_test("wave", (200, {"items": "?"}), (403, {"code": "invalid-wallet"})) as wave:
        assert isinstance(wave.provider, Wave)
        assert isinstance(await wave.provider.merchants.ids_by_name(), Unknown)
        assert isinstance(await wave.provider.merchants.create("A (1)"), NotProcessed)


def test_a_name_is_unique_and_fits() -> None:
    from guichet.back_office.aggregated_merchants import name_at_wave
    from guichet.clock import Instant
    from guichet.domain.ids import MerchantId
    from guichet.domain.merchants import Merchant
    from guichet.providers.wave.merchants import WaveMerchants

    def name(merchant_id: int, text: str) -> str:
        return name_at_wave(
            Merchant(MerchantId(merchant_id), text, "active", "XOF", Instant(0)), WaveMerchants.max_length
        )

    assert name(7, "Chez Awa") == "Chez Awa (7)"
    assert name(71, "É" * 400) == "É" * 250 + " (71)"
    assert name(71, "É" * 400) != name(72, "É" * 400)
