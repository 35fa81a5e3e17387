"""What a process that serves remembers and writes by itself, every few seconds and once more at its end: the log of
merchants' requests (`merchants/request_log.py`), and without a worker its counts of initiations (`availability.py`)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final

from guichet.availability import FLUSH_EVERY
from guichet.context import AppContext
from guichet.db.engine import Database
from guichet.db.errors import StorageError
from guichet.logs import log

#: Seconds between two times at which a process writes the requests that it remembers.
REQUESTS_EVERY: Final = 1.0
#: Seconds that the last time may take: a process that stops waits for no database.
LAST_FLUSH: Final = 2.0

Flush = Callable[[Database], Awaitable[None]]


def writing_request_log(ctx: AppContext) -> AbstractAsyncContextManager[None]:
    return _writing(ctx.db, ctx.request_log.flush, REQUESTS_EVERY, "request_log.not_written")


def writing_attempts(ctx: AppContext) -> AbstractAsyncContextManager[None]:
    return _writing(ctx.db, ctx.attempts.flush, FLUSH_EVERY, "availability.not_written")


@asynccontextmanager
async def _writing(db: Database, flush: Flush, every: float, failure: str) -> AsyncIterator[None]:
    """Writes every so many seconds while the block runs, and once more at its end."""
    stopping = asyncio.Event()
    running = asyncio.create_task(_write(db, flush, every, failure, stopping))
    try:
        yield
    finally:
        stopping.set()
        await asyncio.wait([running], timeout=LAST_FLUSH)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _write(db: Database, flush: Flush, every: float, failure: str, stopping: asyncio.Event) -> None:
    last = False
    while not last:
        with suppress(TimeoutError):
            async with asyncio.timeout(every):
                await stopping.wait()
        last = stopping.is_set()
        try:
            await flush(db)
        except StorageError as error:
            log.warning(failure, error=str(error))
