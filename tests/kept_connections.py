"""Connections to PostgreSQL that outlast a test.

A backend that is new reads the catalogues and plans each statement anew: two thirds of what a test costs that runs on
PostgreSQL. A pool that is closed leaves its idle connections, with what they have prepared, to the next one of the same
address and settings. They belong to an event loop, so loops outlast tests too (`kept_loops.py`).
"""

import asyncio
from collections import defaultdict
from collections.abc import Hashable
from contextlib import suppress
from typing import Any, Final
from weakref import WeakSet

import asyncpg
import pytest

from guichet.db.postgres import pool
from guichet.db.postgres.connection import PostgresConnection
from guichet.db.postgres.pool import ConnectionPool

_RESET_TIMEOUT: Final = 5.0


class KeptConnections:
    """Those to the database that one test after the other gets."""

    def __init__(self) -> None:
        #: The address of that database while a test has it that may use them.
        self.url: str | None = None
        self._free: defaultdict[Hashable, list[PostgresConnection]] = defaultdict(list)
        self._known: WeakSet[PostgresConnection] = WeakSet()

    @property
    def backends(self) -> list[int]:
        """The numbers of the processes of those that nobody uses."""
        return [each.get_server_pid() for free in self._free.values() for each in free if not each.is_closed()]

    def drop(self) -> None:
        for free in self._free.values():
            for connection in free:
                connection.terminate()
        self._free.clear()

    def install(self, patched: pytest.MonkeyPatch) -> None:
        prepare_new, connect_new, close_rest = pool._prepare, ConnectionPool._connect, ConnectionPool.close

        async def prepare(connection: Any) -> None:
            if connection not in self._known:
                await prepare_new(connection)

        async def connect(opened: ConnectionPool, *_: Any, **options: Any) -> PostgresConnection:
            return self._take(opened) or await connect_new(opened, **options)

        async def close(closing: ConnectionPool) -> None:
            if closing._hosts._url == self.url:
                await self._leave(closing)
            await close_rest(closing)

        patched.setattr(pool, "_prepare", prepare)
        patched.setattr(ConnectionPool, "_connect", connect)
        patched.setattr(ConnectionPool, "close", close)

    def _take(self, opened: ConnectionPool) -> PostgresConnection | None:
        free = self._free[_key(opened)] if opened._hosts._url == self.url and not opened._outage.is_on else []
        while free:
            if not (connection := free.pop()).is_closed():
                return connection
        return None

    async def _leave(self, closing: ConnectionPool) -> None:
        closed: Any = closing._pool
        for holder in closed._holders:
            connection = holder._con
            if holder.is_connected() and holder.is_idle() and holder._generation == closed._generation:
                with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                    await connection.reset(timeout=_RESET_TIMEOUT)
                    holder._maybe_cancel_inactive_callback()
                    holder._con = connection._pool_holder = None
                    self._known.add(connection)
                    self._free[_key(closing)].append(connection)


def _key(of: ConnectionPool) -> Hashable:
    """What makes one connection as good as another."""
    loop = asyncio.get_running_loop()
    return loop, of._hosts._url, of._bouncer, of._statement_timeout, tuple(sorted(of._settings.items()))
