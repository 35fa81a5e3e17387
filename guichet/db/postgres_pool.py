"""The connections of one process to PostgreSQL: a pool that waits while the server restarts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from weakref import WeakSet

import asyncpg

from guichet.db.errors import ConnectionLost, NoPrimary, ReadOnlyServer, StorageUnavailable
from guichet.db.postgres_connection import BouncerConnection, Connection, PostgresConnection
from guichet.db.postgres_errors import NO_CONNECTION, translated
from guichet.db.postgres_hosts import PostgresHosts
from guichet.db.postgres_outage import Outage
from guichet.logs import log

POOL_SIZE: Final = 16
#: How long to wait for a free connection, and for one statement, in seconds.
ACQUIRE_TIMEOUT: Final = 10.0
STATEMENT_TIMEOUT: Final = 30.0
#: Every statement of Guichet reads along an index, in its order, up to a limit. While statistics lag behind a queue
#: that just grew, the planner prefers a bitmap, which reads the whole queue at every claim; and a plan that was made
#: and kept while the table was empty reads all of it for ever. JIT is off because, before version 18, the plans that
#: remain have costs so high that each would be compiled.
PLANNER_SETTINGS: Final = {"enable_bitmapscan": "off", "enable_seqscan": "off", "jit": "off"}
#: How often the hosts that are not the primary are asked whether one of them was promoted, in seconds: usually, and
#: while a statement has had no answer for longer than _HANGS_AFTER.
_LOOK_INTERVAL: Final = 10.0
_LOOK_INTERVAL_WHILE_HANGING: Final = 2.0
_HANGS_AFTER: Final = 1.5
_WATCH_INTERVAL: Final = 0.5


class ConnectionPool:
    """`prepared_statements`: how many each connection keeps prepared; 0 behind PgBouncer. `statement_timeout`: how long
    to wait for one statement, in seconds."""

    def __init__(
        self,
        hosts: PostgresHosts,
        *,
        prepared_statements: int,
        server_settings: dict[str, str],
        statement_timeout: float = STATEMENT_TIMEOUT,
    ) -> None:
        self._hosts = hosts
        self._outage = Outage(hosts)
        self._statement_timeout = statement_timeout
        self._prepared_statements = prepared_statements
        self._server_settings = server_settings
        self._connections: WeakSet[PostgresConnection] = WeakSet()
        #: Since when each connection is in use, in the loop's time.
        self._in_use: dict[Connection, float] = {}
        self._watch: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connects once, so that a wrong address is an error at the start."""
        with translated():
            self._pool = await asyncpg.create_pool(
                connect=self._connect,
                min_size=0,
                max_size=POOL_SIZE,
                connection_class=PostgresConnection if self._prepared_statements else BouncerConnection,
                init=_prepare,
                reset=_keep_session,
                command_timeout=self._statement_timeout,
                statement_cache_size=self._prepared_statements,
                server_settings=self._server_settings,
                max_inactive_connection_lifetime=300,
            )
            await self._pool.release(await self._pool.acquire(timeout=ACQUIRE_TIMEOUT))
        if self._hosts.may_disagree:
            self._watch = asyncio.create_task(self._watch_hosts(), name="postgresql hosts")

    async def close(self) -> None:
        await self._outage.close()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})
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
                except (*NO_CONNECTION, NoPrimary):
                    if self._pool.is_closing():
                        raise
                else:
                    self._outage.reset()
                    self._in_use[connection] = asyncio.get_running_loop().time()
                    return connection
            self._outage.begin()
            await self._outage.wait()

    async def release(self, connection: Connection, failure: BaseException | None) -> None:
        """`failure`: the exception that ended the connection's use, if any. A lost connection means that the others are
        lost or soon will be: idle ones are replaced before they are used again."""
        self._in_use.pop(connection, None)
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

    async def _connect(self, *_: Any, **options: Any) -> PostgresConnection:
        """In place of `asyncpg.connect`. In an outage only the outage's own task connects."""
        if self._outage.is_on:
            raise self._hosts.fault()
        connection = await self._hosts.connect(**options)
        self._connections.add(connection)
        self._drop_outdated()
        return connection

    def _drop_outdated(self) -> None:
        """Ends the connections to a primary that was replaced meanwhile; it may still answer, or hang for long."""
        for connection in [each for each in self._connections if self._hosts.is_outdated(each)]:
            self._connections.discard(connection)
            connection.terminate()

    async def _watch_hosts(self) -> None:
        """Notices the promotion of another host while connections to the old primary still live, or hang."""
        loop = asyncio.get_running_loop()
        looked_at = loop.time()
        while True:
            await asyncio.sleep(_WATCH_INTERVAL)
            now = loop.time()
            hangs = any(now - since > _HANGS_AFTER for since in self._in_use.values())
            if self._outage.is_on or now - looked_at < (_LOOK_INTERVAL_WHILE_HANGING if hangs else _LOOK_INTERVAL):
                continue
            try:
                await self._hosts.look_at_others()
            except Exception as error:  # It looks again: without it, a promotion would be noticed late.
                log.error("database.look_failed", error=repr(error))
            self._drop_outdated()
            looked_at = loop.time()


async def _prepare(connection: Connection) -> None:
    await connection.set_type_codec("uuid", schema="pg_catalog", encoder=str, decoder=str, format="text")


async def _keep_session(connection: Connection) -> None:
    """In place of asyncpg's reset, which costs a round trip: no statement of ours changes the session's state."""
