"""Providers whose payouts take two steps, of which the second moves money: whatever becomes of its answer, it is made
once, and what PayDunya or FedaPay then says about it decides. Nobody knows whether two would pay twice.

The simulated ones refuse a second one, so that their books would not show it: their lists of calls do.
"""

from typing import Any, Final

import pytest

from guichet.clock import MINUTE, SECOND, later
from guichet.refunds import pending
from guichet.settings import Settings
from guichet_simulator.scenarios import BY_NAME
from tests.invariants import check_books
from tests.providers.conformance import TURNS, no_fees
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.simulated_providers import SimulatedProviders, open_simulated_providers
from tests.providers.test_late_money import ANNOUNCING

#: The path of the call that moves money.
MOVING: Final = {"paydunya": "submit-invoice", "fedapay": "payouts/start"}
#: The provider has the request, and its answer does not tell.
LOST: Final = ("succeeds", "pending_long", "lost_answer", "error_500", "unreadable", "halfway", "slow")


async def submissions(simulated: SimulatedProviders, provider: str) -> int:
    calls = (await simulated.control("GET", "/calls"))["calls"]
    return sum(MOVING[provider] in each["path"] for each in calls)


async def refunded(simulated: SimulatedProviders, provider: str, *scenarios: str) -> list[str]:
    """The refunds of payments whose payouts end in these ways, not worked on yet."""
    case = PROVIDER_CASES[provider]
    await no_fees(simulated, case.operator)
    bodies = [case.body("91", BY_NAME[scenario]) for scenario in scenarios]
    paid = [await simulated.nudged(simulated.merchant.live.post("/payments", body)) for body in bodies]
    for _ in range(4):
        await simulated.turn(5)
    refunds = [await simulated.merchant.live.post(f"/payments/{each.data['reference']}/refund") for each in paid]
    return [each.data["reference"] for each in refunds]


async def status(simulated: SimulatedProviders, refund: str) -> str:
    return str((await simulated.merchant.live.get(f"/refunds/{refund}")).data["status"])


@pytest.mark.parametrize("provider", ANNOUNCING)
async def test_a_payout_is_submitted_once_whatever_its_answer(sqlite_settings: Settings, provider: str) -> None:
    """Each succeeds, so each was submitted, and there are no more submissions than payouts."""
    async with open_simulated_providers(sqlite_settings, PROVIDER_CASES[provider].setup) as simulated:
        refunds = await refunded(simulated, provider, *LOST)
        for seconds in TURNS:
            await simulated.turn(seconds)
        assert [await status(simulated, each) for each in refunds] == ["succeeded"] * len(LOST)
        assert await submissions(simulated, provider) == len(LOST)
        await check_books(simulated.service.ctx.db)


@pytest.mark.parametrize(("provider", "minutes"), [("paydunya", 10), ("fedapay", 3)])
async def test_what_a_process_submitted_before_it_ended_is_not_submitted_again_for_minutes(
    sqlite_settings: Settings, monkeypatch: pytest.MonkeyPatch, provider: str, minutes: int
) -> None:
    """It stored nothing of the answer, and the provider says that it knows of no submission."""
    stored = pending.record_acceptance

    async def store_or_end(*args: Any, **named: Any) -> None:
        if await submissions(simulated, provider):
            raise ConnectionError("the process ended here")
        await stored(*args, **named)

    async with open_simulated_providers(sqlite_settings, PROVIDER_CASES[provider].setup) as simulated:
        [refund] = await refunded(simulated, provider, "lost_request")
        monkeypatch.setattr(pending, "record_acceptance", store_or_end)
        await simulated.turn(5)
        last = later(simulated.clock.now(), minutes * MINUTE - 90 * SECOND)
        while simulated.clock.now() < last:
            await simulated.turn(10)
        assert await submissions(simulated, provider) == 1
        assert await status(simulated, refund) == "pending"
