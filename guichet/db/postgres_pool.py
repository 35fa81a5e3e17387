"""The connections of one process to PostgreSQL: a pool that waits while the server restarts."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import asyncpg

from guichet.db.errors import ConnectionLost, ReadOnlyServer, StorageUnavailable
from guichet.db.postgres_errors import NO_CONNECTION, translated

#: A connection of the pool. asyncpg's generic proxy class would add nothing here.
Connection = Any

POOL_SIZE: Final = 16
#: How long to wait for a free connection, and for one statement, in seconds.
ACQUIRE_TIMEOUT: Final = 10.0
STATEMENT_TIMEOUT: Final = 30.0
#: How long to wait for a server that went away, in seconds from the first failure: callers wait during a restart, and
#: fail at once during a longer outage.
RECONNECT_TIMEOUT: Final = 5.0
_RECONNECT_INTERVAL: Final = 0.1
#: Every statement of Guichet reads along an index, in its order, up to a limit. While statistics lag behind a queue
#: that just grew, the planner prefers a bitmap, which reads the whole queue at every claim; and a plan that was made
#: and kept while the table was empty reads all of it for ever. JIT is off because, before version 18, the plans that
#: remain have costs so high that each would be compiled.
PLANNER_SETTINGS: Final = {"enable_bitmapscan": "off", "enable_seqscan": "off", "jit": "off"}
#: When the server's machine falls silent (no network, no power), its connections are given up within ten seconds, and
#: not only after STATEMENT_TIMEOUT: probes after five seconds, and no answer to anything for ten (milliseconds).
_SILENCE: Final = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 10_000}


class _Connection(asyncpg.Connection):
    """Never takes a commit for done that the synchronous standby did not confirm (D107)."""

    def _process_log_message(self, fields: dict[str, str], last_query: str | None) -> None:
        """Called with each warning of the server, before its statement ends.

        When somebody cancels a wait for the standby (an administrator, a cancel request that came late), PostgreSQL
        warns that the transaction is committed on the primary alone, and then answers as if all were well. Closing the
        connection makes it what it is: an answer that was lost. Messages are translated, and the code of this warning
        is that of all warnings; the name of the server's source file tells it apart.
        """
        if fields.get("F") == "syncrep.c":
            self.terminate()


class _BouncerConnection(_Connection):
    """Behind PgBouncer, a statement that outlasts its time is given up by closing its connection.

    A cancel request comes as a connection of its own, and may reach the server when another client's COMMIT is there.
    PgBouncer 1.18 (Debian 12) also ends with an error when many come at once (D107).
    """

    def _cancel_current_command(
        self, waiter: asyncio.Future[None], cancel_waiter: asyncio.Future[None] | None = None
    ) -> None:
        """Called when a statement's time is over or its task was cancelled, before the statement's waiter is told."""
        asyncio.get_running_loop().call_soon(self.terminate)
        for each in (waiter, cancel_waiter):
            if each is not None and not each.done():
                each.set_result(None)


class ConnectionPool:
    """`prepared_statements`: how many each connection keeps prepared; 0 behind PgBouncer. `statement_timeout`: how long
    to wait for one statement, in seconds. `size`: the most connections."""

    def __init__(
        self,
        url: str,
        *,
        prepared_statements: int,
        server_settings: dict[str, str],
        statement_timeout: float = STATEMENT_TIMEOUT,
        size: int = POOL_SIZE,
    ) -> None:
        self._url = url
        self._size = size
        self._statement_timeout = statement_timeout
        self._prepared_statements = prepared_statements
        self._server_settings = server_settings
        #: When the server was first found away, in the loop's time; None while it is there.
        self._away_since: float | None = None

    async def open(self, *, connect: bool = True) -> None:
        """Connects once, so that a wrong address is an error at the start, unless `connect` is False."""
        with translated():
            self._pool = await asyncpg.create_pool(
                self._url,
                min_size=0,
                max_size=self._size,
                connection_class=_Connection if self._prepared_statements else _BouncerConnection,
                init=_prepare,
                reset=_keep_session,
                timeout=ACQUIRE_TIMEOUT,
                command_timeout=self._statement_timeout,
                statement_cache_size=self._prepared_statements,
                server_settings=self._server_settings,
                max_inactive_connection_lifetime=300,
            )
            if connect:
                await self._pool.release(await self._pool.acquire(timeout=ACQUIRE_TIMEOUT))

    async def close(self) -> None:
        try:
            await asyncio.wait_for(self._pool.close(), 5)
        except TimeoutError:
            self._pool.terminate()

    def use(self) -> tuple[int, int]:
        """Connections in use, and the most there may be."""
        return self._pool.get_size() - self._pool.get_idle_size(), self._pool.get_max_size()

    @asynccontextmanager
    async def releasing(self, connection: Connection) -> AsyncIterator[None]:
        """Releases the connection when the block ends, and raises the driver's errors as ours."""
        failure: BaseException | None = None
        try:
            with translated():
                yield
        except BaseException as error:
            failure = error
            raise
        finally:
            await self.release(connection, failure)

    async def acquire(self) -> Connection:
        """A connection, to be given back by `release`. Waits up to RECONNECT_TIMEOUT for a server that is away, since
        nothing has been sent yet."""
        while True:
            with translated():
                try:
                    async with asyncio.timeout(ACQUIRE_TIMEOUT):
                        connection = await self._pool.acquire()
                except TimeoutError:
                    raise StorageUnavailable(f"no connection was free within {ACQUIRE_TIMEOUT:g} s") from None
                except NO_CONNECTION:
                    if self._pool.is_closing() or not self._may_come_back():
                        raise
                else:
                    self._away_since = None
                    return connection
            await asyncio.sleep(_RECONNECT_INTERVAL)

    async def release(self, connection: Connection, failure: BaseException | None) -> None:
        """`failure`: the exception that ended the connection's use, if any. A lost connection means that the others are
        lost or soon will be: idle ones are replaced before they are used again."""
        lost = isinstance(failure, ConnectionLost | ReadOnlyServer)
        # A cancelled statement may be in the middle of a COMMIT.
        cancelled = failure is not None and not isinstance(failure, Exception)
        if lost or cancelled:
            with suppress(asyncpg.InterfaceError):  # It may be closed already.
                connection.terminate()
        if lost:
            await self._pool.expire_connections()
        with suppress(Exception):  # The caller has its answer; how the connection ends concerns the pool only.
            await self._pool.release(connection)

    def _may_come_back(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self._away_since is None:
            self._away_since = now
        return now - self._away_since < RECONNECT_TIMEOUT


async def _prepare(connection: Connection) -> None:
    _give_up_when_silent(connection._transport.get_extra_info("socket"))  # asyncpg has no other way to it
    await connection.set_type_codec("uuid", schema="pg_catalog", encoder=str, decoder=str, format="text")


def _give_up_when_silent(connected: socket.socket) -> None:
    if connected.family == socket.AF_UNIX:
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SILENCE.items():
        if hasattr(socket, name):  # Linux has all of them, other systems some.
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def _keep_session(connection: Connection) -> None:
    """In place of asyncpg's reset, which costs a round trip: no statement of ours changes the session's state."""
