"""A transaction on a connection of the pool. See `engine.Transaction`."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Executable

from guichet.db.engine import Row
from guichet.db.errors import ConnectionLost
from guichet.db.postgres.array_statements import ArrayStatements, arrays
from guichet.db.postgres.connection import Connection
from guichet.db.postgres.errors import translated
from guichet.db.postgres.pool import ConnectionPool
from guichet.db.statement_cache import StatementCache


class PostgresTransaction:
    __slots__ = ("_array_statements", "_connection", "_statements")

    def __init__(self, connection: Connection, statements: StatementCache, array_statements: ArrayStatements) -> None:
        self._connection = connection
        self._statements = statements
        self._array_statements = array_statements

    async def one(self, statement: Executable, **params: Any) -> Row | None:
        rows = await self.all(statement, **params)
        return rows[0] if rows else None

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


async def begin(pool: ConnectionPool, attempts: int) -> tuple[Connection, Any]:
    """A connection, and the transaction begun on it. When a connection was lost while it was idle, BEGIN is sent on
    another one, up to `attempts` times in all."""
    for attempts_left in reversed(range(attempts)):
        connection = await pool.acquire()
        transaction = connection.transaction()
        try:
            with translated():
                await transaction.start()
        except BaseException as error:
            await pool.release(connection, error)
            if not attempts_left or not isinstance(error, ConnectionLost):
                raise
        else:
            break
    return connection, transaction
