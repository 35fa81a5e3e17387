"""HTTP servers of the command: a socket bound with a clear refusal, and a stop that takes at most two seconds unless
more is asked for.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from guichet.logs import log
from guichet.server.connection_sharing import Share, Sharing
from guichet.server.errors import StartupError
from guichet.server.http_protocol import Sending

#: How long requests that were accepted may finish when the service stops, in seconds, unless --grace says otherwise.
GRACE: Final = 1
#: How long a connection that is kept open may still bring a request, which is answered and then closed, in seconds.
LAST_CALL: Final = 0.5
_BACKLOG: Final = 2048
#: Addresses that mean "all of this machine's", and one of them that a browser can open.
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - compared, not bound


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files, read once at the start: a chain of certificates, and their key unless it is in the same file."""

    certfile: Path
    keyfile: Path | None

    def check(self) -> None:
        """Refused with one sentence now, not at the first connection; an encrypted key asks nobody for a password."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certfile, self.keyfile, password=lambda: "")
        except OSError as error:
            files = " and ".join(str(each) for each in (self.certfile, self.keyfile) if each)
            why = error.strerror or error
            raise StartupError(f"No certificate with its unencrypted key is in {files}: {why}.") from None


@dataclass(frozen=True, slots=True)
class Manner:
    """How a server meets its callers and leaves them. `drain`: for so many seconds after it was told to stop, it serves
    everybody and says 503 at `/readyz`; then accepted requests have `grace` seconds to finish.
    """

    tls: Tls | None = None
    grace: int = GRACE
    drain: int = 0

    @property
    def scheme(self) -> str:
        return "https" if self.tls else "http"

    @property
    def options(self) -> list[str]:
        """The same for another process of the command."""
        said = ["--grace", str(self.grace), "--drain", str(self.drain)]
        if self.tls:
            said += ["--ssl-certfile", str(self.tls.certfile)]
            said += ["--ssl-keyfile", str(self.tls.keyfile)] if self.tls.keyfile else []
        return said


MANNER: Final = Manner()


class Server(uvicorn.Server):
    """Signals are the command's: the database is closed after the last request, not before."""

    def __init__(
        self,
        app: ASGIApp,
        beside_shutdown: Callable[[], Awaitable[None]] | None = None,
        manner: Manner = MANNER,
        share: Share | None = None,
    ) -> None:
        """`share`: of a socket from which other processes accept too."""
        config = uvicorn.Config(
            self._unready_while_draining(app),
            http=Sending,
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=manner.grace,
            backlog=_BACKLOG,
            ssl_certfile=manner.tls.certfile if manner.tls else None,
            ssl_keyfile=manner.tls.keyfile if manner.tls else None,
        )
        super().__init__(config)
        self._beside_shutdown = beside_shutdown
        self._drain = manner.drain
        self._share = share

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._share is None:
            await super().startup(sockets)
            return
        await super().startup([])
        config, state = self.config, self.server_state
        protocol = partial(Sending, config=config, server_state=state, app_state=self.lifespan.state)
        self.servers = [
            Sharing(listening, protocol, config.ssl, self._share, lambda: len(state.connections))  # type: ignore[misc]
            for listening in sockets or []
        ]
        log.info("process.serving", pid=os.getpid())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Two waits side by side take no longer than the longer one."""
        await self._told_to_the_load_balancer()
        await self._last_call(sockets or [])
        if self._beside_shutdown:
            await asyncio.gather(super().shutdown(sockets), self._beside_shutdown())
        else:
            await super().shutdown(sockets)

    def _unready_while_draining(self, app: ASGIApp) -> ASGIApp:
        async def gate(scope: Scope, receive: Receive, send: Send) -> None:
            if self.should_exit and scope["type"] == "http" and scope["path"] == "/readyz":
                await JSONResponse({"status": "stopping"}, 503)(scope, receive, send)
            else:
                await app(scope, receive, send)

        return gate

    async def _told_to_the_load_balancer(self) -> None:
        """Everybody is still served while `/readyz` says 503; a second Ctrl-C cuts it short."""
        deadline = asyncio.get_running_loop().time() + self._drain
        while asyncio.get_running_loop().time() < deadline and not self.force_exit:  # noqa: ASYNC110 - a flag
            await asyncio.sleep(0.05)

    async def _last_call(self, sockets: list[socket.socket]) -> None:
        """Accepts nobody new, and lets those who are here bring the request that is on its way: a kept connection
        closed in its face is a request lost. Each answer tells its client to go elsewhere next time.
        """
        for server in self.servers:
            server.close()
        for listening in sockets:
            listening.close()
        self.server_state.default_headers.append((b"connection", b"close"))
        deadline = asyncio.get_running_loop().time() + LAST_CALL
        while self.server_state.connections and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - a set
            await asyncio.sleep(0.01)


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket; StartupError with a sentence when there is none to be had. Port 0 takes any that is free."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise StartupError(
                f"Port {port} is already in use: stop what listens there, or choose another --port."
            ) from None
        raise StartupError(f"Cannot listen on {host}, port {port}: {error.strerror}.") from None
    with listening:
        yield listening


@contextmanager
def inherited(descriptor: int) -> Iterator[socket.socket]:
    """The listening socket of the process that started this one."""
    with socket.socket(fileno=descriptor) as listening:
        listening.setblocking(False)
        yield listening


def address_of(listening: socket.socket, scheme: str = "http") -> str:
    """Where a browser on this machine finds it."""
    host, port = listening.getsockname()[:2]
    return f"{scheme}://{_ANY.get(host) or (f'[{host}]' if ':' in host else host)}:{port}"
