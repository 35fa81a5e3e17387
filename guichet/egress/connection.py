"""One HTTP/1.1 connection, one exchange at a time (RFC 9112). Anything unexpected uses it up for good.

A client of our own over `httptools`, because what is known after a failure decides about money: a request is written
once, never repeated behind its caller's back, and never on a connection that said something nobody asked for.
"""

import asyncio
from typing import Final, cast

import httptools

from guichet.egress.answers import Answer

#: Bytes of an answer's head; a longer one is broken.
MAX_HEAD: Final = 64 * 1024
#: Statuses whose answers have no body, whatever their head says.
_NO_BODY: Final = (204, 304)


class Broken(Exception):
    """The exchange cannot be finished. `status`: of the answer's head, if that came."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Connection(asyncio.Protocol):
    """Made by `loop.create_connection`; in hand once that returns."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[Answer] | None = None
        self._usable = True
        self._ended = False
        self.idle_since = 0.0
        self.deadline = 0.0
        # Of the running exchange.
        self._most = 0
        self._status: int | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = bytearray()
        self._head_size = 0
        self._until_end = True
        self._complete = False

    @property
    def usable(self) -> bool:
        """Whether another request may be written: nothing unexpected has happened and the peer is still there."""
        if self._transport is None or self._transport.is_closing():
            return False
        return self._usable and self._waiter is None

    async def exchange(self, request: bytes, most: int) -> Answer:
        """Writes `request` and reads its answer, up to `most` bytes of body. Raises Broken."""
        if not self.usable or self._transport is None:
            raise Broken("the connection was closed")
        self._begin(most)
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._waiter
        finally:  # However it ended; an exchange that did not finish leaves bytes that nobody may take for an answer.
            if not self._complete:
                self.abort()
            self._waiter = None

    def expire(self) -> None:
        """The exchange took too long."""
        self._fail("no answer in time")

    def abort(self) -> None:
        self._usable = False
        if self._transport is not None:
            self._transport.abort()

    # What the transport says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own, no subclass

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            self.abort()  # Said unasked: it could be taken for the answer to the next request.
            return
        self._head_size += len(data) if self._status is None else 0
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"not an HTTP answer: {error or type(error).__name__}")
        if self._status is None and self._head_size > MAX_HEAD:
            self._fail("the head of the answer is too long")

    def eof_received(self) -> bool:
        self._ended = True
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._usable = False
        if self._waiter is None or self._waiter.done():
            return
        if self._status is not None and self._until_end and error is None and self._ended:
            self._finish(complete=True)  # An answer without a length ends with its connection.
        else:
            self._fail(str(error) if error else "the peer closed the connection")

    # What the parser says.

    def on_message_begin(self) -> None:
        if self._complete:
            self._usable = False  # More than one answer.
        self._headers = []
        self._until_end = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._until_end = False

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200 and not self._complete:  # Below: on its way, the answer itself follows.
            self._status = status
            self._until_end = self._until_end and status not in _NO_BODY
            if sum(len(name) + len(value) for name, value in self._headers) > MAX_HEAD:
                self._fail("the head of the answer is too long")

    def on_body(self, body: bytes) -> None:
        if self._complete:
            return
        self._body += body
        if len(self._body) > self._most:
            del self._body[self._most :]
            self._usable = False
            self._finish(complete=False)

    def on_message_complete(self) -> None:
        if self._status is not None and not self._complete:
            drained = self._transport is not None and not self._transport.get_write_buffer_size()
            self._usable = self._usable and drained and self._parser.should_keep_alive()
            self._finish(complete=True)

    def _begin(self, most: int) -> None:
        self._most = most
        self._status = None
        self._body = bytearray()
        self._head_size = 0
        self._complete = False

    def _finish(self, *, complete: bool) -> None:
        self._complete = True
        if self._waiter is not None and not self._waiter.done() and self._status is not None:
            self._waiter.set_result(Answer(self._status, self._headers, bytes(self._body), complete))

    def _fail(self, message: str) -> None:
        self._usable = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(Broken(message, self._status))
