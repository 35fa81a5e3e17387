"""Wakes the loops of other processes. A process without a worker announces what it made due; workers listen.

Correctness does not depend on it: every loop also looks by itself, so a lost announcement costs a second.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from msgspec.structs import fields

from guichet.context import AppContext, WakeUps
from guichet.db.engine import Database
from guichet.db.errors import StorageError
from guichet.logs import log

#: Seconds between two announcements of one topic: a busy server announces ten times a second, not each payment, and
#: a worker claims what came meanwhile together. The first one after a pause is made at once.
ANNOUNCEMENT_INTERVAL: Final = 0.1
#: Seconds between attempts to listen again, the first and the longest.
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0


@asynccontextmanager
async def wakeups(ctx: AppContext, *, working: bool) -> AsyncIterator[None]:
    """Runs beside the service. `working`: this process has a worker, so it listens instead of announcing."""
    running = asyncio.create_task(
        _listen(ctx.db, ctx.wakeups) if working else _announce(ctx.db, ctx.wakeups), name="wakeups"
    )
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _topics(wakeups: WakeUps) -> dict[str, asyncio.Event]:
    return {field.name: getattr(wakeups, field.name) for field in fields(wakeups)}


async def _announce(db: Database, wakeups: WakeUps) -> None:
    await asyncio.gather(*(_announce_topic(db, topic, event) for topic, event in _topics(wakeups).items()))


async def _announce_topic(db: Database, topic: str, event: asyncio.Event) -> None:
    """Announces in the background: what becomes due while one announcement is on its way shares the next."""
    while True:
        await event.wait()
        event.clear()
        try:
            await db.announce(topic)
        except StorageError as error:
            log.warning("wakeups.not_announced", topic=topic, error=str(error))
        await asyncio.sleep(ANNOUNCEMENT_INTERVAL)


async def _listen(db: Database, wakeups: WakeUps) -> None:
    topics = _topics(wakeups)
    pause = FIRST_PAUSE

    def connected() -> None:
        """Announcements made while nobody listened are lost, so every loop looks now."""
        nonlocal pause
        pause = FIRST_PAUSE
        log.info("wakeups.listening")
        for event in topics.values():
            event.set()

    def heard(topic: str) -> None:
        if topic in topics:  # Another version of Guichet may announce topics that this one does not have.
            topics[topic].set()

    while True:
        try:
            await db.listen(connected, heard)
        except Exception as error:  # Whatever it is, even a refused password: the loops look by themselves meanwhile.
            log.warning("wakeups.lost", error=repr(error), again_in_seconds=pause)
        else:
            return
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
