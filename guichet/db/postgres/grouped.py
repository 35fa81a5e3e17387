"""What many tasks write or find at the same time, each a row of its own: one statement for all of them.

A commit waits for the disk, and for the standby if there is one, whatever is in it; through PgBouncer each statement is
planned anew. What arrives while two batches are on their way goes into the next. Nothing else is delayed.
"""

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import Executable

from guichet.db.batching import GATHERED_WITHIN, Batching, Result
from guichet.db.engine import Database, GroupedWrite, Row
from guichet.db.errors import StorageError, StorageUnavailable, TransactionAborted
from guichet.db.postgres.pool import ACQUIRE_TIMEOUT

#: Rows of one statement at most.
_TOGETHER: Final = 64
#: The second batch is filled and sent while the server works on the first.
_AT_ONCE: Final = 2

_Params = dict[str, Any]


class GroupedWrites(dict[GroupedWrite, Batching[_Params, Row | None]]):
    """Those of one database, by the statement. What is added raises StorageUnavailable, like a write that gets no
    connection, when its statement could not be sent within ACQUIRE_TIMEOUT seconds."""

    def __init__(self, db: Database) -> None:
        super().__init__()
        self._db = db

    def __missing__(self, group: GroupedWrite) -> Batching[_Params, Row | None]:
        write = partial(self._write_together, group)
        batching = self[group] = Batching(write, _TOGETHER, at_once=_AT_ONCE, patience=ACQUIRE_TIMEOUT)
        return batching

    async def _write_together(self, group: GroupedWrite, batch: Sequence[_Params]) -> Sequence[Result[Row | None]]:
        by_key = {params[group.key]: params for params in batch}
        if len(by_key) < len(batch):  # One statement cannot do something to a row twice.
            return await self._write_each(group, batch)
        try:
            # In the order of their keys, as settlement locks its rows: two transactions cannot deadlock.
            rows = await self._db.write_group(group, {key: by_key[key] for key in sorted(by_key)})
        except StorageError as error:
            if len(batch) == 1:
                raise
            if isinstance(error, StorageUnavailable) and not isinstance(error, TransactionAborted):
                raise
            return await self._write_each(group, batch)
        returned = {row[0]: row for row in rows}
        return [returned.get(params[group.key]) for params in batch]

    async def _write_each(self, group: GroupedWrite, batch: Sequence[_Params]) -> Sequence[Result[Row | None]]:
        """Each in a transaction of its own, with the error that concerns it alone."""

        async def written(params: _Params) -> Result[Row | None]:
            try:
                rows = await self._db.write_group(group, {params[group.key]: params})
            except Exception as error:  # Whatever it is, whoever wrote this row gets it.
                return error
            return rows[0] if rows else None

        return await asyncio.gather(*map(written, batch))


class GroupedReads(dict[Executable, Batching[str, Row | None]]):
    """As `GroupedWrites`, of reads that come within GATHERED_WITHIN seconds. One that waits for a connection holds up
    no other."""

    def __init__(self, db: Database) -> None:
        super().__init__()
        self._db = db

    def __missing__(self, statement: Executable) -> Batching[str, Row | None]:
        batching = self[statement] = Batching(
            partial(self._find_together, statement),
            _TOGETHER,
            at_once=_AT_ONCE,
            patience=ACQUIRE_TIMEOUT,
            gathers=GATHERED_WITHIN,
        )
        return batching

    async def _find_together(self, statement: Executable, keys: Sequence[str]) -> Sequence[Row | None]:
        found = {str(row[0]): row for row in await self._db.all(statement, keys=json.dumps(keys))}
        return [found.get(key) for key in keys]
