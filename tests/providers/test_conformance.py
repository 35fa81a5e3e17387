"""Every family × every scenario of the table: for debits, for the first question about them, and for refunds.

The whole table runs on SQLite and on PostgreSQL.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from guichet.settings import Settings
from tests.providers.conformance import (
    DOSSIERS,
    Case,
    Dossier,
    check_money,
    faults_of_debit,
    faults_of_refund,
    gather,
    let_it_happen,
    no_fees,
    pay_all,
    rows,
)
from tests.providers.simulated_providers import World, open_world

FAMILIES = list(DOSSIERS)
REFUNDING = [name for name in FAMILIES if DOSSIERS[name].refunds]
#: A question can be answered badly, not refused for business reasons.
QUESTIONS = (
    "lost_answer", "error_500", "unreadable", "halfway", "slow", "unauthorized", "rate_limited", "unavailable",
)  # fmt: skip


@asynccontextmanager
async def ready(settings: Settings, dossier: Dossier) -> AsyncIterator[World]:
    async with open_world(settings, dossier.setup) as world:
        await no_fees(world, dossier.operator)
        yield world


async def _debits(settings: Settings, dossier: Dossier, only: Sequence[str] | None = None) -> list[str]:
    async with ready(settings, dossier) as world:
        cases = await pay_all(world, dossier, "90", rows(dossier, only))
        await let_it_happen(world, cases)
        await gather(world, dossier, cases)
        await check_money(world, cases)
        return [fault for case in cases for fault in faults_of_debit(dossier, case)]


async def _refunds(settings: Settings, dossier: Dossier, only: Sequence[str] | None = None) -> list[str]:
    async with ready(settings, dossier) as world:
        cases = await pay_all(world, dossier, "91", rows(dossier, only))
        for seconds in (1, 2, 5, 10):
            await world.turn(seconds)
        for case in cases:
            answer = await world.shop.live.post(f"/payments/{case.reference}/refund", {"reason": "test"})
            assert answer.status == 201, (case.scenario.name, answer.raw)
            case.refund = answer.data
            assert (await world.shop.live.post(f"/payments/{case.reference}/refund")).status == 409
        await let_it_happen(world, cases)
        await gather(world, dossier, cases)
        await check_money(world, cases)
        return [fault for case in cases for fault in faults_of_refund(dossier, case)]


@pytest.mark.parametrize("family", FAMILIES)
async def test_debits(settings: Settings, family: str) -> None:
    assert await _debits(settings, DOSSIERS[family]) == []


@pytest.mark.parametrize("family", REFUNDING)
async def test_refunds(settings: Settings, family: str) -> None:
    assert await _refunds(settings, DOSSIERS[family]) == []


@pytest.mark.parametrize("family", [name for name in FAMILIES if DOSSIERS[name].asks])
async def test_a_question_answered_badly_is_asked_again(settings: Settings, family: str) -> None:
    """What spoils a question leaves the debit as it is: it simply succeeds."""
    dossier = DOSSIERS[family]
    async with ready(settings, dossier) as world:
        cases = await pay_all(world, dossier, "92", rows(dossier, QUESTIONS))
        assert len(cases) == len(QUESTIONS)
        await let_it_happen(world, cases)
        await gather(world, dossier, cases)
        await check_money(world, cases)
        assert [case.scenario.name for case in cases if not _succeeded_once(case)] == []


def _succeeded_once(case: Case) -> bool:
    return case.payment["status"] == "succeeded" and [tx["state"] for tx in case.debits] == ["succeeded"]
