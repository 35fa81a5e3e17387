"""Reads of one row each that come within GATHERED_WITHIN seconds: one statement for all of them."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Final

from guichet.db.batching import GATHERED_WITHIN, Batching
from guichet.db.engine import Database, GroupedRead, Row
from guichet.db.postgres.pool import ACQUIRE_TIMEOUT

#: Keys of one statement at most.
_TOGETHER: Final = 64
#: One that waits for a connection holds up no other.
_AT_ONCE: Final = 2


class GroupedReads:
    """Those of one database."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._groups: dict[GroupedRead, Batching[str, Row | None]] = {}

    async def find(self, group: GroupedRead, key: str) -> Row | None:
        """Raises StorageUnavailable, like a read that gets no connection, when its statement could not be sent within
        ACQUIRE_TIMEOUT seconds."""
        batching = self._groups.get(group)
        if batching is None:
            batching = self._groups[group] = Batching(
                partial(self._find_together, group),
                _TOGETHER,
                at_once=_AT_ONCE,
                patience=ACQUIRE_TIMEOUT,
                gathers=GATHERED_WITHIN,
            )
        return await batching.add(key)

    async def _find_together(self, group: GroupedRead, keys: Sequence[str]) -> Sequence[Row | None]:
        found = {str(row[0]): row for row in await self._db.all(group.statement, keys=json.dumps(keys))}
        return [found.get(key) for key in keys]
