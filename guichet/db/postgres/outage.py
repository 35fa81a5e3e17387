"""A time in which no connection to PostgreSQL can be made: one task looks for the primary, for the whole process."""

import asyncio
from typing import Final

from guichet.db.errors import StorageError
from guichet.db.postgres.errors import translated
from guichet.db.postgres.hosts import PostgresHosts
from guichet.logs import log

#: How long to wait for a server that went away, in seconds from the first failure: callers wait during a restart, and
#: fail at once during a longer outage.
RECONNECT_TIMEOUT: Final = 5.0
#: Callers that wait look this often whether a connection of the pool, which still lives, became free.
_POLL_INTERVAL: Final = 0.5
_FIND_AGAIN_AFTER: Final = 0.2


class Outage:
    """Ends by itself as soon as there is a primary."""

    def __init__(self, hosts: PostgresHosts) -> None:
        self._hosts = hosts
        self._search: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        #: When connections were first found impossible, in the loop's time; None once the pool has one again.
        self._began_at: float | None = None

    @property
    def is_on(self) -> bool:
        return self._search is not None

    def begin(self) -> None:
        """Nothing happens if it has begun already."""
        if self._search is None:
            log.warning("database.away", error=str(self._hosts.fault()))
            self._began_at = self._began_at or asyncio.get_running_loop().time()
            self._ended.clear()
            self._search = asyncio.create_task(self._end_when_found(), name="search for the primary")

    async def wait(self) -> None:
        """Returns when it ended, or sooner to look at the pool. Raises NoPrimary RECONNECT_TIMEOUT after it began."""
        now = asyncio.get_running_loop().time()
        left = (self._began_at or now) + RECONNECT_TIMEOUT - now
        if left <= 0:
            raise self._hosts.fault()
        try:
            async with asyncio.timeout(min(left, _POLL_INTERVAL)):
                await self._ended.wait()
        except TimeoutError:
            return

    def reset(self) -> None:
        """The pool has a connection: a next failure begins the time to wait anew."""
        self._began_at = None

    async def close(self) -> None:
        if self._search is not None:
            self._search.cancel()
            await asyncio.wait({self._search})

    async def _end_when_found(self) -> None:
        try:
            delay = 0.0
            while not await self._found(delay):
                delay = _FIND_AGAIN_AFTER
            log.info("database.back")
        finally:
            self._search = None
            self._ended.set()

    async def _found(self, delay: float) -> bool:
        await asyncio.sleep(delay)
        try:
            with translated():
                await self._hosts.find_primary()
        except (StorageError, OSError):
            return False
        return True
