"""aiohttp's connector with three additions: the address guard, the exact connection of each request, and a bound on
what a peer may send beside the body of its response.

`ResponseHandler` and `_factory` are not in aiohttp's documented interface. They are used in this file only, and
`tests/http_client/test_hostile_peers.py` fails if a new version of aiohttp stops honouring them.
"""

import asyncio
import ssl
from contextvars import ContextVar
from functools import partial
from socket import socket
from typing import Final

from aiohttp import ClientPayloadError, ClientRequest, ClientTimeout, TCPConnector
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import AddrInfoType, Connection
from aiohttp.tracing import Trace

from guichet.http_client.address_guard import AddressGuard, AddressRefused

#: Bytes that are not body (head, informational responses, chunk sizes and extensions, trailers). A response may have
#: as many more as its body has bytes, because small chunks are legitimate.
MAX_HEAD: Final = 64 * 1024
#: Seconds an idle connection is kept. Common servers close theirs after 5; a request sent just then would be `Lost`.
KEEP_ALIVE: Final = 4.0
#: Seconds a resolved name is remembered.
DNS_CACHE: Final = 10


class Exchange:
    """What is known about the connection of one request."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._protocol: BoundedProtocol | None = None
        self._transport: asyncio.Transport | None = None
        self._refused = False
        self._tried = False

    @property
    def connected(self) -> bool:
        """Whether a connection was in hand: TCP and TLS done, or a kept one reused."""
        return self._connection is not None

    @property
    def forbidden(self) -> bool:
        """Whether there was an address, and the guard refused each."""
        return self._refused and not self._tried

    def note_address(self, *, refused: bool) -> None:
        self._refused = self._refused or refused
        self._tried = self._tried or not refused

    def start(self, connection: Connection) -> bool:
        """Use this connection. False when it may not be used: the peer said something that nobody asked for."""
        protocol = connection.protocol
        assert isinstance(protocol, BoundedProtocol)
        if not protocol.begin(connection):
            return False
        self._connection, self._protocol, self._transport = connection, protocol, connection.transport
        return True

    def abort(self) -> None:
        """Close the connection at once, unless another request already has it.

        aiohttp by itself says goodbye in TLS first, and a peer that does not reply would keep the socket for 30 s.
        """
        if self._connection is not None and self._protocol is not None and self._protocol.serves(self._connection):
            self._connection.close()
            if self._transport is not None:
                self._transport.abort()


#: The exchange of the running request: aiohttp calls the connector in the task of the request or in a child of it.
current_exchange: ContextVar[Exchange] = ContextVar("current_exchange")


class BoundedProtocol(ResponseHandler):
    """Reads responses, and gives up on a peer that sends too much, or anything while no request is waiting."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._connection: Connection | None = None
        self._received = 0

    def begin(self, connection: Connection) -> bool:
        """Start counting for a new exchange. False when something is left over from the one before."""
        if self.should_close:
            return False
        self._connection = connection
        self._payload = None
        self._received = 0
        return True

    def serves(self, connection: Connection) -> bool:
        """Whether `connection` is the last one that used this socket."""
        return self._connection is connection

    def data_received(self, data: bytes) -> None:
        waiting = self._connection is not None and self._connection.protocol is not None
        if data and not waiting:
            self.abort()  # It could be taken for the response to the next request.
            return
        self._received += len(data)
        super().data_received(data)
        error = self.exception()
        body = self._payload.total_bytes if self._payload is not None else 0
        if error is None and self._received > MAX_HEAD + 2 * body:
            error = ClientPayloadError("too many bytes beside the body")
        if error is not None:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        payload, transport = self._payload, self.transport
        self.set_exception(error)
        if payload is not None:
            payload.set_exception(error)  # Otherwise its reader would wait until the request times out.
        if transport is not None:
            transport.abort()


class GuardedConnector(TCPConnector):
    """Connections under one rule: `guard` decides about addresses, `context` about certificates."""

    def __init__(self, guard: AddressGuard, context: ssl.SSLContext, resolver: AbstractResolver) -> None:
        super().__init__(
            resolver=resolver,
            ssl=context,
            limit=0,  # How many requests run at once is the caller's rule. A limit here would let hung ones delay all.
            limit_per_host=0,
            keepalive_timeout=KEEP_ALIVE,
            ttl_dns_cache=DNS_CACHE,
            socket_factory=self._open_socket,
        )
        self._guard = guard
        handler: type[ResponseHandler] = BoundedProtocol
        self._factory = partial(handler, loop=self._loop)

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:
        """A connection that is ready for `req`; from here on its exchange counts as connected."""
        exchange = current_exchange.get()
        while True:
            connection = await super().connect(req, traces, timeout)
            if exchange.start(connection):
                return connection
            connection.close()

    def _open_socket(self, target: AddrInfoType) -> socket:
        exchange = current_exchange.get()
        try:
            opened = self._guard(target)
        except AddressRefused:
            exchange.note_address(refused=True)
            raise
        exchange.note_address(refused=False)
        return opened
