"""Counts of initiations that a process without a worker keeps in memory, written every few seconds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from guichet.context import AppContext
from guichet.db.errors import StorageError
from guichet.logs import log

#: Seconds between two times at which the counts of this process are written.
FLUSH_EVERY: Final = 5.0


@asynccontextmanager
async def writing_attempts(ctx: AppContext) -> AsyncIterator[None]:
    """Writes the counts of a process that serves without a worker, every few seconds and once more at its end."""
    running = asyncio.create_task(_write(ctx), name="attempts")
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        with suppress(StorageError):
            await ctx.attempts.flush(ctx.db)


async def _write(ctx: AppContext) -> None:
    while True:
        await asyncio.sleep(FLUSH_EVERY)
        try:
            await ctx.attempts.flush(ctx.db)
        except StorageError as error:
            log.warning("availability.not_written", error=str(error))
