"""The HTTP server of `guichet serve` and `guichet listen`: its options and its shutdown.

A shutdown takes at most two seconds unless the options ask for more.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from guichet.domain.records import Record
from guichet.logs import log
from guichet.server.connection_guard import ConnectionGuard
from guichet.server.connection_limits import ConnectionLimits
from guichet.server.connection_sharing import ConnectionShare
from guichet.server.errors import StartupError
from guichet.server.http_protocol import GuardedHttpProtocol
from guichet.server.listener import Listener, start_listening

#: Seconds that accepted requests have to finish when the server stops, unless `--grace` says otherwise.
GRACE: Final = 1
#: Seconds during a stop in which a kept connection may still send a request. It is answered, then closed.
KEEP_ALIVE_GRACE: Final = 0.5


class Tls(Record, frozen=True):
    """PEM files: a certificate chain, and its private key unless the same file holds it. They are read at the start."""

    certfile: Path
    keyfile: Path | None

    def check(self) -> None:
        """Raises StartupError if the files cannot be used; an encrypted key counts as unusable."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certfile, self.keyfile, password=lambda: "")
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


class Server(uvicorn.Server):
    """uvicorn's server, with our stop. It installs no signal handlers: the command closes the database after it."""

    def __init__(
        self,
        app: ASGIApp,
        on_shutdown: Callable[[], Awaitable[None]] | None = None,
        options: ServerOptions = DEFAULT_OPTIONS,
        share: ConnectionShare | None = None,
        limits: ConnectionLimits = DEFAULT_LIMITS,
    ) -> None:
        """`on_shutdown` runs while requests finish. `share`: given when other processes accept from the same socket."""
        config = uvicorn.Config(
            self._unready_while_stopping(app),
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=options.grace,
            ssl_certfile=options.tls.certfile if options.tls else None,
            ssl_keyfile=options.tls.keyfile if options.tls else None,
        )
        super().__init__(config)
        #: Set once it accepts connections.
        self.listening = asyncio.Event()
        self._on_shutdown = on_shutdown
        self._drain = options.drain
        self._share = share
        self._limits = limits

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens within the limits, in place of uvicorn's own listening."""
        await super().startup([])
        await self.on_tick(0)  # The headers of every response: a refusal may be the first one.
        if self._share:  # Before it listens: the parent refuses connections while nobody is in the table.
            self._share.set(0)
        for listener in sockets or []:
            start_listening(listener)
            guard = ConnectionGuard(self._limits)
            protocol = partial(GuardedHttpProtocol, self.config, self.server_state, guard)
            self.servers.append(Listener(listener, guard, protocol, self.config.ssl, self._share))  # type: ignore[arg-type]
        if self._share:
            log.info("process.serving", pid=os.getpid())
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Waits for requests and for `on_shutdown` at the same time, so it takes as long as the slower of the two."""
        await self._wait_for_load_balancer()
        await self._finish_kept_connections(sockets or [])
        if self._on_shutdown:
            await asyncio.gather(super().shutdown(sockets), self._on_shutdown())
        else:
            await super().shutdown(sockets)

    def _unready_while_stopping(self, app: ASGIApp) -> ASGIApp:
        async def readiness(scope: Scope, receive: Receive, send: Send) -> None:
            if self.should_exit and scope["type"] == "http" and scope["path"] == "/readyz":
                await JSONResponse({"status": "stopping"}, 503)(scope, receive, send)
            else:
                await app(scope, receive, send)

        return readiness

    async def _wait_for_load_balancer(self) -> None:
        """Serves for `drain` seconds more, so that the load balancer sees the 503 of `/readyz` and sends requests
        elsewhere. A second Ctrl-C ends the wait.
        """
        deadline = asyncio.get_running_loop().time() + self._drain
        while asyncio.get_running_loop().time() < deadline and not self.force_exit:  # noqa: ASYNC110 - a flag
            await asyncio.sleep(0.05)

    async def _finish_kept_connections(self, sockets: list[socket.socket]) -> None:
        """Accepts no new connection, and answers requests that are already on their way on kept ones: closing those at
        once would lose the requests. Each response says `Connection: close`.
        """
        for server in self.servers:
            server.close()
        for listener in sockets:
            listener.close()
        self.server_state.default_headers.append((b"connection", b"close"))
        deadline = asyncio.get_running_loop().time() + KEEP_ALIVE_GRACE
        while self.server_state.connections and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - a set
            await asyncio.sleep(0.01)
