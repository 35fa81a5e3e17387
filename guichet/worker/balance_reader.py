"""The loop that reads our balances with the providers, each account once every five minutes across all workers."""

import asyncio
from typing import Final

from guichet.back_office import provider_balances
from guichet.clock import HOUR, SECOND, Instant, later
from guichet.context import AppContext
from guichet.providers.capabilities import Balances
from guichet.worker.queue_loop import Loop, Step

#: Accounts that are read at once by this process.
AT_ONCE: Final = 4
#: Seconds between two looks for accounts that are due.
LOOK_EVERY: Final = 10.0
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
            await provider_balances.read(self._ctx.db, self._ctx.clock, account, provider)
