"""The embedded database: SQLite in WAL mode with `synchronous=FULL`, and one writer that commits in groups."""

import asyncio
import queue
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Executable
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect

from guichet.db.engine import PoolUse, Row
from guichet.db.group_commit import BUSY_TIMEOUT, GroupCommit
from guichet.db.sqlite_errors import translate
from guichet.db.sqlite_statements import execute, execute_many
from guichet.db.statement_cache import StatementCache
from guichet.private_files import make_private_file, make_private_folder

#: Threads, each with a connection, for reads that may take long.
_SCAN_THREADS: Final = 2
#: Shared by every database that this process opens: the text of a statement depends on the dialect alone.
_STATEMENTS: Final = StatementCache(sqlite_dialect(paramstyle="qmark"))


class SqliteDatabase:
    """See `engine.Database`; `group_commit.py` says what a write costs. Reads see what is committed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._statements = _STATEMENTS

    async def open(self) -> None:
        make_private_folder(self._path.parent)
        make_private_file(self._path)
        self._writer = GroupCommit(self._connect())
        self._reader = self._connect(read_only=True)
        self._scan_threads = ThreadPoolExecutor(_SCAN_THREADS, thread_name_prefix="scan")
        self._scan_connections: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        for _ in range(_SCAN_THREADS):  # Now, since a process may be out of descriptors later.
            self._scan_connections.put(self._connect(read_only=True))

    async def close(self) -> None:
        await self._writer.close()
        self._scan_threads.shutdown()
        for _ in range(_SCAN_THREADS):
            self._scan_connections.get().close()
        self._reader.close()

    def _connect(self, *, read_only: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        try:
            _configure(connection, read_only=read_only)
        except sqlite3.Error as error:
            translated = translate(error, connection)  # Which asks the connection for its file.
            connection.close()
            raise translated from error
        return connection

    async def one(self, statement: Executable, **params: Any) -> Row | None:
        rows = await self.all(statement, **params)
        return rows[0] if rows else None

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        return execute(self._reader, compiled, compiled.positional(params))

    async def wait_for_replication(self) -> None:
        """Nothing to wait for: a reader sees only what is on disk, and there is no standby."""

    async def scan(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        values = compiled.positional(params)

        def scanned() -> list[Row]:
            connection = self._scan_connections.get()
            try:
                return execute(connection, compiled, values)
            finally:
                self._scan_connections.put(connection)

        return await asyncio.get_running_loop().run_in_executor(self._scan_threads, scanned)

    async def write(self, statement: Executable, **params: Any) -> Row | None:
        compiled = self._statements[statement]
        rows = await self._writer.write(compiled, compiled.positional(params))
        return rows[0] if rows else None

    async def write_locally(self, statement: Executable, **params: Any) -> Row | None:
        return await self.write(statement, **params)

    async def execute_returning(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        return await self._writer.write(compiled, compiled.positional(params))

    async def execute_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> None:
        async with self.transaction() as tx:
            await tx.execute_many(statement, rows)

    def pool_use(self) -> dict[str, PoolUse]:
        return {}

    # The loops of this process are woken by its own commits; another process looks once a second.

    async def announce(self, topic: str) -> None:
        pass

    async def listen(self, connected: Callable[[], None], heard: Callable[[str], None]) -> None:
        pass

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["_Transaction"]:
        async with self._writer.transaction() as connection:
            yield _Transaction(connection, self._statements)


def _configure(connection: sqlite3.Connection, *, read_only: bool) -> None:
    # The file is locked for a moment while another process opens it first or closes it last.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # What a rollback of a block would restore stays in memory: a temporary file costs 7 % of the loop's time.
    connection.execute("PRAGMA temp_store = MEMORY")
    if read_only:
        # In WAL mode a reader never waits for the writer, but may meet a checkpoint or a recovery.
        connection.execute("PRAGMA busy_timeout = 1000")
        connection.execute("PRAGMA query_only = ON")
    else:
        connection.execute("PRAGMA cache_size = -8000")
        connection.execute("PRAGMA busy_timeout = 0")  # `GroupCommit` waits itself, without blocking the loop.


class _Transaction:
    """See `engine.Transaction`."""

    __slots__ = ("_connection", "_statements")

    def __init__(self, connection: sqlite3.Connection, statements: StatementCache) -> None:
        self._connection = connection
        self._statements = statements

    async def one(self, statement: Executable, **params: Any) -> Row | None:
        rows = await self.all(statement, **params)
        return rows[0] if rows else None

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        return execute(self._connection, compiled, compiled.positional(params))

    async def write(self, statement: Executable, **params: Any) -> Row | None:
        return await self.one(statement, **params)

    async def execute_returning(self, statement: Executable, **params: Any) -> list[Row]:
        return await self.all(statement, **params)

    async def execute_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> None:
        compiled = self._statements[statement]
        execute_many(self._connection, compiled, [compiled.positional(params) for params in rows])

    async def execute_many_returning(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> list[Row]:
        compiled = self._statements[statement]
        return [row for params in rows for row in execute(self._connection, compiled, compiled.positional(params))]
