"""Opens every connection to PostgreSQL: finds the primary among the hosts of one address
(docs/decisions.md, "Finding the primary").

All hosts are asked at once, each within a time of its own, so that a silent machine delays nobody
(`host_connector.py`). Of two servers that call themselves primary, the one with the newer timeline is taken
(`timelines.py`).
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Final
from weakref import WeakSet

from guichet.db.errors import NoPrimary
from guichet.db.postgres.address import Host
from guichet.db.postgres.connection import PostgresConnection, Server
from guichet.db.postgres.host_connector import HostConnector, Opened, close
from guichet.db.postgres.timelines import Timelines
from guichet.settings import Settings

#: Seconds by which the primary that is known is asked before the others. Usually nobody else is asked at all.
_HEAD_START: Final = 0.25
#: Seconds in which another host may still show a newer timeline, when nobody knows which host is the primary.
_NEWER_WITHIN: Final = 0.25


class PostgresHosts:
    """The hosts of one address. `bouncer`: they are PgBouncers in transaction mode, which say nothing of the server
    behind them: one that takes a connection is good. `timelines`: those that were seen."""

    def __init__(self, url: str, *, bouncer: bool = False, timelines: Timelines | None = None) -> None:
        self._bouncer = bouncer
        self._timelines = timelines or Timelines()
        self._connector = HostConnector(url, bouncer=bouncer, timelines=self._timelines)
        self._primary: Host | None = None
        self._primary_server: Server | None = None
        self._connections: WeakSet[PostgresConnection] = WeakSet()

    @classmethod
    def of(cls, settings: Settings) -> "PostgresHosts":
        timelines = Timelines(settings.timelines_file)
        return cls(settings.database_url, bouncer=settings.pgbouncer, timelines=timelines)

    @property
    def may_disagree(self) -> bool:
        """Whether one host may have been promoted while connections to another, the old primary, go on."""
        return not self._bouncer and len(self._connector.address.hosts) > 1

    async def connect(self, **options: Any) -> PostgresConnection:
        """A connection to the primary. `options`: asyncpg's.

        Raises NoPrimary; DatabaseUnusable for an address that cannot be read; if there is one host only, the driver's
        other errors too.
        """
        attempt, primary = self._connector.attempt, self._primary
        head_start = 0.0 if primary is None else _HEAD_START
        hosts = self._connector.address.hosts
        attempts = [attempt(host, 0.0 if host == primary else head_start, options) for host in hosts]
        connection = (await self._first(attempts, wait_for_newer=primary is None)).connection
        self._connections.add(connection)
        self._end_outdated_connections()
        return connection

    async def find_primary(self) -> None:
        """Returns once there is a primary. Until then each host is asked again and again, whatever the others do."""
        attempts = [self._connector.attempt_until_opened(host) for host in self._connector.address.hosts]
        await close((await self._first(attempts, wait_for_newer=True)).connection)

    async def look_at_others(self) -> None:
        """Asks the hosts that are not the primary whether one of them was promoted meanwhile."""
        others = [host for host in self._connector.address.hosts if host != self._primary]
        for opened in await asyncio.gather(*(self._connector.attempt(host, 0.0, {}) for host in others)):
            if opened is not None:
                await close(opened.connection)
                if _is_newer(opened.connection.server, self._primary_server):
                    self._remember(opened)
        self._end_outdated_connections()

    def fault(self) -> NoPrimary:
        """What happened with each host when it was asked last."""
        return self._connector.fault()

    def _end_outdated_connections(self) -> None:
        """Those to a primary that was replaced since; it may still answer, or hang for long."""
        for connection in [each for each in self._connections if self._timelines.is_outdated(each.server)]:
            self._connections.discard(connection)
            connection.terminate()

    async def _first(self, attempts: Iterable[Coroutine[Any, Any, Opened | None]], *, wait_for_newer: bool) -> Opened:
        """The first that succeeds, or the one with the newest timeline; the others are closed."""
        tasks = [asyncio.create_task(each) for each in attempts]
        chosen = None
        try:
            chosen = await _newest(tasks, _NEWER_WITHIN if wait_for_newer else 0.0)
        finally:
            for task in tasks:
                task.cancel()
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(outcome, Opened) and outcome is not chosen:
                    await close(outcome.connection)
        if chosen is None:
            raise self.fault()
        self._remember(chosen)
        return chosen

    def _remember(self, primary: Opened) -> None:
        self._primary, self._primary_server = primary.host, primary.connection.server


async def _newest(tasks: Iterable[asyncio.Task[Opened | None]], wait: float) -> Opened | None:
    """The first that was opened, or one on a newer timeline that comes within `wait` seconds after it."""
    loop = asyncio.get_running_loop()
    pending = set(tasks)
    newest: Opened | None = None
    deadline: float | None = None
    while pending:
        timeout = None if deadline is None else max(0.0, deadline - loop.time())
        done, pending = await asyncio.wait(pending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for opened in (task.result() for task in done):
            if opened and (newest is None or _is_newer(opened.connection.server, newest.connection.server)):
                newest = opened
        if not done or (newest and not wait):
            break
        if newest and deadline is None:
            deadline = loop.time() + wait
    return newest


def _is_newer(server: Server, other: Server | None) -> bool:
    if other is None:
        return True
    return server.cluster == other.cluster and (server.timeline or 0) > (other.timeline or 0)
