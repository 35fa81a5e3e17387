"""The embedded database: SQLite in WAL mode with `synchronous=FULL`, and one writer that commits in groups."""

import asyncio
import queue
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any, Final

import apsw
from sqlalchemy import Executable

from guichet.db.engine import Database, GroupedWrite, Row, Transaction
from guichet.db.errors import DatabaseDamaged, DatabaseUnusable
from guichet.db.sqlite.errors import DAMAGE, translate
from guichet.db.sqlite.group_commit import BUSY_TIMEOUT, GroupCommit
from guichet.db.sqlite.statements import STATEMENTS, execute
from guichet.db.statement_cache import CompiledStatement
from guichet.private_files import make_private_file, make_private_folder

#: Threads, each with a connection, for reads that may take long.
_SCAN_THREADS: Final = 2
#: Bytes of a block of memory, and how many of them each connection keeps ready: one statement that inserts many rows
#: needs hundreds, and any other block takes 490 instructions.
_BLOCKS: Final = (512, 300)


def _configure_library() -> None:
    """Of the whole process, so not beside connections that others have open. Without SQLite's statistics of memory each
    block takes two mutexes less; with this, what SQLite does for a payment and its settlement takes an eighth less."""
    if not apsw.connections():
        apsw.shutdown()  # The driver has initialised it.
        apsw.config(apsw.SQLITE_CONFIG_MEMSTATUS, False)
        apsw.config(apsw.SQLITE_CONFIG_LOOKASIDE, *_BLOCKS)
        apsw.initialize()


_configure_library()


class SqliteDatabase(Database):
    """See `engine.Database`; `group_commit.py` says what a write costs. Reads see what is committed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def open(self) -> None:
        make_private_folder(self._path.parent)
        make_private_file(self._path)
        self._writer = GroupCommit(self._connect())
        self._reader = self._connect(read_only=True)
        self._scan_threads = ThreadPoolExecutor(_SCAN_THREADS, thread_name_prefix="scan")
        self._scan_connections: queue.SimpleQueue[apsw.Connection] = queue.SimpleQueue()
        for _ in range(_SCAN_THREADS):  # Now, since a process may be out of descriptors later.
            self._scan_connections.put(self._connect(read_only=True))

    async def close(self) -> None:
        await self._writer.close()
        self._scan_threads.shutdown()
        for _ in range(_SCAN_THREADS):
            self._scan_connections.get().close()
        self._reader.close()

    def _connect(self, *, read_only: bool = False) -> apsw.Connection:
        connection = apsw.Connection(str(self._path), statementcachesize=512)
        try:
            _configure(connection, read_only=read_only)
        except apsw.Error as error:
            translated = translate(error, connection)  # Which asks the connection for its file.
            connection.close()
            raise translated from error
        return connection

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = STATEMENTS[statement]
        return self._read(self._reader, compiled, compiled.positional(params))

    async def scan(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = STATEMENTS[statement]
        values = compiled.positional(params)

        def scanned() -> list[Row]:
            connection = self._scan_connections.get()
            try:
                return self._read(connection, compiled, values)
            finally:
                self._scan_connections.put(connection)

        return await asyncio.get_running_loop().run_in_executor(self._scan_threads, scanned)

    def _read(self, connection: apsw.Connection, compiled: CompiledStatement, values: Sequence[Any]) -> list[Row]:
        try:
            return execute(connection, compiled, values)
        except DatabaseDamaged as error:
            self._writer.note(error)
            raise

    async def write_all(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = STATEMENTS[statement]
        return await self._writer.write(compiled, compiled.positional(params))

    async def write_grouped(self, group: GroupedWrite, params: dict[str, Any]) -> Row | None:
        if group.claim is not None:
            return await super().write_grouped(group, params)
        compiled = STATEMENTS[group.statement]
        rows = await self._writer.write(compiled, compiled.positional(params), params[group.key])
        return rows[0] if rows else None

    async def insert_grouped(self, group: GroupedWrite, row: Sequence[Any]) -> Row | None:
        compiled = STATEMENTS[group.statement]
        if len(compiled.names) != len(row):  # It names some of them twice, in a condition.
            return await super().insert_grouped(group, row)
        rows = await self._writer.write(compiled, row, row[group.names.index(group.key)])
        return rows[0] if rows else None

    async def write_many(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> list[Row]:
        async with self.transaction() as tx:
            return await tx.write_many(statement, rows)

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._writer.transaction()


def _configure(connection: apsw.Connection, *, read_only: bool) -> None:
    connection.set_busy_timeout(int(BUSY_TIMEOUT * 1000))
    # One plan for each statement: this build of SQLite would make a new one whenever a parameter has another value.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.execute("PRAGMA foreign_keys = ON")
    # What a rollback of a block would restore stays in memory: a temporary file costs 7 % of the loop's time.
    connection.execute("PRAGMA temp_store = MEMORY")
    if read_only:
        # In WAL mode a reader never waits for the writer, but may meet a checkpoint or a recovery.
        connection.execute("PRAGMA busy_timeout = 1000")
        connection.execute("PRAGMA query_only = ON")
        # Opens the log, since a process may be out of descriptors later. The writer's pragmas would read the whole
        # schema as well: 4 ms and 300 KB, for connections that many commands never use.
        connection.execute("PRAGMA user_version")
    else:
        # The file is locked for a moment while another process opens it first or closes it last.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -8000")
        connection.execute("PRAGMA busy_timeout = 0")  # `GroupCommit` waits itself, without blocking the loop.


def read_revision(path: Path) -> str | None:
    """The revision that the migrations left in the file; None before the first one."""
    if not path.exists():
        return None
    try:
        with closing(apsw.Connection(str(path))) as connection:
            connection.set_busy_timeout(30_000)
            migrated = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if migrated else None
    except DAMAGE as error:
        raise DatabaseDamaged(str(path), str(error)) from error
    except apsw.Error as error:
        raise DatabaseUnusable(str(error)) from error
    return row[0] if row else None
