"""PostgreSQL through asyncpg: statements prepared once per connection, no ORM, no adapter in between.

The server may go away and come back under load. What was not sent yet waits for it (`PATIENCE`); a read is asked again;
a write whose answer was lost is an error to its caller, because nobody can tell whether it happened.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import asyncpg
from sqlalchemy import Executable
from sqlalchemy.dialects.postgresql.asyncpg import dialect as postgresql_dialect

from guichet.db.array_statements import ArrayStatements, arrays
from guichet.db.engine import ConstraintViolated, Row, StatementCache, StorageError, StorageUnavailable

#: What the pool lends; asyncpg's own generic proxies say nothing more here.
Connection = Any

POOL_SIZE: Final = 16
#: How long to wait for a free connection, and for one statement, in seconds.
ACQUIRE_TIMEOUT: Final = 10.0
STATEMENT_TIMEOUT: Final = 30.0
#: How long a server that went away is waited for, in seconds from the first failure: a restart costs a wait, an outage
#: fails at once.
PATIENCE: Final = 5.0
_RETRY: Final = 0.1
#: Everything here reads along an index, in its order, up to a limit. Where statistics lag behind a queue that just
#: grew, a bitmap looks cheaper and reads the whole queue at every claim; and a plan that was made, and kept, when the
#: table was empty reads all of what has become of it. Nothing is compiled: before version 18 a plan that is not wanted
#: has a cost so high that it would be, each time.
_PLANS: Final = {"enable_bitmapscan": "off", "enable_seqscan": "off", "jit": "off"}
#: A lost connection is replaced, and what is safe to repeat is repeated, so many times.
_TRIES: Final = 3
_CHANNEL: Final = "guichet"
#: Shared by every database that this process opens: the text of a statement depends on the dialect alone.
_STATEMENTS: Final = StatementCache(postgresql_dialect())  # type: ignore[no-untyped-call]
_ARRAY_STATEMENTS: Final = ArrayStatements()
#: A listener that hears nothing asks whether its server is still there, in seconds.
_STILL_THERE: Final = 30.0

#: The server is not there, not ready yet, or has no place left: nothing was sent.
_AWAY: Final = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
#: The connection is gone, and with it whatever was not committed.
_LOST: Final = (
    ConnectionError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
)
#: What the driver says when it refuses to send: it saw the connection's end already.
_NEVER_LEFT: Final = ("connection is closed", "cannot switch to state", "the underlying connection is closed")
_UNAVAILABLE: Final = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ObjectNotInPrerequisiteStateError,
    asyncpg.TransactionRollbackError,
)


class ConnectionLost(StorageUnavailable):
    """The connection went away under a statement; whether a write happened is unknown."""


class NotSent(ConnectionLost):
    """It had gone away before: the statement never left, and may be sent again whatever it is."""


class ReadOnly(StorageUnavailable):
    """The primary became a standby under the connection: only a new one finds the new primary."""


class PostgresDatabase:
    """See `engine.Database`. Cost of `write`: one round trip; of `transaction`: two more than its statements.

    `bouncer`: `url` leads to PgBouncer in transaction mode. No prepared statement then outlives its transaction (each
    statement costs one round trip more), announcements are heard only through `listen_url`, a direct address, and what
    `_PLANS` says is said to the role instead (docs/operations/postgresql.md).
    """

    def __init__(self, url: str, *, bouncer: bool = False, listen_url: str | None = None) -> None:
        self._url = url
        self._statement_cache = 0 if bouncer else 512
        self._server_settings = {} if bouncer else dict(_PLANS)
        self._listen_url = listen_url or (None if bouncer else url)
        self._statements = _STATEMENTS
        self._array_statements = _ARRAY_STATEMENTS
        self._away_since: float | None = None
        self._acquired_count = 0

    async def open(self) -> None:
        with _translated_errors():
            self._pool = await asyncpg.create_pool(
                self._url,
                min_size=0,
                max_size=POOL_SIZE,
                init=_prepare_connection,
                reset=_leave_as_is,
                timeout=ACQUIRE_TIMEOUT,
                command_timeout=STATEMENT_TIMEOUT,
                statement_cache_size=self._statement_cache,
                server_settings=self._server_settings,
                max_inactive_connection_lifetime=300,
            )
            await self._pool.release(await self._pool.acquire(timeout=ACQUIRE_TIMEOUT))

    async def close(self) -> None:
        try:
            await asyncio.wait_for(self._pool.close(), 5)
        except TimeoutError:
            self._pool.terminate()

    async def one(self, statement: Executable, **params: Any) -> Row | None:
        compiled = self._statements[statement]
        row: Row | None = await self._ask("fetchrow", compiled.text, compiled.positional(params), again=ConnectionLost)
        return row

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        rows: list[Row] = await self._ask("fetch", compiled.text, compiled.positional(params), again=ConnectionLost)
        return rows

    async def scan(self, statement: Executable, **params: Any) -> list[Row]:
        return await self.all(statement, **params)  # Nothing here blocks the loop.

    async def write(self, statement: Executable, **params: Any) -> Row | None:
        compiled = self._statements[statement]
        row: Row | None = await self._ask("fetchrow", compiled.text, compiled.positional(params))
        return row

    async def execute_returning(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        rows: list[Row] = await self._ask("fetch", compiled.text, compiled.positional(params))
        return rows

    async def execute_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            await self.execute_returning(self._array_statements[statement], **arrays(rows))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["_Transaction"]:
        connection, transaction = await self._begin()
        async with self._acquired(connection):
            try:
                yield _Transaction(connection, self._statements, self._array_statements)
            except BaseException:
                with suppress(*_LOST, *_UNAVAILABLE):  # A lost connection has rolled back by itself.
                    await transaction.rollback()
                raise
            await transaction.commit()

    async def wait_for_replication(self) -> None:
        """A record of no meaning in the WAL, whose commit waits for the standby; and with it all that is before it."""
        await self._ask("fetch", "SELECT pg_logical_emit_message(true, 'guichet', '')", (), again=ConnectionLost)

    def pool_use(self) -> tuple[int, int]:
        return self._pool.get_size() - self._pool.get_idle_size(), self._pool.get_max_size()

    async def announce(self, topic: str) -> None:
        await self._ask("fetch", "SELECT pg_notify($1, $2)", (_CHANNEL, topic))

    async def listen(self, connected: Callable[[], None], heard: Callable[[str], None]) -> None:
        if self._listen_url is None:
            return
        with _translated_errors():
            connection: Connection = await asyncpg.connect(self._listen_url, timeout=ACQUIRE_TIMEOUT)
            try:
                lost = asyncio.Event()
                connection.add_termination_listener(lambda _: lost.set())
                await connection.add_listener(_CHANNEL, lambda *said: heard(said[-1]))
                connected()
                while not await _set_within(lost, _STILL_THERE):
                    await connection.execute("SELECT 1", timeout=ACQUIRE_TIMEOUT)
            finally:
                connection.terminate()
        raise ConnectionLost("the connection that listens was closed")

    async def _ask(self, how: str, text: str, values: Sequence[Any], again: type[ConnectionLost] = NotSent) -> Any:
        """`again`: what is known of a lost connection when the statement is sent once more; a read changes nothing."""
        for _ in range(_TRIES - 1):
            with suppress(again):
                return await self._ask_once(how, text, values)
        return await self._ask_once(how, text, values)

    async def _ask_once(self, how: str, text: str, values: Sequence[Any]) -> Any:
        connection = await self._acquire()
        try:
            answer = await getattr(connection, how)(text, *values)
        except BaseException as error:
            failure = _translate(error)
            await self._release(connection, failure)
            if failure is None:
                raise
            raise failure from error
        await self._release(connection, None)
        return answer

    async def _begin(self) -> tuple[Connection, Any]:
        """A transaction on a connection that answered: nothing ran on one that was lost while it lay idle."""
        for tries_left in reversed(range(_TRIES)):
            connection = await self._acquire()
            transaction = connection.transaction()
            try:
                with _translated_errors():
                    await transaction.start()
            except BaseException as error:
                await self._release(connection, error)
                if not tries_left or not isinstance(error, ConnectionLost):
                    raise
            else:
                break
        return connection, transaction

    @asynccontextmanager
    async def _acquired(self, connection: Connection) -> AsyncIterator[None]:
        failure: BaseException | None = None
        try:
            with _translated_errors():
                yield
        except BaseException as error:
            failure = error
            raise
        finally:
            await self._release(connection, failure)

    async def _release(self, connection: Connection, failure: BaseException | None) -> None:
        """Whatever ended one connection ended the others or soon will: the idle ones are not lent again."""
        lost = isinstance(failure, ConnectionLost | ReadOnly)
        cancelled = failure is not None and not isinstance(failure, Exception)  # Perhaps in the middle of a COMMIT.
        if lost or cancelled:
            with suppress(asyncpg.InterfaceError):  # Closed already.
                connection.terminate()
        if lost:
            await self._pool.expire_connections()
        self._acquired_count -= 1
        with suppress(Exception):  # What was asked is answered; how its connection ends is the pool's affair.
            await self._pool.release(connection)

    async def _acquire(self) -> Connection:
        """A connection of the pool. While the server is away nothing can be sent, so waiting repeats nothing."""
        while True:
            # One that is free costs no timer; one that must be made first has a time limit of its own.
            patience = ACQUIRE_TIMEOUT if self._acquired_count >= POOL_SIZE else None
            with _translated_errors():
                try:
                    connection = await self._pool.acquire(timeout=patience)
                except TimeoutError:
                    raise StorageUnavailable(f"no connection was free within {ACQUIRE_TIMEOUT:g} s") from None
                except _AWAY:
                    if self._pool.is_closing() or not self._worth_waiting():
                        raise
                else:
                    self._away_since = None
                    self._acquired_count += 1
                    return connection
            await asyncio.sleep(_RETRY)

    def _worth_waiting(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self._away_since is None:
            self._away_since = now
        return now - self._away_since < PATIENCE


class _Transaction:
    """See `engine.Transaction`."""

    __slots__ = ("_array_statements", "_connection", "_statements")

    def __init__(self, connection: Connection, statements: StatementCache, array_statements: ArrayStatements) -> None:
        self._connection = connection
        self._statements = statements
        self._array_statements = array_statements

    async def one(self, statement: Executable, **params: Any) -> Row | None:
        compiled = self._statements[statement]
        row: Row | None = await self._connection.fetchrow(compiled.text, *compiled.positional(params))
        return row

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        rows: list[Row] = await self._connection.fetch(compiled.text, *compiled.positional(params))
        return rows

    async def write(self, statement: Executable, **params: Any) -> Row | None:
        return await self.one(statement, **params)

    async def execute_returning(self, statement: Executable, **params: Any) -> list[Row]:
        return await self.all(statement, **params)

    async def execute_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> None:
        await self.execute_many_returning(statement, rows)

    async def execute_many_returning(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> list[Row]:
        return await self.all(self._array_statements[statement], **arrays(rows)) if rows else []


async def _prepare_connection(connection: Connection) -> None:
    await connection.set_type_codec("uuid", schema="pg_catalog", encoder=str, decoder=str, format="text")


async def _leave_as_is(connection: Connection) -> None:
    """No session state is ever set, so a returned connection needs no round trip to forget it."""


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Driver errors become ours; a body's own exceptions pass."""
    try:
        yield
    except Exception as error:
        ours = _translate(error)
        if ours is None:
            raise
        raise ours from error


def _translate(error: BaseException) -> StorageError | None:
    """What a driver's error means here; None: it is not the driver's."""
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return ConstraintViolated(str(error.constraint_name))
    if isinstance(error, _LOST):
        lost = NotSent if str(error).startswith(_NEVER_LEFT) else ConnectionLost
        return lost(str(error) or type(error).__name__)
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return ReadOnly(str(error))
    if isinstance(error, _UNAVAILABLE):
        return StorageUnavailable(str(error) or type(error).__name__)
    return None
