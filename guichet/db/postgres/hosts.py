"""Opens every connection to PostgreSQL: finds the primary among the hosts of one address
(docs/decisions.md, "Finding the primary").

All hosts are asked at once, each within a time of its own, so that a silent machine delays nobody. Of two servers that
call themselves primary, the one with the newer timeline is taken (`timelines.py`).
"""

import asyncio
import os
import ssl
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from functools import cached_property
from typing import Any, Final
from weakref import WeakSet

import asyncpg

from guichet.db.errors import NoPrimary, OutdatedPrimary, PrimaryDiskFull, StorageError
from guichet.db.postgres.address import Address, Host, read_address
from guichet.db.postgres.connection import UNKNOWN_SERVER, PostgresConnection, Server
from guichet.db.postgres.errors import NO_CONNECTION, is_disk_full
from guichet.db.postgres.timelines import Timelines, ask_server
from guichet.settings import Settings

#: Seconds that a host has to accept a connection and to say what it is: one of several, and the only one.
_TIMEOUT: Final = 2.0
_ONLY_HOST_TIMEOUT: Final = 5.0
#: Seconds until a host that is not a primary is asked again, while there is none.
_ASK_AGAIN_AFTER: Final = 0.2
#: Seconds by which the primary that is known is asked before the others. Usually nobody else is asked at all.
_HEAD_START: Final = 0.25
#: Seconds in which another host may still show a newer timeline, when nobody knows which host is the primary.
_NEWER_WITHIN: Final = 0.25
_CLOSE_TIMEOUT: Final = 1.0


