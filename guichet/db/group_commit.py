"""The one writer of the embedded database: what is written in the same turn of the loop shares one commit (one fsync).

A single statement waits in a queue and runs just before the commit of the next group; nobody is woken for that. A
transaction body awaits only storage calls, and these never suspend here, so bodies do not interleave: each runs in a
savepoint of the group's transaction. The commit runs in a thread, so that requests are read and answered meanwhile;
whoever arrives then writes in the group after it, and everybody is answered after the commit of their own.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final

from guichet import metrics
from guichet.db.engine import Compiled, ConstraintViolated, Row, StorageError, StorageUnavailable, unique_constraint_on

#: How long a busy database (another process is writing) is waited for, in seconds.
BUSY_TIMEOUT: Final = 10.0
#: How often it is tried again: about as long as another process takes for one group.
_BUSY_STEP: Final = 0.0005
_STAYED_LOCKED: Final = "the embedded database stayed locked"

Told = asyncio.Future[list[Row]]

#: The driver looks for a way to adapt each NULL, and by itself finds none at the price of two swallowed exceptions.
sqlite3.register_adapter(type(None), {None: None}.get)


class GroupCommit:
    """Cost of a write: its statements, and one fsync shared by everything written in the same turn."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._committer = ThreadPoolExecutor(1, thread_name_prefix="commit")
        #: Statements that wait for the next group.
        self._queue: deque[tuple[Compiled, Sequence[Any], Told]] = deque()
        #: Who wrote in this group, and what each is told once it is on disk.
        self._written: list[tuple[Told, list[Row]]] = []
        #: Bodies that wait for the end of a group.
        self._turns: list[asyncio.Future[None]] = []
        self._begun = self._committing = self._flush_due = False
        self._busy_since: float | None = None
        self._body: asyncio.Task[Any] | None = None
        self._body_suspended = False

    async def close(self) -> None:
        while self._begun or self._queue:
            await self._turn()
        self._committer.shutdown()
        self._connection.close()

    async def write(self, compiled: Compiled, values: Sequence[Any]) -> list[Row]:
        """One statement, all or nothing by itself."""
        if self._body is not None:
            self._note_suspended_body()
        told: Told = asyncio.get_running_loop().create_future()
        self._queue.append((compiled, values, told))
        self._flush_soon()
        return await told

    @asynccontextmanager
    async def body(self) -> AsyncIterator[sqlite3.Connection]:
        """Several statements, all or nothing together."""
        await self._join()
        self._body = asyncio.current_task()
        try:
            self._connection.execute("SAVEPOINT body")
            yield self._connection
            self._refuse_suspended_body()
            self._connection.execute("RELEASE body")
        except BaseException as error:
            self._undo_body()
            if isinstance(error, sqlite3.Error):
                raise StorageUnavailable(str(error)) from error
            raise
        finally:
            self._body, self._body_suspended = None, False
        told: Told = asyncio.get_running_loop().create_future()
        self._written.append((told, []))
        await told

    def _refuse_suspended_body(self) -> None:
        if self._body_suspended:
            raise StorageError("a transaction body awaited something that is not storage")

    def _undo_body(self) -> None:
        try:
            self._connection.execute("ROLLBACK TO body")
            self._connection.execute("RELEASE body")
        except sqlite3.Error:
            # SQLite gave up the whole transaction by itself (a full or failing disk). Without one the commit fails,
            # and everybody in the group is told.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    async def _join(self) -> None:
        """Until a body may run: waits for a running commit, for other processes, for a body that was suspended."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + BUSY_TIMEOUT
        while True:
            if self._committing or (self._begun and not self._connection.in_transaction):
                await self._turn()
            elif self._body is None and (self._begun or self._try_begin()):
                self._flush_soon()
                return
            elif self._body is None and loop.time() <= deadline:  # Another process writes: one looks for all.
                self._flush_soon()
                await self._turn()
            elif loop.time() > deadline:
                raise StorageUnavailable(_STAYED_LOCKED)
            else:
                self._note_suspended_body()
                await asyncio.sleep(_BUSY_STEP)

    async def _turn(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        await turn

    def _note_suspended_body(self) -> None:
        """Somebody else runs while a body is open: it is refused when it ends, and only it."""
        self._body_suspended = self._body is not None
        if self._body is not None and self._body is asyncio.current_task():
            raise StorageError("a transaction inside a transaction")

    def _try_begin(self) -> bool:
        """False while another process writes."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise StorageUnavailable(str(error)) from error
            return False
        self._begun, self._busy_since = True, None
        return True

    def _flush_soon(self) -> None:
        """One turn from now: everything that is written until then goes to disk together."""
        if not (self._flush_due or self._committing):
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        if self._body is not None:  # It was suspended, which a body must not do; it is rolled back when it ends.
            self._body_suspended = True
            loop.call_soon(self._flush)
            return
        if not self._begun:
            if not self._begun_for_queue(loop):
                return
            if self._turns:  # Bodies that waited for another process write in this group too.
                self._give_turns()
                loop.call_soon(self._flush)
                return
        self._run_queue()
        self._flush_due = False
        self._committing = True
        metrics.COMMIT_GROUP.observe(len(self._written))
        loop.run_in_executor(self._committer, self._commit).add_done_callback(self._committed)

    def _begun_for_queue(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether the group is begun; otherwise it is tried again shortly, until whoever waits is told in the end."""
        try:
            if self._try_begin():
                return True
        except StorageUnavailable as error:
            self._give_up(error)
            return False
        self._busy_since = self._busy_since or loop.time()
        if loop.time() < self._busy_since + BUSY_TIMEOUT:
            loop.call_later(_BUSY_STEP, self._flush)
        else:
            self._give_up(StorageUnavailable(_STAYED_LOCKED))
        return False

    def _give_up(self, error: StorageUnavailable) -> None:
        self._busy_since, self._flush_due = None, False
        while self._queue:
            _tell(self._queue.popleft()[2], error)
        self._give_turns()

    def _run_queue(self) -> None:
        """A statement that fails undoes itself and nothing else. Where SQLite gave up the whole transaction, who wrote
        in it is told by the commit, and the others write in the next."""
        while self._queue and self._connection.in_transaction:
            compiled, values, told = self._queue.popleft()
            if told.cancelled():
                continue
            try:
                self._written.append((told, run(self._connection, compiled, values)))
            except Exception as error:  # Whatever it is, it is the writer's own.
                _tell(told, error)

    def _commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _committed(self, commit: asyncio.Future[None]) -> None:
        self._begun = self._committing = False
        written, self._written = self._written, []
        self._give_turns()  # Bodies run before the queue, or a full queue could keep them out for ever.
        if self._queue:
            self._flush_soon()  # Before the answers, which are written while the next group goes to disk.
        error = commit.exception()
        for told, rows in written:
            if error is not None:
                _tell(told, StorageUnavailable(str(error)))
            elif not told.done():
                told.set_result(rows)

    def _give_turns(self) -> None:
        turns, self._turns = self._turns, []
        for turn in turns:
            if not turn.done():
                turn.set_result(None)


def _tell(told: Told, error: Exception) -> None:
    if not told.done():
        told.set_exception(error)


def run(connection: sqlite3.Connection, compiled: Compiled, values: Sequence[Any]) -> list[Row]:
    """Raises ConstraintViolated, StorageUnavailable."""
    try:
        cursor = connection.execute(compiled.text, values)
        if compiled.numbers:
            return [(cursor.lastrowid,)] if cursor.rowcount else []
        rows: list[Row] = cursor.fetchall()
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
