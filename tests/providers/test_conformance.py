"""Every provider × every scenario of the table: for debits, for their first status query, and for refunds.

Every provider runs on SQLite; one that is polled and refunds also on PostgreSQL, where the others send no further
statement.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from guichet.settings import Settings
from tests.providers.conformance import (
    Case,
    advance_to_the_end,
    check_money,
    faults_of_debit,
    faults_of_refund,
    no_fees,
    pay_all,
    read_results,
    rows,
)
from tests.providers.provider_cases import PROVIDER_CASES, ProviderCase
from tests.providers.simulated_providers import SimulatedProviders, open_simulated_providers

PROVIDERS = list(PROVIDER_CASES)
REFUNDING = [name for name in PROVIDERS if PROVIDER_CASES[name].refunds]
#: A status query can fail technically, but is never refused for business reasons.
QUERY_FAULTS = (
    "lost_answer", "error_500", "unreadable", "halfway", "slow", "unauthorized", "rate_limited", "unavailable",
)  # fmt: skip


def on_databases(providers: Sequence[str]) -> pytest.MarkDecorator:
    cases = [*(("sqlite", name) for name in providers), ("postgresql", "pawapay")]
    return pytest.mark.parametrize(("settings", "provider_name"), cases, indirect=["settings"])


@asynccontextmanager
async def ready(settings: Settings, provider_case: ProviderCase) -> AsyncIterator[SimulatedProviders]:
    async with open_simulated_providers(settings, provider_case.setup) as simulated:
        await no_fees(simulated, provider_case.operator)
        yield simulated


async def _debits(settings: Settings, provider_case: ProviderCase, only: Sequence[str] | None = None) -> list[str]:
    async with ready(settings, provider_case) as simulated:
        cases = await pay_all(simulated, provider_case, "90", rows(provider_case, only))
        await advance_to_the_end(simulated, cases)
        await read_results(simulated, provider_case, cases)
        await check_money(simulated, cases)
        return [fault for case in cases for fault in faults_of_debit(provider_case, case)]


async def _refunds(settings: Settings, provider_case: ProviderCase, only: Sequence[str] | None = None) -> list[str]:
    async with ready(settings, provider_case) as simulated:
        cases = await pay_all(simulated, provider_case, "91", rows(provider_case, only))
        for seconds in (1, 2, 5, 10):
            await simulated.turn(seconds)
        for case in cases:
            answer = await simulated.merchant.live.post(f"/payments/{case.reference}/refund", {"reason": "test"})
            assert answer.status == 201, (case.scenario.name, answer.raw)
            case.refund = answer.data
            assert (await simulated.merchant.live.post(f"/payments/{case.reference}/refund")).status == 409
        await advance_to_the_end(simulated, cases)
        await read_results(simulated, provider_case, cases)
        await check_money(simulated, cases)
        return [fault for case in cases for fault in faults_of_refund(provider_case, case)]


@on_databases(PROVIDERS)
async def test_every_debit_scenario_ends_as_the_provider_booked_it(settings: Settings, provider_name: str) -> None:
    assert await _debits(settings, PROVIDER_CASES[provider_name]) == []


@on_databases(REFUNDING)
async def test_every_refund_scenario_ends_as_the_provider_booked_it(settings: Settings, provider_name: str) -> None:
    assert await _refunds(settings, PROVIDER_CASES[provider_name]) == []


@on_databases([name for name in PROVIDERS if PROVIDER_CASES[name].polls])
async def test_a_failed_status_query_is_repeated(settings: Settings, provider_name: str) -> None:
    """A failed status query does not change the debit, which succeeds."""
    provider_case = PROVIDER_CASES[provider_name]
    async with ready(settings, provider_case) as simulated:
        cases = await pay_all(simulated, provider_case, "92", rows(provider_case, QUERY_FAULTS))
        assert len(cases) == len(QUERY_FAULTS)
        await advance_to_the_end(simulated, cases)
        await read_results(simulated, provider_case, cases)
        await check_money(simulated, cases)
        assert [case.scenario.name for case in cases if not _succeeded_once(case)] == []


def _succeeded_once(case: Case) -> bool:
    return case.payment["status"] == "succeeded" and [tx["state"] for tx in case.debits] == ["succeeded"]
