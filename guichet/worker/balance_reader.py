"""The loop that reads our balances with the providers, each account once every five minutes across all workers,
and compares them with the ledger every hour."""

import asyncio
from typing import Final

from guichet.back_office import provider_balances
from guichet.clock import HOUR, SECOND, Instant, later
from guichet.context import AppContext
from guichet.providers.capabilities import Balances
from guichet.treasury.balances import totals
from guichet.treasury.differences import compare
from guichet.worker.queue_loop import Loop, Step

#: Accounts that are read at once by this process.
AT_ONCE: Final = 4
#: Seconds between two looks for accounts that are due.
LOOK_EVERY: Final = 10.0
#: How often a reading is compared with the ledger.
COMPARE_EVERY: Final = HOUR
#: The first reading comes this long after the start: a restart of many processes asks no provider for anything.
FIRST_AFTER: Final = 30 * SECOND


class BalanceReader(Loop):
    """A loop of its own, so that a provider that does not answer delays nothing but balances."""

    name = "balances"

    def __init__(self, ctx: AppContext) -> None:
        self.wake = asyncio.Event()
        self._ctx = ctx
        self._first_at = later(ctx.clock.now(), FIRST_AFTER)
        self._forget_at = Instant(0)
        self._compare_at: dict[str, Instant] = {}
        self._places = asyncio.Semaphore(AT_ONCE)

    async def step(self) -> Step:
        now, accounts = self._ctx.clock.now(), self._ctx.registry.with_balances()
        if not accounts or now < self._first_at:
            return Step(False, LOOK_EVERY)
        due = await provider_balances.claim_due(self._ctx.db, list(accounts), now)
        await asyncio.gather(*(self._read(account, accounts[account]) for account in due))
        if now >= self._forget_at:
            await provider_balances.forget_removed_accounts(self._ctx.db, now)
            self._forget_at = later(now, HOUR)
        return Step(bool(due), LOOK_EVERY)

    async def _read(self, account: str, provider: Balances) -> None:
        async with self._places:
            ctx, now = self._ctx, self._ctx.clock.now()
            is_due = now >= self._compare_at.get(account, now)
            before = await totals(ctx.db) if is_due else {}
            found = await provider_balances.read(ctx.db, ctx.clock, account, provider)
            if is_due and found is not None:
                self._compare_at[account] = later(now, COMPARE_EVERY)
                await compare(ctx, account, ctx.registry.provider(account), found, before)
