"""Polls that a reader waits for: a merchant's GET, a hosted page. They wait for a short time only.

A poll calls a provider, which may be slow, and writes: its lease, what it found. While the standby is away no write
ends, and reading must work all the same (D113).
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from guichet.context import AppContext
from guichet.db.errors import StorageError
from guichet.logs import log

T = TypeVar("T")

#: Seconds that a merchant's GET waits for a poll.
REQUEST_WAIT: Final = 2.0


async def result_within(ctx: AppContext, seconds: float, poll: Coroutine[Any, Any, T | None]) -> T | None:
    """What `poll` returns if it ends in time, else None: it goes on by itself, and is used when it ends. None also if
    the database refused one of its writes."""
    task = asyncio.create_task(poll)
    ctx.awaited_polls.add(task)
    task.add_done_callback(ctx.awaited_polls.discard)
    try:
        await asyncio.wait({task}, timeout=seconds)
        return task.result() if task.done() else None
    except StorageError as error:
        log.error("poll.not_stored", error=repr(error))
        return None
    finally:
        if not task.done():
            task.add_done_callback(_log_failure)


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("poll.failed", error=repr(error))
