"""One connection to PostgreSQL: what it does in place of asyncpg's, and when its silence ends it."""

import asyncio
import secrets
import socket
from collections.abc import Iterable
from typing import Any, ClassVar, Final

import asyncpg

from guichet.db.postgres.address import Host
from guichet.domain.records import Record

#: A connection of the pool. asyncpg's generic proxy class would add nothing here.
Connection = Any

#: When the server's machine falls silent (no network, no power), its connections are given up within ten seconds, and
#: not only after STATEMENT_TIMEOUT: probes after five seconds, and no answer to anything for ten (milliseconds).
_SILENCE: Final = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 10_000}


class Server(Record, frozen=True):
    """What a server says of itself. `cluster`: the same on a primary and its standbys at one address. `timeline`: grows
    with each promotion; None on a standby, 0 where the server does not tell."""

    cluster: str
    timeline: int | None


#: A server that was not asked: behind PgBouncer, each transaction may reach another one.
UNKNOWN_SERVER: Final = Server("", 0)
#: Numbers of types below this are PostgreSQL's own, the same in every database.
_FIRST_OTHER_TYPE: Final = 10_000
#: Of a statement that looks for itself.
_NAME: Final = "guichet_name"
_OWN_NAME: Final = "SELECT name FROM pg_catalog.pg_prepared_statements WHERE name = 'guichet_name'"


class _NothingPrepared:
    """In place of the statement that asked about types: no statement of the connection was replaced by it."""

    name = "none"


class PostgresConnection(asyncpg.Connection):
    """Never takes a commit for done that the synchronous standby did not confirm
    (docs/decisions.md, "Engine that exists"). What asyncpg asks a server about PostgreSQL's own types, by three
    statements of some milliseconds for each new connection, is asked once in a process."""

    host: Host
    server = UNKNOWN_SERVER
    _types: ClassVar[dict[frozenset[int], Any]] = {}
    _type_names: ClassVar[dict[str, Any]] = {}

    async def _introspect_types(self, typeoids: Iterable[int], timeout: float | None) -> tuple[Any, Any]:
        key = frozenset(typeoids)
        if (known := self._types.get(key)) is not None:
            return known, _NothingPrepared
        types, statement = await super()._introspect_types(typeoids, timeout)  # type: ignore[misc] # asyncpg types its public methods only
        if max(key) < _FIRST_OTHER_TYPE:
            self._types[key] = types
        return types, statement

    async def _introspect_type(self, typename: str, schema: str) -> Any:
        if schema != "pg_catalog":
            return await super()._introspect_type(typename, schema)  # type: ignore[misc]
        if typename not in self._type_names:
            self._type_names[typename] = await super()._introspect_type(typename, schema)  # type: ignore[misc]
        return self._type_names[typename]

    def _process_log_message(self, fields: dict[str, str], last_query: str | None) -> None:
        """Called with each warning of the server, before its statement ends.

        When somebody cancels a wait for the standby (an administrator, a cancel request that came late), PostgreSQL
        warns that the transaction is committed on the primary alone, and then answers as if all were well. Closing the
        connection makes it what it is: an answer that was lost. Messages are translated, and the code of this warning
        is that of all warnings; the name of the server's source file tells it apart.
        """
        if fields.get("F") == "syncrep.c":
            self.terminate()

    def give_up_when_silent(self) -> None:
        transport: Any = self._transport  # type: ignore[attr-defined] # asyncpg has no other way to it
        connected = transport.get_extra_info("socket")
        if connected.family == socket.AF_UNIX:
            return
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _SILENCE.items():
            if hasattr(socket, name):  # Linux has all of them, other systems some.
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def keeps_statements(connection: asyncpg.Connection) -> bool:
    """Whether PgBouncer makes a statement that is prepared under a name known to each server that it reaches (1.21 and
    later, with `max_prepared_statements`): then it gives it a name of its own. Otherwise it passes the name on, and the
    next message may reach another server, or one that knows the name from another client."""
    try:
        statement = await connection.prepare(_OWN_NAME, name=_NAME)
        return not await statement.fetch()
    except (asyncpg.DuplicatePreparedStatementError, asyncpg.InvalidSQLStatementNameError):
        return False


class BouncerConnection(PostgresConnection):
    """Behind PgBouncer, a statement that outlasts its time is given up by closing its connection.

    A cancel request comes as a connection of its own, and may reach the server when another client's COMMIT is there.
    PgBouncer 1.18 (Debian 12) also ends with an error when many come at once.

    Statements stay prepared if PgBouncer keeps them. If not, each is parsed where it is executed, in the same round
    trip; what it takes and returns was described when this connection sent it first, and is kept for five minutes by
    asyncpg.
    """

    _keeps_statements = False

    async def find_whether_statements_are_kept(self) -> None:
        self._names = secrets.token_hex(8)
        self._keeps_statements = await keeps_statements(self)

    def _get_unique_id(self, prefix: str) -> str:
        """asyncpg's is unique in its process. Where PgBouncer is told to keep statements no longer, names reach the
        server as they are: none may be another client's statement."""
        return f"{super()._get_unique_id(prefix)}{self._names}"  # type: ignore[misc] # not public

    async def _get_statement(
        self, query: str, timeout: float | None, *, named: str | bool | None = False, **options: Any
    ) -> Any:
        if self._keeps_statements or isinstance(named, str):
            return await super()._get_statement(query, timeout, named=named or True, **options)  # type: ignore[misc]
        statement = await super()._get_statement(query, timeout, named="", **options)  # type: ignore[misc]
        statement.mark_unprepared()
        return statement

    def _cancel_current_command(
        self, waiter: asyncio.Future[None], cancel_waiter: asyncio.Future[None] | None = None
    ) -> None:
        """Called when a statement's time is over or its task was cancelled, before the statement's waiter is told."""
        asyncio.get_running_loop().call_soon(self.terminate)
        for future in (waiter, cancel_waiter):
            if future is not None and not future.done():
                future.set_result(None)
