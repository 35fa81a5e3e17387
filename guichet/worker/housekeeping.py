"""Housekeeping: what keeps the tables small and the books provable, a little at each turn."""

import asyncio
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
from guichet.worker.daily_totals_pruning import DailyTotalsPruning
from guichet.worker.pruning import Pruning
from guichet.worker.queue_loop import POLL_INTERVAL, Loop, Step

#: Suspended credits released by one turn.
RELEASED_AT_ONCE: Final = 64
#: Entries added up by one turn. On SQLite this holds the event loop: two milliseconds when each is another merchant's.
ROLLED_UP_AT_ONCE: Final = 128
#: How often the hash chain is extended while there are few new postings.
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
        self._chain_at = Instant(0)
        self._names_at = Instant(0)
        self._approvals_at = Instant(0)
        self._treasury_at = Instant(0)
        self._mails_at = Instant(0)
        self._sessions_at = Instant(0)
        self._sessions = DueSessions(ctx)
        self._pruning = Pruning(ctx.db, ctx.settings)
        self._totals = DailyTotalsPruning(ctx.db)

    async def step(self) -> Step:
        db, clock = self._ctx.db, self._ctx.clock
        released = await suspense.release_next(db, clock.now(), RELEASED_AT_ONCE)
        entries = await wallets.roll_up(db, ROLLED_UP_AT_ONCE)
        changes = await roll_up_list_counts(db, ROLLED_UP_AT_ONCE)
        named = await self._add_names(clock.now())
        await deliveries.give_up_exhausted(db, clock.now())
        chained = await self._extend_hash_chain(clock.now())
        behind = await self._roll_up_treasury(clock.now())
        mails_wait = await self._mail_payments(clock.now())
        sessions_wait = await self._expire_sessions(clock.now())
        await self._expire_approvals(clock.now())
        await self._pruning.step(clock.now())  # What it leaves can wait for the next turn.
        await self._totals.step(clock.now())
        more = (
            released == RELEASED_AT_ONCE
            or ROLLED_UP_AT_ONCE in (entries, changes)
            or named == customer_names.AT_ONCE
            or chained == hash_chain.POSTINGS_PER_LINK
            or behind
            or mails_wait
            or sessions_wait
        )
        return Step(more, 0.0 if more else POLL_INTERVAL)

    async def _extend_hash_chain(self, now: Instant) -> int:
        """How many postings were added. Few are added together every CHAIN_EVERY, many as soon as a link is full."""
        if now < self._chain_at:
            return 0
        chained = await hash_chain.extend_hash_chain(self._ctx.db, now)
        if chained < hash_chain.POSTINGS_PER_LINK:
            self._chain_at = later(now, CHAIN_EVERY)
        return chained

    async def _add_names(self, now: Instant) -> int:
        """How many payments: few are added together every CHAIN_EVERY."""
        if now < self._names_at:
            return 0
        named = await customer_names.add_next(self._ctx.db, now)
        if named < customer_names.AT_ONCE:
            self._names_at = later(now, CHAIN_EVERY)
        return named

    async def _roll_up_treasury(self, now: Instant) -> bool:
        """Whether postings wait for the next turn."""
        if now < self._treasury_at:
            return False
        behind = await balances.roll_up(self._ctx.db, now)
        if not behind:
            self._treasury_at = later(now, CHAIN_EVERY)
        return behind

    async def _mail_payments(self, now: Instant) -> bool:
        """Whether payments wait for the next turn."""
        if now < self._mails_at:
            return False
        behind = await queue_payment_mails(self._ctx, now)
        if not behind:
            self._mails_at = later(now, CHAIN_EVERY)
        return behind

    async def _expire_sessions(self, now: Instant) -> bool:
        """Whether sessions wait for the next turn."""
        if now < self._sessions_at:
            return False
        behind = await self._sessions.step()
        if not behind:
            self._sessions_at = later(now, CHAIN_EVERY)
        return behind

    async def _expire_approvals(self, now: Instant) -> None:
        if now >= self._approvals_at:
            await end_overdue(self._ctx)
            self._approvals_at = later(now, APPROVALS_EVERY)
