"""HTTP servers of the command: a socket bound with a clear refusal, and a stop that takes at most two seconds."""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from guichet.cli.support import Refused

#: How long requests that were accepted may finish when the service stops, in seconds.
GRACE: Final = 1
_BACKLOG: Final = 2048
#: Addresses that mean "all of this machine's", and one of them that a browser can open.
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - compared, not bound


class Server(uvicorn.Server):
    """Signals are the command's: the database is closed after the last request, not before."""

    def __init__(self, app: ASGIApp, beside_shutdown: Callable[[], Awaitable[None]] | None = None) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE,
            backlog=_BACKLOG,
        )
        super().__init__(config)
        self._beside_shutdown = beside_shutdown

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Two waits side by side take no longer than the longer one."""
        if self._beside_shutdown:
            await asyncio.gather(super().shutdown(sockets), self._beside_shutdown())
        else:
            await super().shutdown(sockets)


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket; Refused with a sentence when there is none to be had. Port 0 takes any that is free."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise Refused(
                f"Port {port} is already in use: stop what listens there, or choose another --port."
            ) from None
        raise Refused(f"Cannot listen on {host}, port {port}: {error.strerror}.") from None
    with listening:
        yield listening


def address_of(listening: socket.socket) -> str:
    """Where a browser on this machine finds it."""
    host, port = listening.getsockname()[:2]
    return f"http://{_ANY.get(host) or (f'[{host}]' if ':' in host else host)}:{port}"
