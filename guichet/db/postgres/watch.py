"""Notices the promotion of another host while connections to the old primary still live, or hang."""

import asyncio
from collections.abc import Sequence
from typing import Final

from guichet.db.postgres.hosts import PostgresHosts
from guichet.db.postgres.outage import Outage
from guichet.db.postgres.pool import ConnectionPool
from guichet.logs import log

#: How often the hosts that are not the primary are asked whether one of them was promoted, in seconds: usually, and
#: while a statement has had no answer for longer than _HANGS_AFTER.
_LOOK_INTERVAL: Final = 10.0
_LOOK_INTERVAL_WHILE_HANGING: Final = 2.0
_HANGS_AFTER: Final = 1.5
_WATCH_INTERVAL: Final = 0.5


class HostWatch:
    """One task for all pools of a process. It does nothing where hosts cannot disagree about who is the primary."""

    def __init__(self, hosts: PostgresHosts, outage: Outage, pools: Sequence[ConnectionPool]) -> None:
        self._hosts = hosts
        self._outage = outage
        self._pools = pools
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._hosts.may_disagree:
            self._task = asyncio.create_task(self._run(), name="postgresql hosts")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        looked_at = loop.time()
        while True:
            await asyncio.sleep(_WATCH_INTERVAL)
            hangs = any(pool.hangs(_HANGS_AFTER) for pool in self._pools)
            interval = _LOOK_INTERVAL_WHILE_HANGING if hangs else _LOOK_INTERVAL
            if self._outage.is_on or loop.time() - looked_at < interval:
                continue
            try:
                await self._hosts.look_at_others()
            except Exception as error:  # It looks again: without it, a promotion would be noticed late.
                log.error("database.look_failed", error=repr(error))
            looked_at = loop.time()
