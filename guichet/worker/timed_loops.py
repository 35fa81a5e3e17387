"""Loops that work when the clock says so: our balances with the providers, disputes, the heads of the hash chains, the
checks of `guichet doctor`. Each is a loop of its own, so that whoever does not answer delays nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from guichet.back_office import provider_balances
from guichet.chain_heads import PUBLISH_EVERY, TURN, publish_heads
from guichet.clock import HOUR, MINUTE, SECOND, Instant, later
from guichet.context import AppContext
from guichet.db.worker_leases import claim_turn
from guichet.disputes.disputes import read_disputes
from guichet.http_client import HttpClient
from guichet.providers.capabilities import Balances
from guichet.treasury.balances import totals
from guichet.treasury.differences import compare
from guichet.worker.queue_loop import ASKS_AFTER, POLL_INTERVAL, Loop, Step

#: Seconds between two looks whether something is due, and whether the checks are.
_LOOK_EVERY: Final = 10.0
_CHECKS_EVERY: Final = 60.0
#: Accounts whose balances are read at once by this process.
AT_ONCE: Final = 4
#: How often a reading is compared with the ledger.
_COMPARE_EVERY: Final = HOUR
#: The first reading comes this long after the start: a restart of many processes asks no provider for anything.
_FIRST_AFTER: Final = 30 * SECOND
#: Between two readings of disputes: while nothing happens, after a callback, and after an account that did not answer.
_DISPUTES_EVERY: Final = 15 * MINUTE
_AFTER_CALLBACK: Final = 5 * SECOND
_AFTER_FAILURE: Final = MINUTE


class BalanceReader(Loop):
    """Reads our balances with the providers, each account once every five minutes across all workers, and compares them
    with the ledger every hour."""

    name = "balances"

    def __init__(self, ctx: AppContext) -> None:
        self.wake = asyncio.Event()
        self._ctx = ctx
        self._first_at = later(ctx.clock.now(), _FIRST_AFTER)
        self._forget_at = Instant(0)
        self._compare_at: dict[str, Instant] = {}
        self._places = asyncio.Semaphore(AT_ONCE)

    async def step(self) -> Step:
        now, accounts = self._ctx.clock.now(), self._ctx.registry.with_balances()
        if not accounts or now < self._first_at:
            return Step(False, _LOOK_EVERY)
        due = await provider_balances.claim_due(self._ctx.db, list(accounts), now)
        await asyncio.gather(*(self._read(account, accounts[account]) for account in due))
        if now >= self._forget_at:
            await provider_balances.forget_removed_accounts(self._ctx.db, now)
            self._forget_at = later(now, HOUR)
        return Step(bool(due), _LOOK_EVERY)

    async def _read(self, account: str, provider: Balances) -> None:
        async with self._places:
            ctx, now = self._ctx, self._ctx.clock.now()
            is_due = now >= self._compare_at.get(account, now)
            before = await totals(ctx.db) if is_due else {}
            balances = await provider_balances.read(ctx.db, ctx.clock, account, provider)
            if is_due and balances is not None:
                self._compare_at[account] = later(now, _COMPARE_EVERY)
                await compare(ctx, account, ctx.registry.provider(account), balances, before)


class DisputeLoop(Loop):
    """Reads disputes from the providers that have any, every quarter of an hour and after a callback. Every worker
    reads by itself: what it records is applied once, whoever reads it first."""

    name = "disputes"
    starts_after = ASKS_AFTER

    def __init__(self, ctx: AppContext) -> None:
        self.wake = ctx.wakeups.disputes
        self._ctx = ctx
        self._last = Instant(0)
        self._due = Instant(0)
        self._called_back = False

    async def step(self) -> Step:
        now = self._ctx.clock.now()
        if self.wake.is_set():
            self._called_back = True
            self.wake.clear()
        if self._called_back:
            self._due = min(self._due, later(self._last, _AFTER_CALLBACK))
        if now >= self._due:
            self._called_back, self._last = False, now
            complete = await read_disputes(self._ctx)
            self._due = later(now, _DISPUTES_EVERY if complete else _AFTER_FAILURE)
        return Step(False, POLL_INTERVAL)


class HeadPublication(Loop):
    """Publishes the heads of the hash chains, by one worker for all."""

    name = TURN

    def __init__(self, ctx: AppContext, http_client: HttpClient) -> None:
        self.wake = asyncio.Event()
        self._ctx = ctx
        self._http_client = http_client
        self._next_at = Instant(0)
        #: The place may be another one since the last start: the first heads go there even if they did not change.
        self._always = True

    async def step(self) -> Step:
        db, now = self._ctx.db, self._ctx.clock.now()
        if now < self._next_at:
            return Step(False, _LOOK_EVERY)
        self._next_at = later(now, PUBLISH_EVERY)
        if await claim_turn(db, self.name, now, PUBLISH_EVERY):
            done = await publish_heads(db, self._http_client, self._ctx.settings, now, always=self._always)
            self._always = self._always and not done
        return Step(False, _LOOK_EVERY)


class ServiceChecks(Loop):
    """Has the checks of `guichet doctor` made and kept, once a minute across all workers. `keep`: makes them when they
    are due. The server's package has them, which this one does not know."""

    name = "checks"
    #: For the first seconds of a process the processor is the payments': what waited for its start is due.
    starts_after = 30.0

    def __init__(self, ctx: AppContext, keep: Callable[[AppContext], Awaitable[None]]) -> None:
        self.wake = asyncio.Event()
        self._ctx = ctx
        self._keep = keep

    async def step(self) -> Step:
        await self._keep(self._ctx)
        return Step(False, _CHECKS_EVERY)
