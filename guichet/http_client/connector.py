"""Connections: made by aiohttp behind an address guard, kept for the next request; and one HTTP/1.1 exchange on one of
them: the request in one write, the response through httptools, with bounds on what a peer may send.

Of aiohttp only names, addresses and TLS are used. Its requests, responses, parser and pool took three quarters of a
request's instructions (bench/README.md).

`_factory` and `_create_connection` are not in aiohttp's documented interface. They are used here only, and every test
of `tests/http_client` fails if a new version of aiohttp stops honouring them.
"""

import asyncio
import ssl
from collections import defaultdict
from functools import partial
from typing import Any, Final, cast

from aiohttp import (
    ClientConnectionError,
    ClientPayloadError,
    ClientRequest,
    ClientTimeout,
    ServerDisconnectedError,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver
from httptools import HttpParserCallbackError, HttpParserError, HttpResponseParser
from yarl import URL

from guichet.http_client.address_guard import AddressGuard
from guichet.http_client.outcomes import Response

#: How certificates are verified. True: aiohttp's own context, with the system's authorities. False: not at all.
TlsContext = ssl.SSLContext | bool
#: What a connection can be used for: host, port, and whether with TLS.
Origin = tuple[str, int, bool]
#: Bytes that are not body (head, informational responses, chunk sizes and extensions, trailers). A response may have
#: as many more as its body has bytes, because small chunks are legitimate.
MAX_HEAD: Final = 64 * 1024
#: Seconds an idle connection is kept. Common servers close theirs after 5; a request sent just then would be `Lost`.
KEEP_ALIVE: Final = 4.0
#: Seconds a resolved name is remembered.
DNS_CACHE: Final = 10
#: Ours, not aiohttp's: one deadline for everything together.
_NO_TIMEOUT: Final = ClientTimeout()
_SWITCHING_PROTOCOLS: Final = 101


class Connection(asyncio.Protocol):
    """One connection, and the exchange on it. It ends when its peer sends too much, or anything while nobody waits."""

    #: Of the response, once its head has come.
    status: int | None = None
    #: When the last exchange ended, in the loop's seconds.
    idle_since = 0.0
    #: Both from `connection_made` on.
    _transport: asyncio.Transport
    _parser: HttpResponseParser
    _response: asyncio.Future[Response] | None = None
    #: The response says where it ends; otherwise it ends with the connection.
    _has_length = False
    _is_complete = False
    _is_kept_alive = False

    def __init__(self, opened: "set[Connection]") -> None:
        """`opened`: all connections that are open."""
        self._opened = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(  # As browsers and aiohttp's client: old servers fold their headers.
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._opened.add(self)

    def is_open(self) -> bool:
        return not self._transport.is_closing()

    def is_reusable(self) -> bool:
        """Whether the exchange ended cleanly: the request is written to its end, and nothing follows the response."""
        return (
            self._is_complete and self._is_kept_alive and self.is_open() and not self._transport.get_write_buffer_size()
        )

    def exchange(self, request: bytes, max_bytes: int) -> asyncio.Future[Response]:
        """Sends `request`. The response has `max_bytes` of its body at most."""
        self._response = response = asyncio.get_running_loop().create_future()
        self._body = bytearray()
        self._max_bytes = max_bytes
        self._received = 0
        self.status = None
        self._is_complete = self._is_kept_alive = False
        self._transport.write(request)
        return response

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        """Without the goodbye of TLS: a peer that does not reply to it would keep the socket for 30 s."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if len(data) > MAX_HEAD:  # In pieces, so that the bound holds back what would keep the parser busy.
            for start in range(0, len(data), MAX_HEAD):
                self.data_received(data[start : start + MAX_HEAD])
            return
        response = self._response
        if response is None or response.done():
            self.abort()  # It could be taken for the response to the next request.
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            if not self._is_complete or not isinstance(error, HttpParserCallbackError):
                self._fail(response, error)
                return
        size = len(self._body)
        if self._received > MAX_HEAD + 2 * size:
            self._fail(response, ClientPayloadError("too many bytes beside the body"))
        elif self._is_complete or size > self._max_bytes:
            self._succeed(response)

    def on_message_begin(self) -> None:
        self._has_length = self._is_kept_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"content-length" or (name == b"transfer-encoding" and b"chunked" in value.lower()):
            self._has_length = True

    def on_headers_complete(self) -> None:
        if self._is_complete:
            raise ValueError("a second response")  # Stops the parser: nobody asked for it.
        status = self._parser.get_status_code()
        if status >= 200 or status == _SWITCHING_PROTOCOLS:
            self.status = status
            self._is_kept_alive = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._is_complete = self.status is not None  # Otherwise it was informational.
        if self.status == _SWITCHING_PROTOCOLS:
            self._is_kept_alive = False
            raise ValueError("another protocol")  # Stops the parser: nobody speaks it.

    def connection_lost(self, exc: Exception | None) -> None:
        self._opened.discard(self)
        self._parser = None  # type: ignore[assignment]  # Ends a circle of references.
        response = self._response
        if response is None or response.done():
            return
        if self.status is None or self._has_length:
            self._fail(response, exc or ServerDisconnectedError())
        else:
            self._succeed(response)

    def _succeed(self, response: asyncio.Future[Response]) -> None:
        assert self.status is not None
        body, most = self._body, self._max_bytes
        response.set_result(Response(self.status, bytes(body[:most]), len(body) <= most))
        self._response, self._body = None, bytearray()

    def _fail(self, response: asyncio.Future[Response], error: Exception) -> None:
        response.set_exception(error)
        self.abort()


class GuardedConnector(TCPConnector):
    """Connections under one rule: `guard` decides about addresses, `context` about certificates."""

    def __init__(self, guard: AddressGuard, context: TlsContext, resolver: AbstractResolver) -> None:
        super().__init__(
            resolver=resolver,
            ssl=context,
            limit=0,  # How many requests run at once is the caller's rule. A limit here would let hung ones delay all.
            ttl_dns_cache=DNS_CACHE,
            socket_factory=guard,
        )
        self._opened: set[Connection] = set()
        self._idle: defaultdict[Origin, list[Connection]] = defaultdict(list)
        self._expiry: asyncio.TimerHandle | None = None
        self._factory: Any = partial(Connection, self._opened)

    def kept(self, origin: Origin) -> Connection | None:
        """The connection that became idle last, if its peer said nothing since."""
        idle = self._idle.get(origin)
        if idle:
            since = self._loop.time() - KEEP_ALIVE
            while idle:
                connection = idle.pop()
                if connection.is_open() and connection.idle_since >= since:
                    return connection
                connection.close()
        return None

    async def connected(self, url: URL) -> Connection:
        """A new connection: TCP and TLS done."""
        made = await self._create_connection(ClientRequest("GET", url, loop=self._loop), [], _NO_TIMEOUT)
        connection = cast(Connection, made)
        if self.closed:
            connection.abort()
            raise ClientConnectionError("Connector is closed.")
        if not connection.is_open():
            raise ServerDisconnectedError
        return connection

    def give_back(self, origin: Origin, connection: Connection) -> None:
        """Keeps it for the next request, if its exchange ended cleanly."""
        if not connection.is_reusable():
            connection.abort()
            return
        connection.idle_since = self._loop.time()
        self._idle[origin].append(connection)
        if self._expiry is None:
            self._expiry = self._loop.call_later(KEEP_ALIVE, self._close_idle)

    def _close_idle(self) -> None:
        since = self._loop.time() - KEEP_ALIVE
        idle, self._idle = self._idle, defaultdict(list)
        for origin, connections in idle.items():
            for connection in connections:
                if connection.is_open() and connection.idle_since > since:
                    self._idle[origin].append(connection)
                else:
                    connection.close()
        self._expiry = self._loop.call_later(KEEP_ALIVE, self._close_idle) if self._idle else None

    async def aclose(self) -> None:
        """Ends all connections, and what waits for one."""
        if self._expiry is not None:
            self._expiry.cancel()
        for connection in list(self._opened):
            connection.abort()
        await self.close()
