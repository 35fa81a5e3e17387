"""The writer of the embedded database: everything written in the same iteration of the event loop shares one commit,
and so one fsync.

One SQLite transaction is open at a time, the group. A single statement waits in a queue and runs just before the group
is committed. A transaction block (`engine.Transaction`) may await storage calls only, and on SQLite these never
suspend, so blocks do not interleave: each runs in a savepoint of the group. The commit runs in a thread while the event
loop goes on; what is written meanwhile belongs to the next group. Every writer is answered after the commit of its own
group.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import islice
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

import apsw

from guichet import metrics
from guichet.db.engine import Row
from guichet.db.errors import ConstraintViolated, DatabaseDamaged, StorageError, StorageUnavailable
from guichet.db.sqlite.errors import DRIVER_ERRORS, translate
from guichet.db.sqlite.statements import MOST_TOGETHER, SqliteTransaction, execute_together, how_many_together
from guichet.db.statement_cache import CompiledStatement
from guichet.domain.records import Record
from guichet.logs import log

#: How long to wait while another process writes, in seconds.
BUSY_TIMEOUT: Final = 10.0
#: How often to try again meanwhile, in seconds: about as long as the other process takes for one group.
_BUSY_RETRY: Final = 0.0005
_STAYED_LOCKED: Final = "the embedded database stayed locked"

#: What a writer awaits: the rows that its statement returned.
Waiter = asyncio.Future[list[Row]]


class _Write(Record, frozen=True):
    """A single statement. `key`: of one that many tasks run at the same time, each for a key of its own
    (`engine.GroupedWrite`); None for any other."""

    compiled: CompiledStatement
    values: Sequence[Any]
    waiter: Waiter
    key: Any


class GroupCommit:
    """Cost of a write: its statements, and one fsync shared by everything written in the same iteration."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._transaction = SqliteTransaction(connection)
        #: Loops that wait for a commit; None ends the thread. With an executor and its futures a POST takes 110,000
        #: instructions more.
        self._commits: SimpleQueue[asyncio.AbstractEventLoop | None] = SimpleQueue()
        self._commit_thread = Thread(target=self._commit_all, name="commit", daemon=True)
        self._commit_thread.start()
        #: Single statements that will run at the end of the group.
        self._queue: deque[_Write] = deque()
        #: Who wrote in this group, and the rows to answer with after the commit.
        self._written: list[tuple[Waiter, list[Row]]] = []
        #: Transactions that wait for the next group.
        self._waiting: list[asyncio.Future[None]] = []
        self._begun = self._committing = self._commit_scheduled = False
        #: Since when another process has kept the database locked, in the loop's time.
        self._busy_since: float | None = None
        #: What a statement of this process met in the file. Nothing is written any more: pages that are still in memory
        #: would let a payment be answered that no restart can read.
        self.damage: DatabaseDamaged | None = None
        #: The task whose transaction block is open.
        self._open_block: asyncio.Task[Any] | None = None
        #: The open block awaited something that suspended it; it will be rolled back.
        self._block_suspended = False

    async def close(self) -> None:
        """Returns when everything written before is committed."""
        while self._begun or self._queue:
            await self._next_group()
        self._commits.put(None)
        self._commit_thread.join()
        self._connection.close()

    def write(self, compiled: CompiledStatement, values: Sequence[Any], key: Any = None) -> Waiter:
        """Runs one statement; the rows that it returned, once they are on disk. `key`: see `_Write`."""
        if self._open_block is not None:
            self._note_suspended_block()
        waiter: Waiter = asyncio.get_running_loop().create_future()
        self._queue.append(_Write(compiled, values, waiter, key))
        self._schedule_commit()
        return waiter

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SqliteTransaction]:
        """A block of statements that are committed together or not at all; ends when they are on disk."""
        await self._enter_group()
        self._open_block = asyncio.current_task()
        try:
            self._connection.execute("SAVEPOINT block")
            yield self._transaction
            self._refuse_suspended_block()
            self._connection.execute("RELEASE block")
        except BaseException as error:
            self._roll_back_block()
            self.note(error)
            if isinstance(error, apsw.Error):
                raise translate(error, self._connection) from error
            raise
        finally:
            self._open_block, self._block_suspended = None, False
        waiter: Waiter = asyncio.get_running_loop().create_future()
        self._written.append((waiter, []))
        await waiter

    def note(self, error: BaseException) -> None:
        if isinstance(error, DatabaseDamaged):
            self.damage = error

    def _refuse_suspended_block(self) -> None:
        if self._block_suspended:
            raise StorageError("a transaction block awaited something that is not storage")

    def _roll_back_block(self) -> None:
        try:
            self._connection.execute("ROLLBACK TO block")
            self._connection.execute("RELEASE block")
        except apsw.Error:
            # SQLite rolled back the whole group by itself (a full or failing disk). The commit will then fail, and
            # every writer of the group gets an error.
            self._roll_back_group()

    def _roll_back_group(self) -> None:
        """If even this fails, the next BEGIN tries it again."""
        if self._connection.in_transaction:
            with suppress(apsw.Error):
                self._connection.execute("ROLLBACK")

    async def _enter_group(self) -> None:
        """Returns when a block may run: no commit is running, no other process writes, no other block is open."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + BUSY_TIMEOUT
        while True:
            if self._committing or (self._begun and not self._connection.in_transaction):
                await self._next_group()
            elif self._open_block is None and (self._begun or self._try_begin()):
                self._schedule_commit()
                return
            elif self._open_block is None and loop.time() <= deadline:
                # Another process writes: `_begin_for_queue` tries again on behalf of everybody.
                self._schedule_commit()
                await self._next_group()
            elif loop.time() > deadline:
                raise StorageUnavailable(_STAYED_LOCKED)
            else:
                self._note_suspended_block()
                await asyncio.sleep(_BUSY_RETRY)

    async def _next_group(self) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def _note_suspended_block(self) -> None:
        """Another task runs while a block is open, so the block was suspended. Raises when it is the same task."""
        self._block_suspended = self._open_block is not None
        if self._open_block is not None and self._open_block is asyncio.current_task():
            raise StorageError("a transaction inside a transaction")

    def _try_begin(self) -> bool:
        """False while another process writes. Raises StorageError."""
        if self.damage is not None:
            raise self.damage.with_traceback(None)
        self._roll_back_group()  # What a rollback that failed left behind; nothing otherwise.
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return False
        except apsw.Error as error:
            raise translate(error, self._connection) from error
        self._begun, self._busy_since = True, None
        return True

    def _schedule_commit(self) -> None:
        """For the end of this iteration of the loop: what is written until then is committed together."""
        if not (self._commit_scheduled or self._committing):
            self._commit_scheduled = True
            asyncio.get_running_loop().call_soon(self._start_commit)

    def _start_commit(self) -> None:
        try:
            self._write_group()
        except Exception as error:  # Nobody may wait for a commit that will never come.
            log.error("database.group_failed", error=repr(error), exc_info=True)
            self._fail_group(error if isinstance(error, StorageError) else StorageUnavailable(repr(error)))

    def _write_group(self) -> None:
        """Begins a group if none is open, runs the queue in it and has it committed; or comes again later."""
        loop = asyncio.get_running_loop()
        if self._open_block is not None:  # The block was suspended: wait until it has been rolled back.
            self._block_suspended = True
            loop.call_soon(self._start_commit)
            return
        if not self._begun:
            if not self._begin_for_queue(loop):
                return
            if self._waiting:  # Transactions that waited for another process write in this group too.
                self._wake_waiting()
                loop.call_soon(self._start_commit)
                return
        self._run_queue()
        self._commit_scheduled = False
        self._committing = True
        metrics.COMMIT_GROUP.observe(len(self._written))
        self._commits.put(loop)

    def _begin_for_queue(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether a group is open now; otherwise tries again shortly, and after BUSY_TIMEOUT fails all who wait."""
        try:
            if self._try_begin():
                return True
        except StorageError as error:
            self._fail_queue(error)
            return False
        self._busy_since = self._busy_since or loop.time()
        if loop.time() < self._busy_since + BUSY_TIMEOUT:
            loop.call_later(_BUSY_RETRY, self._start_commit)
        else:
            self._fail_queue(StorageUnavailable(_STAYED_LOCKED))
        return False

    def _fail_group(self, error: StorageError) -> None:
        """Undoes the open group; everybody who wrote in it, or waits for it, gets the error."""
        self._roll_back_group()
        self._begun = self._committing = False
        written, self._written = self._written, []
        for waiter, _ in written:
            _fail(waiter, error)
        self._fail_queue(error)

    def _fail_queue(self, error: StorageError) -> None:
        self._busy_since, self._commit_scheduled = None, False
        while self._queue:
            _fail(self._queue.popleft().waiter, error)
        self._wake_waiting()

    def _run_queue(self) -> None:
        """A statement that fails undoes itself only. If SQLite rolled back the whole group, those who wrote in it get
        an error from the commit, and the rest of the queue runs in the next group."""
        while self._queue and self._connection.in_transaction:
            if self._queue[0].waiter.cancelled():
                self._queue.popleft()
            else:
                self._run(self._take_alike())

    def _take_alike(self) -> list[_Write]:
        """The first of the queue, with as many that follow and run the same statement as it takes at once. It takes no
        key twice: a statement for many rows changes each row of the table once."""
        first, keys = self._queue[0], set()
        for write in islice(self._queue, MOST_TOGETHER if first.key is not None else 0):
            if write.compiled is not first.compiled or write.key in keys or write.waiter.cancelled():
                break
            keys.add(write.key)
        return [self._queue.popleft() for _ in range(how_many_together(first.compiled, len(keys) or 1))]

    def _run(self, writes: Sequence[_Write]) -> None:
        first = writes[0]
        try:
            rows = execute_together(self._connection, first.compiled, [write.values for write in writes])
        except Exception as error:  # Any error concerns one writer only: of several, each is tried alone.
            self.note(error)
            for write in writes:
                if len(writes) > 1 and self._connection.in_transaction:
                    self._run([write])
                else:
                    _fail(write.waiter, error)
        else:
            if first.key is None:
                self._written.append((first.waiter, rows))
                return
            by_key = {row[0]: row for row in rows}
            self._written += [(write.waiter, [by_key[write.key]] if write.key in by_key else []) for write in writes]

    def _commit_all(self) -> None:
        while (loop := self._commits.get()) is not None:
            error: Exception | None = None
            try:
                self._connection.execute("COMMIT")
            except Exception as failure:  # Whatever it is, those who wrote are told.
                self._roll_back_group()
                error = failure
            with suppress(RuntimeError):  # The loop was closed meanwhile: nobody waits any longer.
                loop.call_soon_threadsafe(self._committed, error)

    def _committed(self, failure: Exception | None) -> None:
        self._begun = self._committing = False
        written, self._written = self._written, []
        self._wake_waiting()  # Before the queue runs: a queue that is always full would keep transactions waiting.
        if self._queue:
            self._schedule_commit()  # Before the writers are answered: they go on while the next group is committed.
        error = None if failure is None else self._translated(failure)
        for waiter, rows in written:
            if error is not None:
                _fail(waiter, error)
            elif not waiter.done():
                waiter.set_result(rows)

    def _translated(self, error: Exception) -> StorageError:
        failure = translate(error, self._connection) if isinstance(error, DRIVER_ERRORS) else None
        # A constraint that is checked at the commit concerns all who wrote, whoever violated it.
        return failure if failure and not isinstance(failure, ConstraintViolated) else StorageUnavailable(str(error))

    def _wake_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


def _fail(waiter: Waiter, error: Exception) -> None:
    if not waiter.done():
        waiter.set_exception(error)
