"""The connections of one process to PostgreSQL: a pool that waits while the server restarts.

While no connection can be made there is an outage: one task looks for the primary, for the whole process.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import asyncpg

from guichet.db.engine import PoolUse
from guichet.db.errors import ConnectionLost, NoPrimary, ReadOnlyServer, StorageError, StorageUnavailable
from guichet.db.postgres.connection import BouncerConnection, Connection, PostgresConnection
from guichet.db.postgres.errors import NO_CONNECTION, translated
from guichet.db.postgres.hosts import PostgresHosts
from guichet.logs import log

#: Connections of a process at most. Writes that wait for the standby keep theirs until it is back, so reads have their
#: own. docs/operations/ha/pgbouncer.ini counts with these numbers.
READ_CONNECTIONS: Final = 6
WRITE_CONNECTIONS: Final = 10
#: How long to wait for a free connection, and for one statement, in seconds.
ACQUIRE_TIMEOUT: Final = 10.0
STATEMENT_TIMEOUT: Final = 30.0
#: Every statement of Guichet reads along an index, in its order, up to a limit. While statistics lag behind a queue
#: that just grew, the planner prefers a bitmap, which reads the whole queue at every claim; and a plan that was made
#: and kept while the table was empty reads all of it for ever. JIT is off because, before version 18, the plans that
#: remain have costs so high that each would be compiled.
PLANNER_SETTINGS: Final = {"enable_bitmapscan": "off", "enable_seqscan": "off", "jit": "off"}
#: What writes is planned once by each connection, and not five times with the values first: the two claims of webhooks
#: take milliseconds a plan. Which rows an index has does not depend on values (`statement_cache.ConstantsInText`).
WRITE_SETTINGS: Final = {**PLANNER_SETTINGS, "plan_cache_mode": "force_generic_plan"}
#: As PostgreSQL itself spells it. asyncpg says "'utf-8'", in which PgBouncer sees another setting than the server's: it
#: sent a SET of its own before every transaction.
_BOUNCER_SETTINGS: Final = {"client_encoding": "UTF8"}
#: Statements that each connection keeps prepared, or knows the columns of, at most.
_KNOWN_STATEMENTS: Final = 512

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
        await is_set_within(self._ended, min(left, _POLL_INTERVAL))

    def reset(self) -> None:
        """The pool has a connection: another failure restarts the delay."""
        self._began_at = None

    async def close(self) -> None:
        if self._search is not None:
            self._search.cancel()
            await asyncio.wait({self._search})

    async def _end_when_found(self) -> None:
        try:
            while True:
                with suppress(StorageError, OSError), translated():
                    await self._hosts.find_primary()
                    break
                await asyncio.sleep(_FIND_AGAIN_AFTER)
            log.info("database.back")
        finally:
            self._search = None
            self._ended.set()


class ConnectionPool:
    """`size`: connections at most. `on_loss`: called when a connection was lost. `bouncer`: they lead to PgBouncer.
    `settings`: of the sessions, where they do not. `statement_timeout`: how long to wait for one statement, in seconds.
    """

    def __init__(
        self,
        hosts: PostgresHosts,
        outage: Outage,
        *,
        size: int,
        on_loss: Callable[[], Awaitable[None]],
        bouncer: bool,
        settings: Mapping[str, str],
        statement_timeout: float = STATEMENT_TIMEOUT,
    ) -> None:
        self._hosts = hosts
        self._outage = outage
        self._size = size
        self._on_loss = on_loss
        self._statement_timeout = statement_timeout
        self._bouncer = bouncer
        self._settings = _BOUNCER_SETTINGS if bouncer else settings
        #: Since when each connection is in use, in the loop's time.
        self._in_use: dict[Connection, float] = {}

    async def open(self) -> None:
        """Connections are made when they are needed."""
        with translated():
            self._pool = await asyncpg.create_pool(
                connect=self._connect,
                min_size=0,
                max_size=self._size,
                connection_class=BouncerConnection if self._bouncer else PostgresConnection,
                init=_prepare_bounced if self._bouncer else _prepare,
                reset=_keep_session,
                command_timeout=self._statement_timeout,
                statement_cache_size=_KNOWN_STATEMENTS,
                server_settings=dict(self._settings),
                max_inactive_connection_lifetime=300,
            )

    async def connect_once(self) -> None:
        """At the start, so that a wrong address is an error then."""
        with translated():
            await self._pool.release(await self._pool.acquire(timeout=ACQUIRE_TIMEOUT))

    async def close(self) -> None:
        try:
            await asyncio.wait_for(self._pool.close(), 5)
        except TimeoutError:
            self._pool.terminate()

    async def expire_connections(self) -> None:
        """Idle connections are replaced before they are used again."""
        await self._pool.expire_connections()

    def use(self) -> PoolUse:
        return PoolUse(self._pool.get_size() - self._pool.get_idle_size(), self._size)

    def hangs(self, seconds: float) -> bool:
        """Whether a connection has been in use for longer than that."""
        now = asyncio.get_running_loop().time()
        return any(now - since > seconds for since in self._in_use.values())

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
        """`failure`: the exception that ended the connection's use, if any."""
        self._in_use.pop(connection, None)
        lost = isinstance(failure, ConnectionLost | ReadOnlyServer)
        # A cancelled statement may be in the middle of a COMMIT.
        cancelled = failure is not None and not isinstance(failure, Exception)
        if lost or cancelled:
            with suppress(asyncpg.InterfaceError):  # It may be closed already.
                connection.terminate()
        if lost:
            await self._on_loss()
        with suppress(Exception):  # The caller has its answer; how the connection ends concerns the pool only.
            await self._pool.release(connection)

    async def _connect(self, *_: Any, **options: Any) -> PostgresConnection:
        """In place of `asyncpg.connect`. In an outage only the outage's own task connects."""
        if self._outage.is_on:
            raise self._hosts.fault()
        return await self._hosts.connect(**options)


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def _prepare(connection: Connection) -> None:
    await connection.set_type_codec("uuid", schema="pg_catalog", encoder=str, decoder=str, format="text")


async def _prepare_bounced(connection: Connection) -> None:
    await _prepare(connection)
    await connection.find_whether_statements_are_kept()


async def _keep_session(connection: Connection) -> None:
    """In place of asyncpg's reset, which costs a round trip: no statement of ours changes the session's state."""
