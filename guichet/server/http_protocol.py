"""HTTP/1.1 of every port: httptools' parser, with limits.

The limits are those of `connection_limits.py`. This module measures a request while it arrives, and tells the
guard which phase the connection is in.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote

import httptools
from starlette.types import ASGIApp, Scope

from guichet import metrics
from guichet.server.connection_guard import ConnectionGuard, Phase
from guichet.server.connection_limits import (
    MAX_BODY,
    MAX_HEAD,
    MAX_HEADERS,
    MAX_PIPELINED,
    MAX_TARGET,
    MAX_UPLOAD,
    UPLOADS,
    WRITE_BUFFER,
)
from guichet.server.http_exchange import CoalescingTransport, Exchange, FlowControl
from guichet.server.request_refusals import (
    BODY_SIZE,
    BODY_TIME,
    HEAD_SIZE,
    HEAD_TIME,
    MALFORMED,
    PIPELINED,
    TARGET_SIZE,
    Refusal,
)

#: What the next bytes belong to.
_NOTHING: Final = 0
_IN_HEAD: Final = 1
_IN_BODY: Final = 2
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
#: Bytes of a body that wait for the application before the client is made to wait.
_MOST_UNREAD: Final = 64 * 1024


class ServerState:
    """What the connections of one server have in common."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.connections: set[GuardedHttpProtocol] = set()
        #: The requests that are being answered.
        self.tasks: set[asyncio.Task[None]] = set()
        #: They go into every response.
        self.default_headers: list[tuple[bytes, bytes]] = []


