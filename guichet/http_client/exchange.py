"""One HTTP/1.1 exchange on a connection in hand: the request in one write, the response through aiohttp's parser.

aiohttp's own request and response make a dozen objects and a task each time, which took a third of a webhook's delivery
(bench/README.md).
"""

from collections.abc import Mapping
from typing import Final

from aiohttp import StreamReader
from aiohttp.connector import Connection
from yarl import URL

from guichet.http_client.connector import BoundedProtocol
from guichet.http_client.failures import CallFailure
from guichet.http_client.outcomes import Forbidden, Response

#: Methods that say nothing about a body when they have none.
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_SWITCHING_PROTOCOLS: Final = 101


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
        return Response(message.code, message.raw_headers, body, complete)

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
