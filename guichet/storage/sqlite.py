"""The embedded database: SQLite in WAL mode, `synchronous=FULL`, one writer, group commit.

A transaction body awaits only storage calls, and these never suspend here, so bodies do not interleave: each runs in a
savepoint of one open transaction. The commit (one fsync) runs in a thread once per event-loop turn, and everybody who
wrote in that turn is answered after it. Bodies that arrive while a commit runs form the next group.
"""

import asyncio
import queue
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Executable
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect

from guichet import metrics
from guichet.storage.engine import (
    Compiled,
    ConstraintViolated,
    Row,
    StatementCache,
    StorageError,
    StorageUnavailable,
    unique_constraint_on,
)

#: How long a busy database (another process is writing) is waited for, in seconds.
BUSY_TIMEOUT: Final = 10.0
_BUSY_STEP: Final = 0.005
_SCANNERS: Final = 2


class SqliteDatabase:
    """See `engine.Database`. Cost of a write: one fsync shared by everything written in the same turn."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._statements = StatementCache(sqlite_dialect(paramstyle="named"))
        self._group: asyncio.Future[None] | None = None
        self._committing: asyncio.Future[None] | None = None
        self._body: asyncio.Task[Any] | None = None
        self._body_suspended = False
        self._bodies = 0

    async def open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = self._connect()
        self._reader = self._connect(read_only=True)
        self._committer = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._scan_pool = ThreadPoolExecutor(_SCANNERS, thread_name_prefix="scan")
        self._scanners: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        for _ in range(_SCANNERS):
            self._scanners.put(self._connect(read_only=True))

    async def close(self) -> None:
        while pending := self._committing or self._group:
            await asyncio.wait([pending])
        self._committer.shutdown()
        self._scan_pool.shutdown()
        for _ in range(_SCANNERS):
            self._scanners.get().close()
        self._reader.close()
        self._writer.close()

    def _connect(self, *, read_only: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        if read_only:
            # A reader never waits for the writer in WAL mode, but may meet a checkpoint or a recovery.
            connection.execute("PRAGMA busy_timeout = 1000")
            connection.execute("PRAGMA query_only = ON")
        return connection

    # Reads see what is committed, as on PostgreSQL.

    async def one(self, statement: Executable, **params: Any) -> Row | None:
        rows = _run(self._reader, self._statements[statement], params)
        return rows[0] if rows else None

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        return _run(self._reader, self._statements[statement], params)

    async def scan(self, statement: Executable, **params: Any) -> list[Row]:
        compiled = self._statements[statement]

        def run() -> list[Row]:
            connection = self._scanners.get()
            try:
                return _run(connection, compiled, params)
            finally:
                self._scanners.put(connection)

        return await asyncio.get_running_loop().run_in_executor(self._scan_pool, run)

    async def write(self, statement: Executable, **params: Any) -> Row | None:
        async with self.transaction() as tx:
            return await tx.write(statement, **params)

    def pool_use(self) -> None:
        return None

    # There is one process: nobody to tell, nobody to hear.

    async def announce(self, topic: str) -> None:
        pass

    async def listen(self, connected: Callable[[], None], heard: Callable[[str], None]) -> None:
        pass

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["_Transaction"]:
        group = await self._join_group()
        self._body = asyncio.current_task()
        self._bodies += 1
        try:
            self._writer.execute("SAVEPOINT body")
            yield _Transaction(self._writer, self._statements)
            self._refuse_suspended_body()
            self._writer.execute("RELEASE body")
        except BaseException as error:
            self._undo_body()
            if isinstance(error, sqlite3.Error):
                raise StorageUnavailable(str(error)) from error
            raise
        finally:
            self._body, self._body_suspended = None, False
        await asyncio.shield(group)

    def _undo_body(self) -> None:
        try:
            self._writer.execute("ROLLBACK TO body")
            self._writer.execute("RELEASE body")
        except sqlite3.Error:
            # SQLite gave up the whole transaction by itself (a full or failing disk). Without one the commit fails,
            # and everybody in the group is told.
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _refuse_suspended_body(self) -> None:
        if self._body_suspended:
            raise StorageError("a transaction body awaited something that is not storage")

    async def _join_group(self) -> asyncio.Future[None]:
        """The group to write in, begun if there is none; waits for a running commit, for other processes, for a body
        that was suspended."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + BUSY_TIMEOUT
        while True:
            if self._committing is not None:
                await asyncio.wait([self._committing])  # Whether it succeeds is its own group's business.
            elif self._group is not None and not self._writer.in_transaction:
                await asyncio.wait([self._group])
            elif self._group is not None and self._body is None:
                break
            elif self._group is None and self._try_begin():
                self._group = loop.create_future()
                loop.call_soon(self._flush)
                break
            elif loop.time() > deadline:
                raise StorageUnavailable("the embedded database stayed locked")
            else:
                self._note_suspended_body()
                await asyncio.sleep(_BUSY_STEP)
        return self._group

    def _note_suspended_body(self) -> None:
        """Somebody else runs while a body is open: it is refused when it ends, and only it."""
        self._body_suspended = self._body is not None
        if self._body is not None and self._body is asyncio.current_task():
            raise StorageError("a transaction inside a transaction")

    def _try_begin(self) -> bool:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise StorageUnavailable(str(error)) from error
            return False
        return True

    def _flush(self) -> None:
        """Runs one loop turn after the group began: everything written since goes to disk together."""
        loop = asyncio.get_running_loop()
        if self._body is not None:  # It was suspended, which a body must not do; it is rolled back when it ends.
            self._body_suspended = True
            loop.call_soon(self._flush)
            return
        group, self._group = self._group, None
        assert group is not None
        self._committing = group
        metrics.COMMIT_GROUP.observe(self._bodies)
        self._bodies = 0
        loop.run_in_executor(self._committer, self._commit).add_done_callback(self._committed)

    def _commit(self) -> None:
        try:
            self._writer.execute("COMMIT")
        except sqlite3.Error:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    def _committed(self, commit: asyncio.Future[None]) -> None:
        group, self._committing = self._committing, None
        assert group is not None
        error = commit.exception()
        if error is None:
            group.set_result(None)
        else:
            group.set_exception(StorageUnavailable(str(error)))
            group.exception()  # Seen: a group of bodies that all failed has nobody to tell.