class PostgresHosts:
    """The hosts of one address. `bouncer`: they are PgBouncers in transaction mode, which say nothing of the server
    behind them: one that takes a connection is good. `timelines`: those that were seen."""

    def __init__(self, url: str, *, bouncer: bool = False, timelines: Timelines | None = None) -> None:
        self._url = url
        self._bouncer = bouncer
        self._timelines = timelines or Timelines()
        self._primary: Host | None = None
        self._primary_server = UNKNOWN_SERVER
        self._connections: WeakSet[PostgresConnection] = WeakSet()
        #: Why each host was not taken when it was asked last.
        self._faults: dict[Host, Exception] = {}

    @classmethod
    def of(cls, settings: Settings) -> "PostgresHosts":
        timelines = Timelines(settings.timelines_file)
        return cls(settings.database_url, bouncer=settings.pgbouncer, timelines=timelines)

    @property
    def may_disagree(self) -> bool:
        """Whether one host may have been promoted while connections to another, the old primary, go on."""
        return not self._bouncer and self._are_several

    async def connect(self, **options: Any) -> PostgresConnection:
        """A connection to the primary. `options`: asyncpg's.

        Raises NoPrimary; DatabaseUnusable for an address that cannot be read; if there is one host only, the driver's
        other errors too.
        """
        primary = self._primary
        head_start = 0.0 if primary is None else _HEAD_START
        attempts = [
            self._attempt(host, 0.0 if host == primary else head_start, options) for host in self._address.hosts
        ]
        connection = await self._first(attempts, wait_for_newer=primary is None)
        self._connections.add(connection)
        self._end_outdated_connections()
        return connection

    async def find_primary(self) -> None:
        """Returns once there is a primary. Until then each host is asked again and again, whatever the others do."""
        attempts = [self._attempt_until_opened(host) for host in self._address.hosts]
        await _close(await self._first(attempts, wait_for_newer=True))

    async def look_at_others(self) -> None:
        """Asks the hosts that are not the primary whether one of them was promoted meanwhile."""
        others = [host for host in self._address.hosts if host != self._primary]
        for connection in await asyncio.gather(*(self._attempt(host, 0.0, {}) for host in others)):
            if connection is not None:
                await _close(connection)
                if self._primary is None or _is_newer(connection.server, self._primary_server):
                    self._remember(connection)
        self._end_outdated_connections()

    def fault(self) -> NoPrimary:
        """What happened with each host when it was asked last."""
        faults = "; ".join(f"{host}: {self._words_of(fault)}" for host, fault in self._faults.items())
        kinds = {type(fault) for fault in self._faults.values()}
        kind = next((worse for worse in (OutdatedPrimary, PrimaryDiskFull) if worse in kinds), NoPrimary)
        return kind(faults or "a new connection was lost at once")

    @cached_property
    def _address(self) -> Address:
        """Raises DatabaseUnusable for an address that cannot be read."""
        return read_address(self._url, bouncer=self._bouncer)

    @property
    def _are_several(self) -> bool:
        return len(self._address.hosts) > 1

    @property
    def _timeout(self) -> float:
        return _TIMEOUT if self._are_several else _ONLY_HOST_TIMEOUT

    async def _first(
        self, attempts: Iterable[Coroutine[Any, Any, PostgresConnection | None]], *, wait_for_newer: bool
    ) -> PostgresConnection:
        """The first that succeeds, or the one with the newest timeline; the others are closed."""
        tasks = [asyncio.create_task(attempt) for attempt in attempts]
        chosen = None
        try:
            chosen = await _newest(tasks, _NEWER_WITHIN if wait_for_newer else 0.0)
        finally:
            for task in tasks:
                task.cancel()
            try:
                for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                    if isinstance(outcome, PostgresConnection) and outcome is not chosen:
                        await _close(outcome)
            except asyncio.CancelledError:  # Nobody would ever end the one that was chosen.
                if chosen is not None:
                    chosen.terminate()
                raise
        if chosen is None:
            raise self.fault()
        self._remember(chosen)
        return chosen

    def _remember(self, connection: PostgresConnection) -> None:
        self._primary, self._primary_server = connection.host, connection.server

    def _end_outdated_connections(self) -> None:
        """Those to a primary that was replaced since; it may still answer, or hang for long."""
        outdated = [connection for connection in self._connections if self._timelines.is_outdated(connection.server)]
        for connection in outdated:
            self._connections.discard(connection)
            connection.terminate()

    async def _attempt(self, host: Host, delay: float, options: dict[str, Any]) -> PostgresConnection | None:
        """None if the host cannot be taken; `fault` then says why. `options`: asyncpg's."""
        one_of_several = (asyncpg.PostgresError,) if self._are_several else ()
        await asyncio.sleep(delay)
        try:
            async with asyncio.timeout(self._timeout):
                connection = await self._open(host, options)
        except (*NO_CONNECTION, StorageError, *one_of_several) as error:
            self._faults[host] = error
            return None
        self._faults.pop(host, None)
        return connection

    async def _attempt_until_opened(self, host: Host) -> PostgresConnection:
        delay = 0.0
        while (connection := await self._attempt(host, delay, {})) is None:
            delay = _ASK_AGAIN_AFTER
        return connection

    async def _open(self, host: Host, options: dict[str, Any]) -> PostgresConnection:
        arguments: dict[str, Any] = {"connection_class": PostgresConnection, **options}
        try:
            connection: PostgresConnection = await asyncpg.connect(
                self._url,
                host=host.address,
                port=host.port,
                target_session_attrs=self._address.target,
                **arguments,
            )
        except asyncpg.PostgresError as error:
            if is_disk_full(error):
                raise PrimaryDiskFull(f"the disk is full ({error})") from error
            raise
        connection.host = host
        try:
            connection.give_up_when_silent()
            if not self._bouncer:
                await self._check(host, connection)
        except NoPrimary:
            await _close(connection)
            raise
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _check(self, host: Host, connection: PostgresConnection) -> None:
        connection.server = await ask_server(connection, ", ".join(sorted(map(str, self._address.hosts))))
        if connection.server.timeline is None and self._address.needs_primary:
            raise NoPrimary("a standby")
        self._timelines.check(str(host), connection.server)

    def _words_of(self, fault: Exception) -> str:
        """Why a host was not taken, for a message."""
        if isinstance(fault, TimeoutError):
            return f"no answer within {self._timeout:g} s"
        if isinstance(fault, asyncpg.TargetServerAttributeNotMatched):
            return "a standby, or read-only"
        if isinstance(fault, OSError) and not isinstance(fault, ssl.SSLError):
            known = os.strerror(fault.errno) if fault.errno is not None and fault.errno > 0 else fault.strerror
            return (known or str(fault)).lower()
        return str(fault) or type(fault).__name__


async def _newest(tasks: Iterable[asyncio.Task[PostgresConnection | None]], wait: float) -> PostgresConnection | None:
    """The first that was opened, or one on a newer timeline that comes within `wait` seconds after it."""
    loop = asyncio.get_running_loop()
    pending = set(tasks)
    newest: PostgresConnection | None = None
    deadline: float | None = None
    while pending:
        timeout = None if deadline is None else max(0.0, deadline - loop.time())
        done, pending = await asyncio.wait(pending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for connection in (task.result() for task in done):
            if connection is not None and (newest is None or _is_newer(connection.server, newest.server)):
                newest = connection
        if not done or (newest and not wait):
            break
        if newest and deadline is None:
            deadline = loop.time() + wait
    return newest


def _is_newer(server: Server, other: Server) -> bool:
    return server.cluster == other.cluster and (server.timeline or 0) > (other.timeline or 0)


async def _close(connection: PostgresConnection) -> None:
    """With a farewell: the server's log need not speak of a lost connection."""
    with suppress(Exception):
        await connection.close(timeout=_CLOSE_TIMEOUT)
