"""Payments and refunds through the simulated PayDunya, where its two steps matter."""

from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import update

from guichet.clock import MINUTE, later
from guichet.db.engine import require
from guichet.db.tables import payments
from guichet.provider_callbacks import unmatched
from guichet.refunds import pending
from guichet.refunds import repository as refund_repository
from guichet.settings import Settings
from guichet_simulator.scenarios import BY_NAME
from tests.invariants import check_books
from tests.providers.conformance import no_fees
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.simulated_providers import SimulatedProviders, open_simulated_providers

CASE = PROVIDER_CASES["paydunya"]


async def paid(simulated: SimulatedProviders) -> str:
    await no_fees(simulated, CASE.operator)
    body = CASE.body("90", BY_NAME["succeeds"])
    answer = await simulated.nudged(simulated.merchant.live.post("/payments", body))
    for _ in range(3):
        await simulated.turn(5)
    reference: str = answer.data["reference"]
    return reference


async def announced(simulated: SimulatedProviders) -> Any:
    """A refund whose payout has a token and is not submitted yet."""
    reference = await paid(simulated)
    answer = await simulated.merchant.live.post(f"/payments/{reference}/refund")
    await simulated.service.worker.run_until_idle()  # The clock stands still: it is not asked about yet.
    assert await simulated.held(kind="credit") == []
    return require(await refund_repository.find(simulated.service.ctx.db, answer.data["reference"]))


async def test_a_late_answer_does_not_put_another_token_in_the_place_of_the_stored_one(settings: Settings) -> None:
    """A process that was held up for longer than its lease comes back with the token of an older announcement: a payout
    submitted under both would be two."""
    async with open_simulated_providers(settings, CASE.setup) as simulated:
        refund = await announced(simulated)
        before_the_call = structs.replace(refund, provider_reference=None)
        ctx = simulated.service.ctx
        soon = later(ctx.clock.now(), MINUTE)
        await pending.record_acceptance(ctx.db, before_the_call, "an-older-token", None, soon)
        for _ in range(4):
            await simulated.turn(5)
        [credit] = await simulated.held(kind="credit")
        stored = require(await refund_repository.by_id(ctx.db, refund.id))
        assert (stored.status, stored.provider_reference) == ("succeeded", credit["operator_ref"])
        assert stored.provider_reference == refund.provider_reference
        await check_books(ctx.db)


async def test_an_empty_callback_while_a_payout_is_announced_is_no_unmatched_one(settings: Settings) -> None:
    async with open_simulated_providers(settings, CASE.setup) as simulated:
        await announced(simulated)
        assert await unmatched.list_latest(simulated.service.ctx.db) == []


@pytest.mark.both_databases
async def test_a_payment_whose_token_was_lost_is_found_by_its_callback(settings: Settings) -> None:
    """Our process died between the invoice and the answer to its charge."""
    async with open_simulated_providers(settings, CASE.setup) as simulated:
        await no_fees(simulated, CASE.operator)
        merchant, ctx = simulated.merchant.live, simulated.service.ctx
        answer = await simulated.nudged(merchant.post("/payments", CASE.body("90", BY_NAME["pending_long"])))
        reference = answer.data["reference"]
        await ctx.db.write(update(payments).where(payments.c.reference == reference).values(provider_reference=None))
        await simulated.turn(5)
        assert (await merchant.get(f"/payments/{reference}")).data["status"] == "pending"
        for _ in range(3):
            await simulated.turn(60)
        assert (await merchant.get(f"/payments/{reference}")).data["status"] == "succeeded"
        [debit] = await simulated.held(kind="debit")
        assert debit["state"] == "succeeded"
        await check_books(ctx.db)
