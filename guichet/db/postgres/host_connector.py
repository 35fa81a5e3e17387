"""Opens a connection to one host of an address, and asks the server what it is."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import asyncpg

from guichet.db.errors import NoPrimary, OutdatedPrimary, StorageError
from guichet.db.postgres.address import Address, Host, read_address, words_of
from guichet.db.postgres.connection import PostgresConnection
from guichet.db.postgres.errors import NO_CONNECTION
from guichet.db.postgres.timelines import Timelines, ask_server

#: Seconds that a host has to accept a connection and to say what it is: one of several, and the only one.
_TIMEOUT: Final = 2.0
_ONLY_HOST_TIMEOUT: Final = 5.0
#: Seconds until a host that is not a primary is asked again, while there is none.
_ASK_AGAIN_AFTER: Final = 0.2
_CLOSE_TIMEOUT: Final = 1.0


@dataclass(frozen=True, slots=True)
class Opened:
    host: Host
    connection: PostgresConnection


class HostConnector:
    """`url`, `bouncer`, `timelines`: see `PostgresHosts`."""

    def __init__(self, url: str, *, bouncer: bool, timelines: Timelines) -> None:
        self._url = url
        self._bouncer = bouncer
        self._timelines = timelines
        #: Why each host was not taken when it was asked last.
        self._faults: dict[Host, Exception] = {}

    @cached_property
    def address(self) -> Address:
        """Raises DatabaseUnusable for an address that cannot be read."""
        return read_address(self._url, bouncer=self._bouncer)

    def fault(self) -> NoPrimary:
        """What happened with each host when it was asked last."""
        said = "; ".join(f"{host}: {words_of(fault, self._timeout)}" for host, fault in self._faults.items())
        outdated = any(isinstance(fault, OutdatedPrimary) for fault in self._faults.values())
        return (OutdatedPrimary if outdated else NoPrimary)(said or "a new connection was lost at once")

    async def attempt(self, host: Host, delay: float, options: dict[str, Any]) -> Opened | None:
        """None if the host cannot be taken; `fault` then says why. `options`: asyncpg's."""
        one_of_several = (asyncpg.PostgresError,) if len(self.address.hosts) > 1 else ()
        await asyncio.sleep(delay)
        try:
            async with asyncio.timeout(self._timeout):
                connection = await self._open(host, options)
        except (*NO_CONNECTION, StorageError, *one_of_several) as error:
            self._faults[host] = error
            return None
        self._faults.pop(host, None)
        return Opened(host, connection)

    async def attempt_until_opened(self, host: Host) -> Opened:
        delay = 0.0
        while (opened := await self.attempt(host, delay, {})) is None:
            delay = _ASK_AGAIN_AFTER
        return opened

    @property
    def _timeout(self) -> float:
        return _TIMEOUT if len(self.address.hosts) > 1 else _ONLY_HOST_TIMEOUT

    async def _open(self, host: Host, options: dict[str, Any]) -> PostgresConnection:
        arguments: dict[str, Any] = {"connection_class": PostgresConnection, **options}
        connection: PostgresConnection = await asyncpg.connect(
            self._url,
            host=host.address,
            port=host.port,
            target_session_attrs=self.address.target,
            **arguments,
        )
        try:
            connection.give_up_when_silent()
            if not self._bouncer:
                await self._check(host, connection)
        except NoPrimary:
            await close(connection)
            raise
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _check(self, host: Host, connection: PostgresConnection) -> None:
        connection.server = await ask_server(connection, ", ".join(sorted(map(str, self.address.hosts))))
        if connection.server.timeline is None and self.address.needs_primary:
            raise NoPrimary("a standby")
        self._timelines.check(str(host), connection.server)


async def close(connection: PostgresConnection) -> None:
    """With a farewell: the server's log need not speak of a lost connection."""
    with suppress(Exception):
        await connection.close(timeout=_CLOSE_TIMEOUT)
