"""The HTTP server of `guichet serve` and `guichet listen`: its options and its shutdown.

A shutdown takes at most two seconds unless the options ask for more.
"""

import asyncio
import os
import signal
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from guichet.domain.records import Record
from guichet.logs import log
from guichet.server.connection_guard import ConnectionGuard
from guichet.server.connection_limits import ConnectionLimits
from guichet.server.connection_sharing import ConnectionShare
from guichet.server.errors import StartupError
from guichet.server.http_protocol import GuardedHttpProtocol, ServerState
from guichet.server.listener import Listener, start_listening

#: Seconds that accepted requests have to finish when the server stops, unless `--grace` says otherwise.
GRACE: Final = 1
#: During a stop a kept connection may still send a request, for half a second: so many looks at what arrived, so many
#: seconds apart. A process that got no time to look has not waited. The request is answered, then closed.
_KEEP_ALIVE_LOOKS: Final = 50
_KEEP_ALIVE_INTERVAL: Final = 0.01
#: Seconds between two looks whether the server shall stop, and looks until the date in the responses is set again.
_TICK: Final = 0.1
_TICKS_OF_DATE: Final = 10


class Tls(Record, frozen=True):
    """PEM files: a certificate chain, and its private key unless the same file holds it. They are read at the start."""

    certfile: Path
    keyfile: Path | None

    def check(self) -> ssl.SSLContext:
        """Raises StartupError if the files cannot be used; an encrypted key counts as unusable."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certfile, self.keyfile, password=lambda: "")
            return context
        except OSError as error:
            files = " and ".join(str(file) for file in (self.certfile, self.keyfile) if file)
            reason = error.strerror or error
            raise StartupError(f"No certificate with its unencrypted key is in {files}: {reason}.") from None


class ServerOptions(Record, frozen=True):
    """How a server listens and stops.

    When it is told to stop, it first serves everybody for `drain` seconds while `/readyz` answers 503. Then it accepts
    no new connection, and accepted requests have `grace` seconds to finish.
    """

    tls: Tls | None = None
    grace: int = GRACE
    drain: int = 0

    @property
    def scheme(self) -> str:
        return "https" if self.tls else "http"

    @property
    def arguments(self) -> list[str]:
        """The same options as arguments of `guichet serve`, for a child process."""
        arguments = ["--grace", str(self.grace), "--drain", str(self.drain)]
        if self.tls:
            arguments += ["--ssl-certfile", str(self.tls.certfile)]
            arguments += ["--ssl-keyfile", str(self.tls.keyfile)] if self.tls.keyfile else []
        return arguments


DEFAULT_OPTIONS: Final = ServerOptions()
DEFAULT_LIMITS: Final = ConnectionLimits()


class Server:
    """Serves an ASGI application on sockets until `handle_exit`. It installs no signal handlers: the command closes the
    database after it."""

    def __init__(
        self,
        app: ASGIApp,
        on_shutdown: Callable[[], Awaitable[None]] | None = None,
        options: ServerOptions = DEFAULT_OPTIONS,
        share: ConnectionShare | None = None,
        limits: ConnectionLimits = DEFAULT_LIMITS,
    ) -> None:
        """`on_shutdown` runs while requests finish. `share`: given when other processes accept from the same socket."""
        self.server_state = ServerState(self._unready_while_stopping(app))
        self.servers: list[Listener] = []
        #: Set once it accepts connections.
        self.listening = asyncio.Event()
        self.should_exit = self.force_exit = False
        self._on_shutdown = on_shutdown
        self._options = options
        self._share = share
        self._limits = limits

    def handle_exit(self, number: int, _: object) -> None:
        """Stops the server. A second Ctrl-C: without waiting."""
        self.force_exit = self.force_exit or (self.should_exit and number == signal.SIGINT)
        self.should_exit = True

    async def serve(self, sockets: Sequence[socket.socket]) -> None:
        await self.startup(sockets)
        ticks = 0
        while not self.should_exit:
            if ticks % _TICKS_OF_DATE == 0:
                self._set_date()
            ticks += 1
            await asyncio.sleep(_TICK)
        await self.shutdown(sockets)

    async def startup(self, sockets: Sequence[socket.socket]) -> None:
        """Listens within the limits."""
        self._set_date()  # The headers of every response: a refusal may be the first one.
        if self._share:  # Before it listens: the parent refuses connections while nobody is in the table.
            self._share.set(0)
        tls = self._options.tls.check() if self._options.tls else None
        for listener in sockets:
            start_listening(listener)
            guard = ConnectionGuard(self._limits)
            protocol = partial(GuardedHttpProtocol, self.server_state, guard)
            self.servers.append(Listener(listener, guard, protocol, tls, self._share))
        if self._share:
            log.info("process.serving", pid=os.getpid())
        self.listening.set()

    async def idle(self, most: float) -> None:
        """Returns when no request is being answered, or after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(most):
                while self.server_state.tasks:  # noqa: ASYNC110 - a set
                    await asyncio.sleep(0.01)

    def _set_date(self) -> None:
        self.server_state.default_headers = [(b"date", formatdate(time.time(), usegmt=True).encode())]

    async def shutdown(self, sockets: Sequence[socket.socket]) -> None:
        """Waits for requests and for `on_shutdown` at the same time, so it takes as long as the slower of the two."""
        await self._wait_for_load_balancer()
        await self._finish_kept_connections(sockets)
        await asyncio.gather(self._finish_requests(), *([self._on_shutdown()] if self._on_shutdown else []))

    async def _finish_requests(self) -> None:
        """They are cancelled when the time of grace is up."""
        state = self.server_state
        for connection in [*state.connections]:
            connection.shutdown()
        await asyncio.sleep(_TICK)
        try:
            async with asyncio.timeout(self._options.grace):
                while (state.connections or state.tasks) and not self.force_exit:  # noqa: ASYNC110 - sets and a flag
                    await asyncio.sleep(_TICK)
                for server in self.servers:
                    await server.wait_closed()
        except TimeoutError:
            log.error("process.requests_cancelled", requests=len(state.tasks), grace_in_seconds=self._options.grace)
            for task in state.tasks:
                task.cancel("the time of grace is up")

    def _unready_while_stopping(self, app: ASGIApp) -> ASGIApp:
        def readiness(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
            if self.should_exit and scope["type"] == "http" and scope["path"] == "/readyz":
                return JSONResponse({"status": "stopping"}, 503)(scope, receive, send)
            return app(scope, receive, send)

        return readiness

    async def _wait_for_load_balancer(self) -> None:
        """Serves for `drain` seconds more, so that the load balancer sees the 503 of `/readyz` and sends requests
        elsewhere. A second Ctrl-C ends the wait.
        """
        deadline = asyncio.get_running_loop().time() + self._options.drain
        while asyncio.get_running_loop().time() < deadline and not self.force_exit:  # noqa: ASYNC110 - a flag
            await asyncio.sleep(0.05)

    async def _finish_kept_connections(self, sockets: Sequence[socket.socket]) -> None:
        """Accepts no new connection, and answers requests that are already on their way on kept and on just accepted
        ones: closing those at once would lose the requests. Each response says `Connection: close`.
        """
        for server in self.servers:
            server.close()
        for listener in sockets:
            listener.close()
        self.server_state.default_headers.append((b"connection", b"close"))
        for _ in range(_KEEP_ALIVE_LOOKS):
            if not self.server_state.connections and not any(server.is_starting for server in self.servers):
                break
            await asyncio.sleep(_KEEP_ALIVE_INTERVAL)
