"""The wallets that postings name are those of which the provider states the balance; the worker compares them."""

import pytest

from guichet.settings import Settings
from guichet.treasury import readings
from tests.ledger.test_daily_reconciliation import at_noon, pay, turn


@pytest.mark.parametrize(
    ("provider", "wallet"), [("wave", ""), ("pawapay", "BEN"), ("mtn", "collection"), ("feexpay", "MOOV")]
)
async def test_the_worker_compares_the_wallet_that_a_payment_filled(
    sqlite_settings: Settings, provider: str, wallet: str
) -> None:
    account = f"{provider}_one"
    place = f"float:{account}:{wallet}:XOF"
    async with at_noon(sqlite_settings, provider) as simulated:
        await pay(simulated, provider)
        await turn(simulated, 40, times=3)
        await turn(simulated, 3700, times=2)
        ctx = simulated.service.ctx
        found = {each.place: each for each in await readings.latest(ctx.db, ctx.clock.now())}
        assert found[place].ledger > 0
        assert found[place].stated > 0
        assert found[place].difference == 0
