"""Writes the log of merchants' requests while a process serves (`merchants/request_log.py`)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from guichet.context import AppContext
from guichet.db.errors import StorageError
from guichet.logs import log

#: Seconds between two times at which a process writes what it remembers.
FLUSH_EVERY: Final = 1.0
#: Seconds that the last time may take: a process that stops waits for no database.
LAST_FLUSH: Final = 2.0


@asynccontextmanager
async def writing_request_log(ctx: AppContext) -> AsyncIterator[None]:
    """Writes every second while the block runs, and once more at its end."""
    stopping = asyncio.Event()
    running = asyncio.create_task(_write(ctx, stopping), name="request log")
    try:
        yield
    finally:
        stopping.set()
        await asyncio.wait([running], timeout=LAST_FLUSH)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _write(ctx: AppContext, stopping: asyncio.Event) -> None:
    last = False
    while not last:
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_EVERY):
                await stopping.wait()
        last = stopping.is_set()
        try:
            await ctx.request_log.flush(ctx.db)
        except StorageError as error:
            log.warning("request_log.not_written", error=str(error))
