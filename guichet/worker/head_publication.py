"""The loop that publishes the heads of the hash chains, by one worker for all."""

import asyncio
from typing import Final

from guichet.chain_heads import PUBLISH_EVERY, TURN, publish_heads
from guichet.clock import Instant, later
from guichet.context import AppContext
from guichet.db.worker_leases import claim_turn
from guichet.http_client import HttpClient
from guichet.worker.queue_loop import Loop, Step

#: Seconds between two looks whether it is time.
_PAUSE: Final = 10.0


class HeadPublication(Loop):
    """A loop of its own, so that a receiver that does not answer delays nothing but heads."""

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
            return Step(False, _PAUSE)
        self._next_at = later(now, PUBLISH_EVERY)
        if await claim_turn(db, self.name, now, PUBLISH_EVERY):
            done = await publish_heads(db, self._http_client, self._ctx.settings, now, always=self._always)
            self._always = self._always and not done
        return Step(False, _PAUSE)
