"""PostgreSQL through asyncpg. Statements are prepared once per connection.

The server may go away and come back under load. A statement that was not sent yet waits for it (`pool.py`); a
read is sent again; a write whose answer was lost raises ConnectionLost, because nobody can tell whether it happened.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Executable, text

from guichet.db.engine import PoolUse, Row
from guichet.db.errors import ConnectionLost, StatementNotSent
from guichet.db.postgres.array_statements import ArrayStatements, arrays
from guichet.db.postgres.dialect import PostgresDialect
from guichet.db.postgres.errors import BROKEN
from guichet.db.postgres.hosts import PostgresHosts
from guichet.db.postgres.notifications import CHANNEL, NOTIFY, listen
from guichet.db.postgres.outage import Outage
from guichet.db.postgres.pool import (
    PLANNER_SETTINGS,
    READ_CONNECTIONS,
    STATEMENT_TIMEOUT,
    WRITE_CONNECTIONS,
    ConnectionPool,
)
from guichet.db.postgres.timelines import Timelines
from guichet.db.postgres.transaction import PostgresTransaction, begin
from guichet.db.postgres.watch import HostWatch
from guichet.db.statement_cache import StatementCache

#: How often in all a statement is sent when its connection was lost and it is safe to send it again.
_ATTEMPTS: Final = 3
_COMMIT_LOCALLY: Final = text("SET LOCAL synchronous_commit = local")
#: Shared by every database that this process opens: the text of a statement depends on the dialect alone.
_STATEMENTS: Final = StatementCache(PostgresDialect())  # type: ignore[no-untyped-call]
_ARRAY_STATEMENTS: Final = ArrayStatements()


class PostgresDatabase:
    """See `engine.Database`. Cost of `write`: one round trip; of `transaction`: two more than its statements.

    Reads have connections of their own: while the standby is away, writes keep theirs until it is back
    (docs/decisions.md, "Reads apart").

    `bouncer`: `url` leads to PgBouncer in transaction mode. No prepared statement then outlives its transaction (each
    statement costs one round trip more), announcements are heard only through `listen_url`, a direct address, and the
    planner's settings are set for the role instead (docs/operations/postgresql.md).
    `statement_timeout`: how long to wait for one statement, in seconds. `read_connections`, `write_connections`: how
    many there may be. `timelines_file`: see `Timelines`.
    """

    def __init__(
        self,
        url: str,
        *,
        bouncer: bool = False,
        listen_url: str | None = None,
        statement_timeout: float = STATEMENT_TIMEOUT,
        read_connections: int = READ_CONNECTIONS,
        write_connections: int = WRITE_CONNECTIONS,
        timelines_file: Path | None = None,
    ) -> None:
        timelines = Timelines(timelines_file)
        hosts = PostgresHosts(url, bouncer=bouncer, timelines=timelines)
        self._outage = Outage(hosts)
        self._reads, self._writes = (
            ConnectionPool(
                hosts,
                self._outage,
                size=size,
                on_loss=self._expire_connections,
                prepared_statements=0 if bouncer else 512,
                server_settings={} if bouncer else dict(PLANNER_SETTINGS),
                statement_timeout=statement_timeout,
            )
            for size in (read_connections, write_connections)
        )
        self._watch = HostWatch(hosts, self._outage, (self._reads, self._writes))
        self._listen_hosts = None if bouncer else hosts
        if listen_url:
            self._listen_hosts = PostgresHosts(listen_url, timelines=timelines)
        self._statements = _STATEMENTS
        self._array_statements = _ARRAY_STATEMENTS

    async def open(self, *, connect: bool = True) -> None:
        """`connect`: False for a database that may be away now."""
        await self._writes.open()
        await self._reads.open()
        if connect:
            await self._reads.connect_once()
        self._watch.start()

    async def close(self) -> None:
        await self._outage.close()
        await self._watch.close()
        await asyncio.gather(self._reads.close(), self._writes.close())

    async def _expire_connections(self) -> None:
        """A lost connection means that those of both pools are lost, lead to a server that is no longer the primary, or
        soon will: idle ones are replaced before they are used again."""
        await self._reads.expire_connections()
        await self._writes.expire_connections()

    async def one(self, statement: Executable, **params: Any) -> Row | None:
        rows = await self.all(statement, **params)
        return rows[0] if rows else None

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        values = compiled.positional(params)
        return await self._fetch(self._reads, compiled.text, values, send_again_after=ConnectionLost)

    async def scan(self, statement: Executable, **params: Any) -> list[Row]:
        return await self.all(statement, **params)  # asyncpg never blocks the loop.

    async def write(self, statement: Executable, **params: Any) -> Row | None:
        rows = await self.execute_returning(statement, **params)
        return rows[0] if rows else None

    async def write_locally(self, statement: Executable, **params: Any) -> Row | None:
        async with self.transaction() as tx:
            await tx.write(_COMMIT_LOCALLY)
            return await tx.write(statement, **params)

    async def execute_returning(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        values = compiled.positional(params)
        return await self._fetch(self._writes, compiled.text, values, send_again_after=StatementNotSent)

    async def execute_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            await self.execute_returning(self._array_statements[statement], **arrays(rows))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[PostgresTransaction]:
        connection, transaction = await begin(self._writes, _ATTEMPTS)
        async with self._writes.releasing(connection):
            try:
                yield PostgresTransaction(connection, self._statements, self._array_statements)
            except BaseException:
                with suppress(*BROKEN):  # The server rolls back by itself when the connection is lost.
                    await transaction.rollback()
                raise
            await transaction.commit()

    async def wait_for_replication(self) -> None:
        """Writes an empty message to the WAL. Its commit waits for the standby, and so for everything before it."""
        message = "SELECT pg_logical_emit_message(true, 'guichet', '')"
        await self._fetch(self._writes, message, (), send_again_after=ConnectionLost)

    def pool_use(self) -> dict[str, PoolUse]:
        return {"read": self._reads.use(), "write": self._writes.use()}

    async def announce(self, topic: str) -> None:
        await self._fetch(self._writes, NOTIFY, (CHANNEL, topic), send_again_after=StatementNotSent)

    async def listen(self, connected: Callable[[], None], heard: Callable[[str], None]) -> None:
        if self._listen_hosts is not None:
            await listen(self._listen_hosts, connected, heard)

    async def _fetch(
        self, pool: ConnectionPool, text: str, values: Sequence[Any], *, send_again_after: type[ConnectionLost]
    ) -> list[Row]:
        """The rows of one statement. `send_again_after`: ConnectionLost for a read, which changes nothing;
        StatementNotSent for a write, which may happen once only."""
        for _ in range(_ATTEMPTS - 1):
            with suppress(send_again_after):
                return await _fetch_once(pool, text, values)
        return await _fetch_once(pool, text, values)


async def _fetch_once(pool: ConnectionPool, text: str, values: Sequence[Any]) -> list[Row]:
    connection = await pool.acquire()
    async with pool.releasing(connection):
        rows: list[Row] = await connection.fetch(text, *values)
        return rows
