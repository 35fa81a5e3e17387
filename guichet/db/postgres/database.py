"""PostgreSQL through asyncpg. Statements are prepared once per connection.

The server may go away and come back under load. A statement that was not sent yet waits for it (`pool.py`); a read is
sent again; a write whose answer was lost raises ConnectionLost, because nobody can tell whether it happened.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import asyncpg
from sqlalchemy import Executable, text

from guichet.db.engine import Database, GroupedWrite, PoolUse, Row, Transaction
from guichet.db.errors import ConnectionLost, DatabaseUnusable, StatementNotSent
from guichet.db.postgres.connection import Connection
from guichet.db.postgres.errors import BROKEN, translated
from guichet.db.postgres.grouped import GroupedReads, GroupedWrites
from guichet.db.postgres.hosts import PostgresHosts
from guichet.db.postgres.pool import (
    ACQUIRE_TIMEOUT,
    PLANNER_SETTINGS,
    READ_CONNECTIONS,
    STATEMENT_TIMEOUT,
    WRITE_CONNECTIONS,
    WRITE_SETTINGS,
    ConnectionPool,
    Outage,
    is_set_within,
)
from guichet.db.postgres.statements import STATEMENTS, ArrayStatements, encode_rows
from guichet.db.postgres.timelines import Timelines
from guichet.logs import log
from guichet.settings import Settings

#: How often in all a statement is sent when its connection was lost and it is safe to send it again.
_ATTEMPTS: Final = 3
_ARRAY_STATEMENTS: Final = ArrayStatements()
_COMMIT_LOCALLY: Final = text("SET LOCAL synchronous_commit = local")
#: Writes an empty message to the WAL. Its commit waits for the standby, and so for everything before it.
_EMPTY_MESSAGE: Final = "SELECT pg_logical_emit_message(true, 'guichet', '')"
#: Whatever `search_path` the connection has.
_REVISION: Final = "SELECT version_num FROM public.alembic_version"
_CHANNEL: Final = "guichet"
#: Announces a topic ($2) on a channel. Its commit waits for the standby, like every other.
_NOTIFY: Final = "SELECT pg_notify($1, $2)"
#: A listening connection that received nothing for this long is tested, in seconds.
_TEST_INTERVAL: Final = 30.0
#: How often the hosts that are not the primary are asked whether one of them was promoted, in seconds: usually, and
#: while a statement has had no answer for longer than _HANGS_AFTER.
_LOOK_INTERVAL: Final = 10.0
_LOOK_INTERVAL_WHILE_HANGING: Final = 2.0
_HANGS_AFTER: Final = 1.5
_WATCH_INTERVAL: Final = 0.5


class PostgresDatabase(Database):
    """Cost of `write`: one round trip; of `transaction`: two more than its statements.

    Reads have connections of their own: while the standby is away, writes keep theirs until it is back
    (docs/decisions.md, "Reads apart").

    `bouncer`: `url` leads to PgBouncer in transaction mode. No session then outlives its transaction (each
    statement is parsed and planned anew unless PgBouncer keeps it), announcements are heard only through `listen_url`,
    a direct address, and the planner's settings are set for the role instead (docs/operations/postgresql.md).
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
        self._hosts = PostgresHosts(url, bouncer=bouncer, timelines=timelines)
        self._outage = Outage(self._hosts)
        self._reads, self._writes = (
            ConnectionPool(
                self._hosts,
                self._outage,
                size=size,
                on_loss=self._expire_connections,
                bouncer=bouncer,
                settings=planner,
                statement_timeout=statement_timeout,
            )
            for size, planner in ((read_connections, PLANNER_SETTINGS), (write_connections, WRITE_SETTINGS))
        )
        self._grouped = GroupedWrites(self)
        self._found = GroupedReads(self)
        self._watch: asyncio.Task[None] | None = None
        self._listen_hosts = None if bouncer else self._hosts
        if listen_url:
            self._listen_hosts = PostgresHosts(listen_url, timelines=timelines)

    async def open(self, *, connect: bool = True) -> None:
        """`connect`: False for a database that may be away now."""
        await self._writes.open()
        await self._reads.open()
        if connect:
            await self._reads.connect_once()
        if self._hosts.may_disagree:
            self._watch = asyncio.create_task(self._watch_hosts(), name="postgresql hosts")

    async def close(self) -> None:
        await self._outage.close()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})
        await asyncio.gather(self._reads.close(), self._writes.close())

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = STATEMENTS[statement]
        values = compiled.positional(params)
        return await self._fetch(self._reads, compiled.text, values, send_again_after=ConnectionLost)

    async def scan(self, statement: Executable, **params: Any) -> list[Row]:
        return await self.all(statement, **params)  # asyncpg never blocks the loop.

    async def write_all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = STATEMENTS[statement]
        values = compiled.positional(params)
        return await self._fetch(self._writes, compiled.text, values, send_again_after=StatementNotSent)

    async def write_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> list[Row]:
        return await self.write_all(_ARRAY_STATEMENTS[statement], **encode_rows(rows)) if rows else []

    async def write_grouped(self, group: GroupedWrite, params: dict[str, Any]) -> Row | None:
        return await self._grouped[group].add(params)

    async def find_grouped(self, statement: Executable, key: str) -> Row | None:
        return await self._found[statement].add(key)

    async def write_locally(self, statement: Executable, **params: Any) -> Row | None:
        async with self.transaction() as tx:
            await tx.write(_COMMIT_LOCALLY)
            return await tx.write(statement, **params)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        connection, transaction = await self._begin()
        async with self._writes.releasing(connection):
            try:
                yield _Transaction(connection)
            except BaseException:
                with suppress(*BROKEN):  # The server rolls back by itself when the connection is lost.
                    await transaction.rollback()
                raise
            await transaction.commit()

    async def wait_for_replication(self) -> None:
        await self._fetch(self._writes, _EMPTY_MESSAGE, (), send_again_after=ConnectionLost)

    def pool_use(self) -> dict[str, PoolUse]:
        return {"read": self._reads.use(), "write": self._writes.use()}

    async def announce(self, topic: str) -> None:
        await self._fetch(self._writes, _NOTIFY, (_CHANNEL, topic), send_again_after=StatementNotSent)

    async def listen(self, connected: Callable[[], None], heard: Callable[[str], None]) -> None:
        """By a connection of its own."""
        if self._listen_hosts is None:
            return
        with translated():
            connection: Connection = await self._listen_hosts.connect()
            try:
                lost = asyncio.Event()
                connection.add_termination_listener(lambda _: lost.set())
                await connection.add_listener(_CHANNEL, lambda *message: heard(message[-1]))
                connected()
                while not await is_set_within(lost, _TEST_INTERVAL):
                    await connection.execute("SELECT 1", timeout=ACQUIRE_TIMEOUT)
            finally:
                connection.terminate()
        raise ConnectionLost("the connection that listens was closed")

    async def _begin(self) -> tuple[Connection, Any]:
        """A connection for writes, and the transaction begun on it. When a connection was lost while it was idle, BEGIN
        is sent on another one."""
        for attempts_left in reversed(range(_ATTEMPTS)):
            connection = await self._writes.acquire()
            transaction = connection.transaction()
            try:
                with translated():
                    await transaction.start()
            except BaseException as error:
                await self._writes.release(connection, error)
                if not attempts_left or not isinstance(error, ConnectionLost):
                    raise
            else:
                break
        return connection, transaction

    async def _fetch(
        self, pool: ConnectionPool, text: str, values: Sequence[Any], *, send_again_after: type[ConnectionLost]
    ) -> list[Row]:
        """The rows of one statement. `send_again_after`: ConnectionLost for a read, which changes nothing;
        StatementNotSent for a write, which may happen once only."""
        for _ in range(_ATTEMPTS - 1):
            with suppress(send_again_after):
                return await _fetch_once(pool, text, values)
        return await _fetch_once(pool, text, values)

    async def _expire_connections(self) -> None:
        """A lost connection means that those of both pools are lost, lead to a server that is no longer the primary, or
        soon will: idle ones are replaced before they are used again."""
        await self._reads.expire_connections()
        await self._writes.expire_connections()

    async def _watch_hosts(self) -> None:
        """Notices the promotion of another host while connections to the old primary still live, or hang."""
        loop = asyncio.get_running_loop()
        looked_at = loop.time()
        while True:
            await asyncio.sleep(_WATCH_INTERVAL)
            hangs = self._reads.hangs(_HANGS_AFTER) or self._writes.hangs(_HANGS_AFTER)
            interval = _LOOK_INTERVAL_WHILE_HANGING if hangs else _LOOK_INTERVAL
            if self._outage.is_on or loop.time() - looked_at < interval:
                continue
            try:
                await self._hosts.look_at_others()
            except Exception as error:  # It looks again: without it, a promotion would be noticed late.
                log.error("database.look_failed", error=repr(error))
            looked_at = loop.time()


class _Transaction(Transaction):
    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = STATEMENTS[statement]
        rows: list[Row] = await self._connection.fetch(compiled.text, *compiled.positional(params))
        return rows

    write_all = all  # noqa: A003 - the method above

    async def write_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> list[Row]:
        return await self.all(_ARRAY_STATEMENTS[statement], **encode_rows(rows)) if rows else []


async def read_revision(settings: Settings) -> str | None:
    """The revision that the migrations left in the database; None before the first one."""
    try:
        connection = await PostgresHosts.of(settings).connect(statement_cache_size=0)
        try:
            async with connection.transaction():  # PgBouncer gives a transaction one connection for all of it.
                revision: str | None = await connection.fetchval(_REVISION)
        except asyncpg.UndefinedTableError:
            return None
        else:
            return revision
        finally:
            await connection.close()
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise DatabaseUnusable(str(error)) from error


async def _fetch_once(pool: ConnectionPool, text: str, values: Sequence[Any]) -> list[Row]:
    connection = await pool.acquire()
    async with pool.releasing(connection):
        rows: list[Row] = await connection.fetch(text, *values)
        return rows
