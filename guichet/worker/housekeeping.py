"""Housekeeping: what keeps the tables small and the books provable, a little at each turn."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from guichet.accounts.approvals import end_overdue
from guichet.accounts.payment_mails import queue_payment_mails
from guichet.clock import MINUTE, SECOND, Instant, later
from guichet.context import AppContext
from guichet.db.lists.rollup import roll_up_list_counts
from guichet.history import customer_names
from guichet.ledger import hash_chain, suspense, wallets
from guichet.payments.checkout_sessions import DueSessions
from guichet.treasury import balances
from guichet.webhooks import deliveries
from guichet.worker.pruning import DailyTotalsPruning, Pruning
from guichet.worker.queue_loop import POLL_INTERVAL, Loop, Step

#: Suspended credits released by one turn.
RELEASED_AT_ONCE: Final = 64
#: Entries added up by one turn. On SQLite this holds the event loop: two milliseconds when each is another merchant's.
ROLLED_UP_AT_ONCE: Final = 128
#: How often the hash chain is extended, and the like, while there is little to do.
CHAIN_EVERY: Final = 10 * SECOND
#: How often requests for approvals are looked at. They wait for a day.
APPROVALS_EVERY: Final = MINUTE


class Housekeeping(Loop):
    """Rolls up wallet entries and list counts, adds customers' names to those that are searched, releases suspended
    credits, ends deliveries whose last attempt nobody recorded, extends the hash chain over the postings and adds up
    what all accounts hold, queues mails about payments, ends checkout sessions, ends requests that nobody decided,
    prunes old logs."""

    name = "housekeeping"

    def __init__(self, ctx: AppContext) -> None:
        self.wake = asyncio.Event()
        self._ctx = ctx
        sessions = DueSessions(ctx)
        self._names = _Paced(self._add_names)
        self._chain = _Paced(self._extend_hash_chain)
        self._treasury = _Paced(lambda now: balances.roll_up(ctx.db, now))
        self._mails = _Paced(lambda now: queue_payment_mails(ctx, now))
        self._sessions = _Paced(lambda _: sessions.step())
        self._approvals = _Paced(self._expire_approvals, APPROVALS_EVERY)
        self._pruning = Pruning(ctx.db, ctx.settings)
        self._totals = DailyTotalsPruning(ctx.db)

    async def step(self) -> Step:
        db, clock = self._ctx.db, self._ctx.clock
        released = await suspense.release_next(db, clock.now(), RELEASED_AT_ONCE)
        entries = await wallets.roll_up(db, ROLLED_UP_AT_ONCE)
        changes = await roll_up_list_counts(db, ROLLED_UP_AT_ONCE)
        behind = [await self._names.turn(clock.now())]
        await deliveries.give_up_exhausted(db, clock.now())
        for job in (self._chain, self._treasury, self._mails, self._sessions, self._approvals):
            behind.append(await job.turn(clock.now()))
        await self._pruning.step(clock.now())  # What it leaves can wait for the next turn.
        await self._totals.step(clock.now())
        more = released == RELEASED_AT_ONCE or ROLLED_UP_AT_ONCE in (entries, changes) or any(behind)
        return Step(more, 0.0 if more else POLL_INTERVAL)

    async def _add_names(self, now: Instant) -> bool:
        return await customer_names.add_next(self._ctx.db, now) == customer_names.AT_ONCE

    async def _extend_hash_chain(self, now: Instant) -> bool:
        return await hash_chain.extend_hash_chain(self._ctx.db, now) == hash_chain.POSTINGS_PER_LINK

    async def _expire_approvals(self, now: Instant) -> bool:
        await end_overdue(self._ctx)
        return False


class _Paced:
    """Work that is done as soon as there is much of it, and little of it together after a pause."""

    def __init__(self, work: Callable[[Instant], Awaitable[bool]], pause: int = CHAIN_EVERY) -> None:
        """`work`: returns whether more of it waits."""
        self._work = work
        self._pause = pause
        self._at = Instant(0)

    async def turn(self, now: Instant) -> bool:
        """Whether more waits for the next turn."""
        if now < self._at:
            return False
        behind = await self._work(now)
        if not behind:
            self._at = later(now, self._pause)
        return behind
