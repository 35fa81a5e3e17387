"""The embedded database: SQLite in WAL mode, `synchronous=FULL`, one writer that commits in groups."""

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

from guichet.db.engine import Row, StatementCache
from guichet.db.group_commit import BUSY_TIMEOUT, GroupCommit, run

_SCANNERS: Final = 2
#: Shared by every database that this process opens: the text of a statement depends on the dialect alone.
_STATEMENTS: Final = StatementCache(sqlite_dialect(paramstyle="qmark"))


class SqliteDatabase:
    """See `engine.Database`, and `sqlite_writer.py` for what a write costs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._statements = _STATEMENTS

    async def open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = GroupCommit(self._connect())
        self._reader = self._connect(read_only=True)
        self._scan_pool = ThreadPoolExecutor(_SCANNERS, thread_name_prefix="scan")
        self._scanners: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        for _ in range(_SCANNERS):
            self._scanners.put(self._connect(read_only=True))

    async def close(self) -> None:
        await self._writer.close()
        self._scan_pool.shutdown()
        for _ in range(_SCANNERS):
            self._scanners.get().close()
        self._reader.close()

    def _connect(self, *, read_only: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        # Locked for a moment while another process is the first to open the file, or the last to close it.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        if read_only:
            # A reader never waits for the writer in WAL mode, but may meet a checkpoint or a recovery.
            connection.execute("PRAGMA busy_timeout = 1000")
            connection.execute("PRAGMA query_only = ON")
        else:
            connection.execute("PRAGMA busy_timeout = 0")  # It must not block the loop: see `GroupCommit`.
        return connection

    # Reads see what is committed, as on PostgreSQL.

    async def one(self, statement: Executable, **params: Any) -> Row | None:
        compiled = self._statements[statement]
        rows = run(self._reader, compiled, compiled.positional(params))
        return rows[0] if rows else None

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        return run(self._reader, compiled, compiled.positional(params))

    async def wait_for_replication(self) -> None:
        """Nothing is seen before it is on disk."""

    async def scan(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        values = compiled.positional(params)

        def scanned() -> list[Row]:
            connection = self._scanners.get()
            try:
                return run(connection, compiled, values)
            finally:
                self._scanners.put(connection)

        return await asyncio.get_running_loop().run_in_executor(self._scan_pool, scanned)

    async def write(self, statement: Executable, **params: Any) -> Row | None:
        compiled = self._statements[statement]
        rows = await self._writer.write(compiled, compiled.positional(params))
        return rows[0] if rows else None

    async def execute_returning(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]
        return await self._writer.write(compiled, compiled.positional(params))

    async def execute_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> None:
        async with self.transaction() as tx:
            await tx.execute_many(statement, rows)

    def pool_use(self) -> None:
        return None

    # Each process has its own loops, which its own commits wake; the others look once a second.

    async def announce(self, topic: str) -> None:
        pass

    async def listen(self, connected: Callable[[], None], heard: Callable[[str], None]) -> None:
        pass

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["_Transaction"]:
        async with self._writer.body() as connection:
            yield _Transaction(connection, self._statements)


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
        return run(self._connection, compiled, compiled.positional(params))

    async def write(self, statement: Executable, **params: Any) -> Row | None:
        return await self.one(statement, **params)

    async def execute_returning(self, statement: Executable, **params: Any) -> list[Row]:
        return await self.all(statement, **params)

    async def execute_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> None:
        await self.execute_many_returning(statement, rows)

    async def execute_many_returning(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> list[Row]:
        compiled = self._statements[statement]
        return [row for params in rows for row in run(self._connection, compiled, compiled.positional(params))]
