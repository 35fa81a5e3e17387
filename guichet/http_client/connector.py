"""aiohttp's connector with two additions: only safe connections are reused, and what a peer may send beside the body of
its response is bounded; one HTTP/1.1 exchange on a connection in hand: the request in one write, the response
through aiohttp's parser; and what aiohttp's errors mean.

aiohttp's own request and response make a dozen objects and a task each time, which took a third of a webhook's delivery
(bench/README.md).

`ResponseHandler`, `ConnectionKey`, `_factory` and `_get` are not in aiohttp's documented interface. They are used here
only, and `tests/http_client/test_hostile_servers.py` fails if a new version of aiohttp stops
honouring them.
"""

import asyncio
import ssl
from collections.abc import Mapping
from functools import partial
from typing import Final

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorError,
    ClientPayloadError,
    ClientRequest,
    ClientTimeout,
    StreamReader,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from guichet.domain.messages import Message, verbatim
from guichet.http_client.address_guard import AddressGuard, AddressRefused
from guichet.http_client.outcomes import CallFailure, Forbidden, HttpClientError, Lost, NotSent, Response

#: How certificates are verified. True: aiohttp's own context, with the system's authorities. False: not at all.
TlsContext = ssl.SSLContext | bool
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


#: Methods that say nothing about a body when they have none.
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_SWITCHING_PROTOCOLS: Final = 101


def parse_url(url: str) -> URL:
    """The object that a connection is made from. Raises Forbidden."""
    try:
        target = URL(url)
        host, port = target.raw_host, target.port
    except ValueError as error:
        raise Forbidden(CallFailure.URL_UNREADABLE()) from error
    if target.scheme not in ("http", "https") or not host or not port:
        raise Forbidden(CallFailure.NOT_HTTP())
    if target.raw_user is not None or target.raw_password is not None:
        raise Forbidden(CallFailure.USER_IN_URL(host=host))
    return target


def request_bytes(method: str, target: URL, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """The request as it is sent. Raises Forbidden when a header could end early and begin another."""
    lines = [f"{method} {target.raw_path_qs} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in {"Host": target.host_port_subcomponent, **headers}.items()]
    if body or method not in _WITHOUT_BODY:
        lines.append(f"Content-Length: {len(body or b'')}")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1 or "\0" in head:
        raise Forbidden(CallFailure.LINE_BREAK())
    return f"{head}\r\n\r\n".encode() + (body or b"")


class Exchange:
    """What is known of one exchange while it goes on, and of how it ended."""

    __slots__ = ("connection", "status")

    def __init__(self) -> None:
        self.connection: Connection | None = None
        #: That of the response, once its head has come.
        self.status: int | None = None

    async def run(self, connection: Connection, request: bytes, max_bytes: int) -> Response:
        """Sends the request and reads the response, at most `max_bytes` of its body. The connection is kept if the
        exchange ended cleanly."""
        protocol = connection.protocol
        assert isinstance(protocol, BoundedProtocol)
        assert protocol.transport is not None
        protocol.transport.write(request)
        while True:
            message, content = await protocol.read()
            if message.code >= 200 or message.code == _SWITCHING_PROTOCOLS:
                break
        self.status = message.code
        body, complete = await _read(content, max_bytes)
        if complete and protocol.is_done():
            connection.release()
        return Response(message.code, body, complete)

    def abort(self) -> None:
        """Closes the connection at once, unless it was given back: it may be another request's by now.

        aiohttp by itself says goodbye in TLS first, and a peer that does not reply would keep the socket for 30 s.
        """
        connection = self.connection
        if connection is not None and connection.protocol is not None:
            connection.protocol.abort()
            connection.close()


async def _read(content: StreamReader, max_bytes: int) -> tuple[bytes, bool]:
    """At most `max_bytes` of the body, and whether that is all of it."""
    body = b""
    while len(body) <= max_bytes and not content.at_eof():
        body += await content.readany()
    if len(body) > max_bytes:
        return body[:max_bytes], False
    if (error := content.exception()) is not None:  # All of it came, with too much beside it.
        raise error
    return body, True


def failure(target: URL, exchange: Exchange, error: Exception, *, stopped: bool) -> HttpClientError:
    """What is known after `error`: Lost once there was a connection."""
    timed_out = isinstance(error, TimeoutError) and not stopped
    if exchange.connection is not None:
        return Lost(_lost(target.raw_host or "", error), exchange.status, timed_out=timed_out)
    if isinstance(error, ClientConnectorError) and isinstance(error.os_error, AddressRefused):
        return Forbidden(CallFailure.ADDRESS_REFUSED(host=target.raw_host or ""))
    return NotSent(_not_connected(target.raw_host or "", error), timed_out=timed_out, stopped=stopped)


def _not_connected(host: str, error: Exception) -> Message:
    """Before there is a connection, aiohttp's messages name the host only."""
    if isinstance(error, TimeoutError):
        return CallFailure.NO_CONNECTION(host=host)
    if isinstance(error, ClientConnectorCertificateError):
        why = f"{type(error.certificate_error).__name__}: {error.certificate_error.args}"
    elif isinstance(error, ClientConnectorError):
        why = str(error.strerror)
    else:
        return verbatim(f"{host}: {error or type(error).__name__}")
    security = "default" if error.ssl is True else error.ssl
    return CallFailure.CANNOT_CONNECT(host=host, address=f"{error.host}:{error.port} ssl:{security}", error=why)


def _lost(host: str, error: Exception) -> Message:
    """The text of most of aiohttp's errors holds the whole URL, which may hold secrets."""
    if isinstance(error, TimeoutError):
        return CallFailure.NO_RESPONSE(host=host)
    if isinstance(error, HttpProcessingError):
        first_line = error.message.partition("\n")[0].encode(errors="replace").decode()
        return verbatim(f"{host}: {first_line}")
    return verbatim(f"{host}: {type(error.__cause__ or error).__name__}")
