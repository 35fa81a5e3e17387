"""PostgreSQL through asyncpg: statements prepared once per connection, no ORM, no adapter in between."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import asyncpg
from sqlalchemy import Executable
from sqlalchemy.dialects.postgresql.asyncpg import dialect as postgresql_dialect

from guichet.storage.engine import ConstraintViolated, Row, StatementCache, StorageUnavailable

#: What the pool lends; asyncpg's own generic proxies say nothing more here.
Connection = Any

POOL_SIZE: Final = 16
#: How long to wait for a free connection, and for one statement, in seconds.
ACQUIRE_TIMEOUT: Final = 10.0
STATEMENT_TIMEOUT: Final = 30.0

_UNAVAILABLE: Final = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,
)


class PostgresDatabase:
    """See `engine.Database`. Cost of `write`: one round trip; of `transaction`: two more than its statements."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._statements = StatementCache(postgresql_dialect())  # type: ignore[no-untyped-call]

    async def open(self) -> None:
        with _translated():
            self._pool = await asyncpg.create_pool(
                self._url,
                min_size=1,
                max_size=POOL_SIZE,
                init=_prepare_connection,
                reset=_leave_as_is,
                command_timeout=STATEMENT_TIMEOUT,
                statement_cache_size=512,
                max_inactive_connection_lifetime=300,
            )

    async def close(self) -> None:
        try:
            await asyncio.wait_for(self._pool.close(), 5)
        except TimeoutError:
            self._pool.terminate()

    async def one(self, statement: Executable, **params: Any) -> Row | None:
        compiled = self._statements[statement]
        async with self._connection() as connection:
            row: Row | None = await connection.fetchrow(compiled.text, *compiled.positional(params))
            return row

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        async with self._connection() as connection:
            rows: list[Row] = await connection.fetch(compiled.text, *compiled.positional(params))
            return rows

    # Nothing blocks the loop here, and one statement is its own transaction: four ways of asking are two.

    async def scan(self, statement: Executable, **params: Any) -> list[Row]:
        return await self.all(statement, **params)

    async def write(self, statement: Executable, **params: Any) -> Row | None:
        return await self.one(statement, **params)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["_Transaction"]:
        async with self._connection() as connection, connection.transaction():
            yield _Transaction(connection, self._statements)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        with _translated():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
                yield connection


class _Transaction:
    """See `engine.Transaction`."""

    __slots__ = ("_connection", "_statements")

    def __init__(self, connection: Connection, statements: StatementCache) -> None:
        self._connection = connection
        self._statements = statements

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


async def _prepare_connection(connection: Connection) -> None:
    await connection.set_type_codec("uuid", schema="pg_catalog", encoder=str, decoder=str, format="text")


async def _leave_as_is(connection: Connection) -> None:
    """No session state is ever set, so a returned connection needs no round trip to forget it."""


@contextmanager
def _translated() -> Iterator[None]:
    """Driver errors become ours; a body's own exceptions pass."""
    try:
        yield
    except asyncpg.IntegrityConstraintViolationError as error:
        raise ConstraintViolated(str(error.constraint_name)) from error
    except _UNAVAILABLE as error:
        raise StorageUnavailable(str(error) or type(error).__name__) from error
