"""Every provider × every scenario of the table: for debits, for their first status query, and for refunds.

Every provider runs on SQLite; one that is polled and refunds also on PostgreSQL, where the others send no further
statement.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from guichet.settings import Settings
from guichet_simulator.scenarios import BY_NAME
from tests.providers.conformance import (
    TURNS,
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
#: A status query can fail technically, but is never refused for business reasons.
QUERY_FAULTS = (
    "lost_answer", "error_500", "unreadable", "halfway", "slow", "unauthorized", "rate_limited", "unavailable",
)  # fmt: skip
QUERIED = [BY_NAME[name] for name in QUERY_FAULTS]
#: On PostgreSQL one scenario of each kind of result: the others lead to the same statements.
KINDS = frozenset(
    {
        "succeeds",
        "declined",
        "never_final",
        "lost_answer",
        "lost_request",
        "wrong_amount",
        "unauthorized",
        "ambiguous_refusal",
    }
)
#: Turns of the clock until payments have succeeded, and are refunded.
UNTIL_PAID = 7


def on_databases(providers: Sequence[str]) -> pytest.MarkDecorator:
    cases = [*(("sqlite", name) for name in providers), ("postgresql", "pawapay")]
    return pytest.mark.parametrize(("settings", "provider_name"), cases, indirect=["settings"])


@asynccontextmanager
async def ready(settings: Settings, provider_case: ProviderCase) -> AsyncIterator[SimulatedProviders]:
    async with open_simulated_providers(settings, provider_case.setup) as simulated:
        await no_fees(simulated, provider_case.operator)
        yield simulated


@on_databases(PROVIDERS)
async def test_every_scenario_ends_as_the_provider_booked_it(settings: Settings, provider_name: str) -> None:
    """In one service, whose clock is advanced once for all: a payment for each scenario of a debit, of the first status
    query, which changes nothing of a debit that succeeds, and of a refund."""
    provider_case = PROVIDER_CASES[provider_name]
    async with ready(settings, provider_case) as simulated:
        scenarios = [each for each in rows(provider_case) if settings.embedded or each.name in KINDS]
        refunded = await pay_all(simulated, provider_case, "91", scenarios) if provider_case.refunds else []
        queried = await pay_all(simulated, provider_case, "92", QUERIED) if provider_case.polls else []
        debits = await pay_all(simulated, provider_case, "90", scenarios, repeats=True)
        cases = [*debits, *queried, *refunded]
        for seconds in TURNS[:UNTIL_PAID]:
            await simulated.turn(seconds)
        for case in refunded:
            answer = await simulated.merchant.live.post(f"/payments/{case.reference}/refund", {"reason": "test"})
            assert answer.status == 201, (case.scenario.name, answer.raw)
            case.refund = answer.data
            assert (await simulated.merchant.live.post(f"/payments/{case.reference}/refund")).status == 409
        await advance_to_the_end(simulated, cases)
        await read_results(simulated, provider_case, cases)
        await check_money(simulated, cases)
    assert [fault for case in debits for fault in faults_of_debit(provider_case, case)] == []
    assert [case.scenario.name for case in queried if not _succeeded_once(case)] == []
    assert [fault for case in refunded for fault in faults_of_refund(provider_case, case)] == []


def _succeeded_once(case: Case) -> bool:
    return case.payment["status"] == "succeeded" and [tx["state"] for tx in case.debits] == ["succeeded"]
