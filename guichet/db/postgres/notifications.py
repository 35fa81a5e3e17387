"""What processes announce to each other through PostgreSQL (`LISTEN`, `NOTIFY`)."""

import asyncio
from collections.abc import Callable
from typing import Final

from guichet.db.errors import ConnectionLost
from guichet.db.postgres.connection import Connection
from guichet.db.postgres.errors import translated
from guichet.db.postgres.hosts import PostgresHosts
from guichet.db.postgres.pool import ACQUIRE_TIMEOUT

CHANNEL: Final = "guichet"
#: Announces a topic ($2) on a channel. Its commit waits for the standby, like every other.
NOTIFY: Final = "SELECT pg_notify($1, $2)"
#: A listening connection that received nothing for this long is tested, in seconds.
_TEST_INTERVAL: Final = 30.0


async def listen(hosts: PostgresHosts, connected: Callable[[], None], heard: Callable[[str], None]) -> None:
    """See `engine.Database.listen`. It has a connection of its own."""
    with translated():
        connection: Connection = await hosts.connect()
        try:
            lost = asyncio.Event()
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(CHANNEL, lambda *message: heard(message[-1]))
            connected()
            while not await _is_set_within(lost, _TEST_INTERVAL):
                await connection.execute("SELECT 1", timeout=ACQUIRE_TIMEOUT)
        finally:
            connection.terminate()
    raise ConnectionLost("the connection that listens was closed")


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
