"""Whether a write would work now: one small row is really written and committed, seldom, and answered in bounded time.

Nothing less would do: on a full disk a database still answers questions, and on PostgreSQL a commit may wait for a
standby that is gone (docs/decisions.md, "Ready means writable").
"""

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from sqlalchemy import bindparam, select, text

from guichet.clock import SECOND, Clock
from guichet.db.engine import Database
from guichet.db.errors import (
    ConnectionLost,
    DatabaseDamaged,
    DiskFull,
    OutdatedPrimary,
    ReadOnlyServer,
    StorageError,
    StorageUnavailable,
)
from guichet.db.postgres.replication import waiting_commits
from guichet.db.sql_functions import upsert
from guichet.db.tables import merchants, write_probe
from guichet.logs import log

#: Seconds after which the answer is no, whatever becomes of the write.
TIMEOUT: Final = 1.5
#: Microseconds for which an answer is repeated: `/readyz` is public.
FRESH_FOR: Final = SECOND
#: Bytes that must be left on the disk. A small write may find room in a file when the disk has none for the next
#: payment: in the log of an embedded database, in a page that is there already in PostgreSQL.
MIN_FREE: Final = 1024 * 1024
TOO_SLOW: Final = f"no write within {TIMEOUT:g} s"
STANDBY_SILENT: Final = "a synchronous standby does not answer"
#: Seconds into a write after which the server is asked whether it waits for a standby, and seconds for the answer.
_ASK_AFTER: Final = 1.0
_ASK_TIMEOUT: Final = 0.4
_READ: Final = select(merchants.c.id).limit(1)
#: The same on PostgreSQL, which has no function for the free space of its disk: MIN_FREE bytes are too many for this
#: statement's memory, so the server writes them to a temporary file beside the tables, and deletes it.
_READ_WITH_ROOM: Final = text(
    "SELECT (SELECT id FROM public.merchants LIMIT 1), count(*)"
    " FROM set_config('work_mem', '64kB', true) AS memory(size),"
    " LATERAL unnest(array_fill(repeat(left(memory.size, 1), 65536), ARRAY[16]))"
)
_probe: Final = upsert(write_probe).values(name="probe", written_at=bindparam("now"))
_WRITE: Final = _probe.on_conflict_do_update(
    index_elements=["name"], set_={"written_at": _probe.excluded.written_at}
).returning(write_probe.c.name)
#: What is said of an error; the first class that fits. The error's own text is for the log: `/readyz` is public.
_WORDS: Final[tuple[tuple[type[StorageError], str], ...]] = (
    (DiskFull, "the disk is full"),
    (DatabaseDamaged, "the database file is damaged"),
    (ReadOnlyServer, "the database is read-only"),
    (OutdatedPrimary, "the only primary is older than one seen before"),
    (ConnectionLost, "the connection was lost"),
    (StorageUnavailable, "the database is unavailable"),
    (StorageError, "the database refuses the write"),
)


class WriteProbe:
    """At most one write runs at a time, and its result is shared by all who ask within FRESH_FOR.

    `disk`: a folder on the disk of an embedded database; None for PostgreSQL. `monitoring_db`: PostgreSQL by
    connections that no write uses, to find out what a write waits for.
    """

    def __init__(self, db: Database, clock: Clock, disk: Path | None, monitoring_db: Database | None) -> None:
        self._db = db
        self._monitoring_db = monitoring_db
        self._clock = clock
        self._disk = disk
        self._fault: str | None = None
        self._checked_at: int | None = None
        self._running: asyncio.Task[None] | None = None
        #: When the running write must have ended, in the loop's time.
        self._deadline = 0.0
        #: What is said of the running write if it is not done in time.
        self._too_slow = TOO_SLOW

    async def fault(self) -> str | None:
        """None if a write works; otherwise why not, in a few words of ours. Takes TIMEOUT at most."""
        loop = asyncio.get_running_loop()
        if self._running is None and not self._is_fresh():
            self._running = asyncio.create_task(self._check())
            self._deadline = loop.time() + TIMEOUT
        if self._running is not None:
            await asyncio.wait({self._running}, timeout=max(0.0, self._deadline - loop.time()))
        return self._fault if self._running is None else self._too_slow

    async def close(self) -> None:
        """Ends a write that hangs, before the database is closed."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    def _is_fresh(self) -> bool:
        return self._checked_at is not None and self._clock.monotonic() - self._checked_at < FRESH_FOR

    async def _check(self) -> None:
        self._too_slow = TOO_SLOW
        asking = asyncio.create_task(self._ask_what_it_waits_for())
        try:
            fault = await self._write()
        finally:
            asking.cancel()
            self._running = None
        if fault is not None and self._too_slow != TOO_SLOW:  # The write was given up; it waited for this.
            fault = self._too_slow
        if fault != self._fault:
            log.warning("readiness.changed", fault=fault)
        self._fault, self._checked_at = fault, self._clock.monotonic()

    async def _ask_what_it_waits_for(self) -> None:
        await asyncio.sleep(_ASK_AFTER)
        if self._monitoring_db is None:
            return
        with suppress(StorageError, OSError, TimeoutError):  # Then nobody can tell.
            async with asyncio.timeout(_ASK_TIMEOUT):
                if (await waiting_commits(self._monitoring_db)).longest > _ASK_AFTER / 2:
                    self._too_slow = STANDBY_SILENT

    async def _write(self) -> str | None:
        try:
            if self._disk is not None and shutil.disk_usage(self._disk).free < MIN_FREE:
                raise DiskFull(f"less than {MIN_FREE} bytes are left on the disk of {self._disk}")
            await self._db.one(_READ if self._disk is not None else _READ_WITH_ROOM)
            await self._db.write(_WRITE, now=self._clock.now())
        except (StorageError, OSError) as error:
            log.error("readiness.write_failed", error=repr(error))
            return next((words for kind, words in _WORDS if isinstance(error, kind)), "the disk does not answer")
        return None