class GuardedHttpProtocol(asyncio.Protocol):
    """One connection. `address`: what it is counted by, None for a trusted proxy."""

    #: Both from `connection_made` on, and the addresses.
    transport: asyncio.Transport = None  # type: ignore[assignment]
    flow: FlowControl

    def __init__(self, server_state: ServerState, guard: ConnectionGuard, address: str | None) -> None:
        self.server_state = server_state
        self.app = server_state.app
        self.tasks = server_state.tasks
        self.loop = asyncio.get_running_loop()
        self.parser = httptools.HttpRequestParser(self)
        # A client that asks for the connection's end may have sent more: its request is answered first.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.headers: list[tuple[bytes, bytes]] = []
        self.url = b""
        self.expect_100_continue = False
        #: The newest request.
        self.cycle: Exchange | None = None
        #: Those that wait for the answers before theirs, newest first.
        self.pipeline: deque[Exchange] = deque()
        self.address = address
        self.phase: Phase | None = None
        self.is_admitted = False
        #: Starts the connection; in it, TLS clients shake hands.
        self.start: asyncio.Task[None] | None = None
        self._guard = guard
        self._part = _NOTHING
        #: Bytes of that part that were received, and after a refusal bytes that were thrown away.
        self._received = 0
        #: The request's address takes an upload.
        self._is_upload = False
        self._fault: Refusal | None = None
        self._is_refused = False
        #: Of a request that asks for an upgrade, until it is read again.
        self._head_without_upgrade: bytes | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.server_state.connections.add(self)
        self.transport = CoalescingTransport(transport)  # type: ignore[arg-type]
        self.transport.set_write_buffer_limits(high=WRITE_BUFFER)
        self.flow = FlowControl(self.transport)
        socket = transport.get_extra_info("socket")
        self.server = _address(socket.getsockname)
        self.client = _address(socket.getpeername)
        self.scheme = "https" if transport.get_extra_info("sslcontext") else "http"

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.forget(self)
        self.server_state.connections.discard(self)
        if self.cycle is not None:
            self.cycle.disconnected = not self.cycle.response_complete
            self.cycle.wake()
        self.flow.resume_writing()
        if exc is None:
            self.transport.close()
        self.release()

    def release(self) -> None:
        """Ends the circles of references of a connection that has ended. Its memory, 40 KB with TLS, is then free at
        once: the garbage collector looks rarely (`process_tuning.py`), and a flood must not wait for it."""
        self.parser = None  # type: ignore[assignment]
        self.start = None

    def data_received(self, data: bytes) -> None:
        """In pieces that are no larger than a head may be: the parser keeps an incomplete header in memory."""
        if len(data) <= MAX_HEAD:
            self._receive(data)
        else:
            for start in range(0, len(data), MAX_HEAD):
                self._receive(data[start : start + MAX_HEAD])

    def _receive(self, data: bytes) -> None:
        if self._is_refused:
            self._discard(data)
            return
        part = self._part
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse(self._fault or MALFORMED)
            return
        if self._part is not _NOTHING:
            self._received = self._received + len(data) if self._part is part else len(data)
            if fault := self._fault_of_part():
                self._refuse(fault)
                return
        self._update_phase()

    def _parse(self, data: bytes) -> None:
        """No upgrade is offered, so a request that asks for one (Java's client does, for HTTP/2) is a request like any
        other (RFC 9110, section 7.8). The parser ends it after its head: it reads it again without that header."""
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as ended:
                head = self._head_without_upgrade
                if head is None:  # CONNECT, which has no body.
                    return
                self._head_without_upgrade = None
                data = head + data[ended.args[0] :]
            else:
                return

    def _fault_of_part(self) -> Refusal | None:
        if self._part is _IN_BODY:
            return BODY_SIZE if self._received > (MAX_UPLOAD if self._is_upload else MAX_BODY) else None
        if len(self.url) > MAX_TARGET:
            return TARGET_SIZE
        return HEAD_SIZE if self._received > MAX_HEAD or len(self.headers) > MAX_HEADERS else None

    def on_message_begin(self) -> None:
        self._part = _IN_HEAD
        self._received = 0
        self.url = b""
        self.headers = []
        self.expect_100_continue = False

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._fault = PIPELINED if len(self.pipeline) >= MAX_PIPELINED else self._fault_of_part()
        if self._fault:
            raise ValueError  # Stops the parser, which raises an HttpParserError.
        method = self.parser.get_method()
        if self.parser.should_upgrade() and method != b"CONNECT":
            self._head_without_upgrade = self._written_without_upgrade()
            return
        version = self.parser.get_http_version()
        exchange = Exchange(
            self._scope_of(method, version),
            self.transport,
            self.flow,
            self.server_state.default_headers,
            self.on_response_complete,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            awaits_continue=self.expect_100_continue,
        )
        before, self.cycle = self.cycle, exchange
        if before is None or before.response_complete:
            self._answer(exchange)
        else:  # Its turn comes when those before it are answered.
            self.flow.pause_reading()
            self.pipeline.appendleft(exchange)
        self._part = _IN_BODY
        self._is_upload = method == b"POST" and UPLOADS.fullmatch(self.url) is not None

    def _scope_of(self, method: bytes, version: str) -> Scope:
        if self.url.startswith(b"/") and b"#" not in self.url:
            raw_path, _, query = self.url.partition(b"?")
        else:
            parsed = httptools.parse_url(self.url)
            raw_path, query = parsed.path, parsed.query or b""
        path = raw_path.decode("ascii")
        return {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": self.headers,
            "state": {},
            "method": method.decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": query,
        }

    def _answer(self, exchange: Exchange) -> None:
        self.tasks.add(self.loop.create_task(exchange.run(self.app, self.tasks)))

    def on_body(self, body: bytes) -> None:
        exchange = self.cycle
        if exchange is not None and not exchange.response_complete:
            exchange.body += body
            if len(exchange.body) > _MOST_UNREAD:
                self.flow.pause_reading()
            exchange.wake()

    def _written_without_upgrade(self) -> bytes:
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join((*lines, b"", b""))

    def on_message_complete(self) -> None:
        if self._head_without_upgrade is not None:
            return
        self._part = _NOTHING
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.more_body = False
            self.cycle.wake()

    def on_response_complete(self) -> None:
        """No timer for each response: the guard ends idle connections."""
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._answer(self.pipeline.pop())
        self._update_phase()

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._update_phase()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._update_phase()

    def shutdown(self) -> None:
        """The server stops: closes the connection, after the answer to a request that has come."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self.cycle.keep_alive = False
        self._update_phase()

    def _update_phase(self) -> None:
        phase = self._current_phase()
        if phase is not self.phase and self.is_admitted:
            self._guard.enter(self, phase)

    def _current_phase(self) -> Phase | None:
        guard = self._guard
        if self.transport.is_closing():
            return guard.stalled if self.transport.get_write_buffer_size() else None
        if self.flow.write_paused:
            return guard.stalled
        if self._is_refused:
            return guard.refused
        if self._part is _IN_BODY:
            return guard.upload if self._is_upload else guard.body
        if self._part is _IN_HEAD or self.cycle is None:
            return guard.head
        return guard.idle if self.cycle.response_complete else None

    def end(self, phase: Phase) -> None:
        """The guard calls this when the time of a phase is up."""
        if phase is self._guard.head and self._part is _IN_HEAD:
            self._refuse(HEAD_TIME)
        elif phase in (self._guard.body, self._guard.upload):
            self._refuse(BODY_TIME)
        elif phase is self._guard.idle:
            self.transport.close()
            self._update_phase()
        else:
            if phase is not self._guard.refused:
                metrics.CLOSED_CONNECTIONS.labels("stalled" if phase is self._guard.stalled else "head_time").inc()
            self.abort()

    def abort(self) -> None:
        """Closes the connection at once, also in its TLS handshake."""
        if self.transport is not None:
            self.transport.abort()
        elif self.start is not None:
            self.start.cancel()

    def _refuse(self, refusal: Refusal) -> None:
        """Answers if the client is waiting for this response and no other, then closes."""
        metrics.CLOSED_CONNECTIONS.labels(refusal.reason).inc()
        self._is_refused = True
        self._received = 0
        cycle = self.cycle
        unanswered = None if cycle is None or cycle.response_complete else cycle
        is_in_body = self._part is _IN_BODY
        if self.pipeline or (unanswered and (unanswered.response_started or not is_in_body)):
            self.abort()
            return
        if unanswered or not is_in_body:
            self.transport.write(refusal.response(self.server_state.default_headers))
        if unanswered:  # The application waits for the body: it is told that the client has gone.
            unanswered.disconnected = True
            unanswered.wake()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._update_phase()

    def _discard(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > MAX_BODY:
            self.abort()


def _address(of: Callable[[], Any]) -> tuple[str, int] | None:
    """None when the connection has ended already."""
    try:
        host, port, *_ = of()
    except OSError:
        return None
    return host, port
