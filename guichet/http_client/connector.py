"""aiohttp's connector with two additions: only safe connections are reused, and what a peer may send beside the body of
its response is bounded.

`ResponseHandler`, `ConnectionKey`, `_factory` and `_get` are not in aiohttp's documented interface. They are used here
and in `exchange.py` only, and `tests/http_client/test_hostile_servers.py` fails if a new version of aiohttp stops
honouring them.
"""

import asyncio
from functools import partial
from typing import Final

from aiohttp import ClientPayloadError, ClientRequest, ClientTimeout, TCPConnector
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from yarl import URL

from guichet.http_client.address_guard import AddressGuard
from guichet.http_client.tls import TlsContext

#: Bytes that are not body (head, informational responses, chunk sizes and extensions, trailers). A response may have
#: as many more as its body has bytes, because small chunks are legitimate.
MAX_HEAD: Final = 64 * 1024
#: Seconds an idle connection is kept. Common servers close theirs after 5; a request sent just then would be `Lost`.
KEEP_ALIVE: Final = 4.0
#: Seconds a resolved name is remembered.
DNS_CACHE: Final = 10
#: Bytes of a body that are buffered before the peer is made to wait.
READ_BUFFER: Final = 64 * 1024
#: Ours, not aiohttp's: one deadline for everything together.
_NO_TIMEOUT: Final = ClientTimeout()


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
        self.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=READ_BUFFER)
        return True

    def is_done(self) -> bool:
        """Whether the request is written to its end, and nothing but HTTP is spoken."""
        return self.transport is not None and not self.transport.get_write_buffer_size() and not self.upgraded

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

    def __init__(self, guard: AddressGuard, context: TlsContext, resolver: AbstractResolver) -> None:
        super().__init__(
            resolver=resolver,
            ssl=context,
            limit=0,  # How many requests run at once is the caller's rule. A limit here would let hung ones delay all.
            limit_per_host=0,
            keepalive_timeout=KEEP_ALIVE,
            ttl_dns_cache=DNS_CACHE,
            socket_factory=guard,
        )
        handler: type[ResponseHandler] = BoundedProtocol
        self._factory = partial(handler, loop=self._loop)

    async def connection_to(self, target: URL) -> Connection:
        """A connection in hand: TCP and TLS done, or a kept one on which the peer said nothing since."""
        key = ConnectionKey(target.raw_host or "", target.port, target.scheme == "https", True, None, None, None, None)
        while True:
            connection = await self._get(key, [])
            if connection is None:
                connection = await self.connect(ClientRequest("GET", target, loop=self._loop), [], _NO_TIMEOUT)
            protocol = connection.protocol
            assert isinstance(protocol, BoundedProtocol)
            if protocol.begin(connection):
                return connection
            connection.close()
