"""Our balances with the providers (docs/providers, "Other calls"): what each answer means."""

from collections.abc import Mapping
from typing import Any

import pytest

from guichet.domain.money import Hundredths
from guichet.providers.base import Unknown
from guichet.providers.capabilities import Balances, FloatBalance
from guichet.settings import Settings
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.provider_under_test import Scripted, provider_under_test
from tests.providers.simulated_providers import Setup, open_simulated_providers


def _as_shown(balances: list[FloatBalance] | Unknown) -> Any:
    return balances if isinstance(balances, Unknown) else [(one.wallet, one.amount, one.currency) for one in balances]


async def _ask(provider_type: str, *answers: Scripted, **settings: str) -> Any:
    async with provider_under_test(provider_type, *answers, **settings) as tested:
        assert isinstance(tested.provider, Balances)
        return _as_shown(await tested.provider.balances())


@pytest.mark.parametrize(
    ("provider_type", "answer", "meant"),
    [
        ("wave", {"amount": "10245", "currency": "XOF"}, [("", 10_245_00, "XOF")]),
        ("wave", {"amount": "-3", "currency": "XOF"}, [("", -3_00, "XOF")]),
        (
            "pawapay",
            {
                "balances": [
                    {"country": "BEN", "balance": "21798.03", "currency": "XOF", "provider": ""},
                    {"country": "COG", "balance": "5", "currency": "XAF", "provider": "MTN_MOMO_COG"},
                ]
            },
            [("BEN", 21_798_03, "XOF"), ("COG MTN_MOMO_COG", 5_00, "XAF")],
        ),
        (
            "feexpay",
            {"data": {"data": {"balances": {"MTN": 1500, "MTN CG": "20"}}}},
            [("MTN", 1500_00, "XOF"), ("MTN CG", 20_00, "XAF")],
        ),
        (
            "stripe",
            {"available": [{"amount": 1500, "currency": "xof"}, {"amount": 1999, "currency": "eur"}]},
            [("", 1500_00, "XOF"), ("", 19_99, "EUR")],
        ),
        ("stripe", {"available": []}, []),
        (
            "fedapay",
            {"v1/balances": [{"amount": 1500, "mode": "moov"}, {"amount": 7, "mode": None, "currency_id": 2}]},
            [("moov", 1500_00, "XOF"), ("", 7_00, "GNF")],
        ),
    ],
)
async def test_the_answer_becomes_balances(provider_type: str, answer: Mapping[str, Any], meant: Any) -> None:
    assert await _ask(provider_type, (200, answer)) == meant


async def test_stripe_states_what_cannot_be_paid_out_yet_besides() -> None:
    answer = {
        "available": [{"amount": 1500, "currency": "eur"}],
        "pending": [{"amount": 99, "currency": "eur"}, {"amount": 1, "currency": "eur"}],
    }
    async with provider_under_test("stripe", (200, answer)) as tested:
        assert isinstance(tested.provider, Balances)
        assert await tested.provider.balances() == [FloatBalance("", Hundredths(1500), "EUR", 100)]


async def test_each_product_of_mtn_has_a_balance() -> None:
    answers = [(200, {"availableBalance": "700", "currency": "XOF"}), (200, {"availableBalance": 9, "currency": "XOF"})]
    assert await _ask("mtn", *answers) == [("collection", 700_00, "XOF"), ("disbursement", 9_00, "XOF")]
    assert await _ask("mtn", answers[0], disbursement_subscription_key="") == [("collection", 700_00, "XOF")]


@pytest.mark.parametrize("provider_type", ["mtn", "wave", "pawapay", "feexpay", "stripe", "paydunya", "fedapay"])
@pytest.mark.parametrize("answer", [(500, {}), (401, {}), (200, b"<html>"), (200, {}), (200, {"amount": "much"})])
async def test_a_balance_that_cannot_be_read_is_unknown_and_never_zero(provider_type: str, answer: Scripted) -> None:
    assert isinstance(await _ask(provider_type, answer), Unknown)


async def test_a_single_unreadable_wallet_makes_all_unknown() -> None:
    row = {"country": "BEN", "balance": "1", "currency": "XOF"}
    assert isinstance(await _ask("pawapay", (200, {"balances": [row, {"country": "CIV"}]})), Unknown)


@pytest.mark.parametrize("provider_type", ["mtn", "wave", "pawapay", "feexpay", "stripe", "paydunya", "fedapay"])
async def test_the_simulated_provider_states_balances(sqlite_settings: Settings, provider_type: str) -> None:
    account = PROVIDER_CASES[provider_type].setup.accounts[f"{provider_type}_one"]
    async with open_simulated_providers(sqlite_settings, Setup({"one": account}, {})) as simulated:
        with_balances = simulated.service.ctx.registry.with_balances()
        assert isinstance(await with_balances["one"].balances(), list)