class _Transaction:
    """See `engine.Transaction`."""

    __slots__ = ("_connection", "_statements")

    def __init__(self, connection: sqlite3.Connection, statements: StatementCache) -> None:
        self._connection = connection
        self._statements = statements

    async def one(self, statement: Executable, **params: Any) -> Row | None:
        rows = _run(self._connection, self._statements[statement], params)
        return rows[0] if rows else None

    async def all(self, statement: Executable, **params: Any) -> list[Row]:
        return _run(self._connection, self._statements[statement], params)

    async def write(self, statement: Executable, **params: Any) -> Row | None:
        return await self.one(statement, **params)


def _run(connection: sqlite3.Connection, compiled: Compiled, params: dict[str, Any]) -> list[Row]:
    try:
        rows: list[Row] = connection.execute(compiled.text, compiled.named(params)).fetchall()
    except sqlite3.IntegrityError as error:
        raise ConstraintViolated(_constraint_name(str(error))) from error
    except sqlite3.OperationalError as error:
        raise StorageUnavailable(str(error)) from error
    if compiled.booleans and rows:
        return [_with_booleans(row, compiled.booleans) for row in rows]
    return rows


def _with_booleans(row: Row, positions: tuple[int, ...]) -> Row:
    values = list(row)
    for position in positions:
        if values[position] is not None:
            values[position] = bool(values[position])
    return values


def _constraint_name(message: str) -> str:
    """`UNIQUE constraint failed: payments.merchant_id, payments.env` or `CHECK constraint failed: ck_name`."""
    subject = message.partition(": ")[2]
    if message.startswith("UNIQUE") and "." in subject:
        table = subject.partition(".")[0]
        return unique_constraint_on(table, [part.partition(".")[2] for part in subject.split(", ")])
    return subject or message
