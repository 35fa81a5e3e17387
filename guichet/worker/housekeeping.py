"""Keeps house: folds, counts, seals, prunes, and ends what can no longer end by itself."""

import asyncio
from typing import Final

from guichet.clock import SECOND, Instant
from guichet.context import AppContext
from guichet.db import list_counts as counts
from guichet.ledger import hash_chain as seals
from guichet.ledger import postings as ledger
from guichet.webhooks import deliveries
from guichet.worker.loops import POLL, Turn
from guichet.worker.pruning import Pruning

#: Rows of wallets handled at once.
BATCH: Final = 64
#: Entries folded at once. On SQLite that holds the event loop: two milliseconds when each belongs to another merchant.
FOLDED: Final = 128
#: How often postings are sealed while they are few.
SEAL_EVERY: Final = 10 * SECOND


class Housekeeping:
    """Folds wallet entries into their wallets and list entries into their counts, credits what waited for a frozen
    wallet, ends deliveries whose fifth attempt nobody recorded, seals postings, prunes old logs."""

    name = "housekeeping"

    def __init__(self, ctx: AppContext) -> None:
        self.wake = asyncio.Event()
        self._core = ctx
        self._seal_at: Instant = 0
        self._pruning = Pruning(ctx.db, ctx.settings)

    async def step(self) -> Turn:
        released = await ledger.release_suspended(self._core.db, self._core.clock.now(), BATCH)
        folded = await ledger.fold(self._core.db, FOLDED)
        counted = await counts.fold(self._core.db, FOLDED)
        await deliveries.give_up_exhausted(self._core.db, self._core.clock.now())
        sealed = await self._seal(self._core.clock.now())
        await self._pruning.step(self._core.clock.now())  # What is left of it can wait for the next turn.
        full = released == BATCH or FOLDED in (folded, counted) or sealed == seals.BATCH
        return Turn(full, 0.0 if full else POLL)

    async def _seal(self, now: Instant) -> int:
        """Few postings are sealed together every SEAL_EVERY, many as soon as a seal is full."""
        if now < self._seal_at:
            return 0
        sealed = await seals.seal_next(self._core.db, now)
        if sealed < seals.BATCH:
            self._seal_at = now + SEAL_EVERY
        return sealed

    async def idle(self) -> None:
        """Every step ends with its work done."""
