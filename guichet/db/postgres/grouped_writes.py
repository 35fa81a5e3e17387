"""Writes of one row each that come at the same time: one statement and one commit for all of them.

A commit waits for the disk, and for the standby if there is one, whatever is in it; through PgBouncer each statement is
planned anew. What arrives while two batches are being written goes into the next. Nothing else is delayed.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from guichet.db.batching import Batching, Result
from guichet.db.engine import Database, GroupedWrite, Row
from guichet.db.errors import StorageError, StorageUnavailable, TransactionAborted
from guichet.db.postgres.pool import ACQUIRE_TIMEOUT

#: Rows of one statement at most.
_TOGETHER: Final = 64
#: The second batch is filled and sent while the server works on the first.
_AT_ONCE: Final = 2

_Params = dict[str, Any]


class GroupedWrites:
    """Those of one database."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._groups: dict[GroupedWrite, Batching[_Params, Row | None]] = {}

    async def write(self, group: GroupedWrite, params: _Params) -> Row | None:
        """Raises StorageUnavailable, like a write that gets no connection, when its statement could not be sent within
        ACQUIRE_TIMEOUT seconds."""
        batching = self._groups.get(group)
        if batching is None:
            write = partial(self._write_together, group)
            batching = Batching(write, _TOGETHER, at_once=_AT_ONCE, patience=ACQUIRE_TIMEOUT)
            self._groups[group] = batching
        return await batching.add(params)

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
