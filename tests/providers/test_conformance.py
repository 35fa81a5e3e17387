"""Every family × every scenario of the table: for debits, for the first question about them, and for refunds.

The whole table runs on SQLite and on PostgreSQL.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from guichet.settings import Settings
from tests.providers.conformance import (
    PROVIDER_CASES,
    Case,
    ProviderCase,
    check_money,
    faults_of_debit,
    faults_of_refund,
    gather,
    let_it_happen,
    no_fees,
    pay_all,
    rows,
)
from tests.providers.simulated_providers import SimulatedProviders, open_simulated_providers

FAMILIES = list(PROVIDER_CASES)
REFUNDING = [name for name in FAMILIES if PROVIDER_CASES[name].refunds]
#: A question can be answered badly, not refused for business reasons.
QUESTIONS = (
    "lost_answer", "error_500", "unreadable", "halfway", "slow", "unauthorized", "rate_limited", "unavailable",
)  # fmt: skip


@asynccontextmanager
async def ready(settings: Settings, provider_case: ProviderCase) -> AsyncIterator[SimulatedProviders]:
    async with open_simulated_providers(settings, provider_case.setup) as simulated:
        await no_fees(simulated, provider_case.operator)
        yield simulated


async def _debits(settings: Settings, provider_case: ProviderCase, only: Sequence[str] | None = None) -> list[str]:
    async with ready(settings, provider_case) as simulated:
        cases = await pay_all(simulated, provider_case, "90", rows(provider_case, only))
        await let_it_happen(simulated, cases)
        await gather(simulated, provider_case, cases)
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
        await let_it_happen(simulated, cases)
        await gather(simulated, provider_case, cases)
        await check_money(simulated, cases)
        return [fault for case in cases for fault in faults_of_refund(provider_case, case)]


@pytest.mark.parametrize("family", FAMILIES)
async def test_every_debit_scenario_ends_as_the_provider_booked_it(settings: Settings, family: str) -> None:
    assert await _debits(settings, PROVIDER_CASES[family]) == []


@pytest.mark.parametrize("family", REFUNDING)
async def test_every_refund_scenario_ends_as_the_provider_booked_it(settings: Settings, family: str) -> None:
    assert await _refunds(settings, PROVIDER_CASES[family]) == []


@pytest.mark.parametrize("family", [name for name in FAMILIES if PROVIDER_CASES[name].asks])
async def test_a_failed_status_query_is_repeated(settings: Settings, family: str) -> None:
    """What spoils a question leaves the debit as it is: it simply succeeds."""
    provider_case = PROVIDER_CASES[family]
    async with ready(settings, provider_case) as simulated:
        cases = await pay_all(simulated, provider_case, "92", rows(provider_case, QUESTIONS))
        assert len(cases) == len(QUESTIONS)
        await let_it_happen(simulated, cases)
        await gather(simulated, provider_case, cases)
        await check_money(simulated, cases)
        assert [case.scenario.name for case in cases if not _succeeded_once(case)] == []


def _succeeded_once(case: Case) -> bool:
    return case.payment["status"] == "succeeded" and [tx["state"] for tx in case.debits] == ["succeeded"]
