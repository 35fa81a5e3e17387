"""Every family × every scenario of the table, for debits, for the first question about them, and for refunds."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from guichet.settings import Settings
from tests.operators.conformance import (
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
from tests.operators.world import World, open_world

FAMILIES = list(DOSSIERS)
#: Enough to see every kind of statement on the other database.
REPRESENTATIVE = (
    "succeeds", "declined", "refused", "lost_answer", "lost_request", "wrong_amount", "late_callback", "duplicate",
)  # fmt: skip
#: A question can be answered badly, not refused for business reasons.
QUESTIONS = (
    "lost_answer", "error_500", "unreadable", "halfway", "slow", "unauthorized", "rate_limited", "unavailable",
)  # fmt: skip


@asynccontextmanager
async def ready(settings: Settings, dossier: Dossier) -> AsyncIterator[World]:
    async with open_world(settings, dossier.setup) as world:
        await no_fees(world, dossier.operator)
        yield world


async def _debits(world: World, dossier: Dossier, prefix: str, only: Sequence[str] | None) -> list[str]:
    cases = await pay_all(world, dossier, prefix, rows(dossier, only))
    await let_it_happen(world, cases)
    await gather(world, dossier, cases)
    await check_money(world, cases)
    # What spoils a question leaves the debit as it was: it simply succeeds.
    return [fault for case in cases for fault in faults_of_debit(dossier, case)]


async def _refunds(world: World, dossier: Dossier, only: Sequence[str] | None) -> list[str]:
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
async def test_debits(sqlite_settings: Settings, family: str) -> None:
    async with ready(sqlite_settings, DOSSIERS[family]) as world:
        assert await _debits(world, DOSSIERS[family], "90", None) == []


@pytest.mark.parametrize("family", [name for name in FAMILIES if DOSSIERS[name].asks])
async def test_the_first_question(sqlite_settings: Settings, family: str) -> None:
    async with ready(sqlite_settings, DOSSIERS[family]) as world:
        dossier = DOSSIERS[family]
        cases = await pay_all(world, dossier, "92", rows(dossier, QUESTIONS))
        await let_it_happen(world, cases)
        await gather(world, dossier, cases)
        await check_money(world, cases)
        assert _not_succeeded(cases) == []


def _not_succeeded(cases: list[Case]) -> list[str]:
    return [case.scenario.name for case in cases if case.payment["status"] != "succeeded" or len(case.debits) != 1]


@pytest.mark.parametrize("family", [name for name in FAMILIES if DOSSIERS[name].refunds])
async def test_refunds(sqlite_settings: Settings, family: str) -> None:
    async with ready(sqlite_settings, DOSSIERS[family]) as world:
        assert await _refunds(world, DOSSIERS[family], None) == []
