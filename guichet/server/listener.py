"""Accepts connections from a listening socket, within the limits of the guard; replaces uvicorn's `asyncio.Server`.

asyncio's own accepts whatever comes: a limit of connections, and what happens without file descriptors, need the
socket itself.

The socket has the port from the beginning, and listens when somebody can answer.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from guichet.logs import log
from guichet.server.connection_guard import ConnectionGuard
from guichet.server.connection_sharing import ConnectionShare
from guichet.server.errors import StartupError
from guichet.server.http_protocol import GuardedHttpProtocol

#: Seconds that a process with more than its share waits before it accepts a connection that no other one took.
_ACCEPT_DELAY: Final = 0.005
#: Seconds until the next attempt when the system has no file descriptors left.
_ACCEPT_RETRY_DELAY: Final = 0.5
#: How many clients may wait to be accepted.
_BACKLOG: Final = 2048
#: Seconds that a TLS client has to read the end of its last response and to say goodbye.
_TLS_SHUTDOWN_TIMEOUT: Final = 5.0


class Listener:
    """One listening socket. With `share`, other processes accept from the same socket."""

    def __init__(
        self,
        listener: socket.socket,
        guard: ConnectionGuard,
        protocol: Callable[[str | None], GuardedHttpProtocol],
        tls: ssl.SSLContext | None,
        share: ConnectionShare | None,
    ) -> None:
        """`protocol`: makes the protocol of a connection from the address that it is counted by."""
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._guard = guard
        self._protocol = protocol
        self._tls_options = {"ssl": tls, "ssl_shutdown_timeout": _TLS_SHUTDOWN_TIMEOUT} if tls else {}
        self._share = share
        self._starts: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._is_open = True
        listener.setblocking(False)
        self._update_share()
        self._loop.add_reader(listener, self._on_readable)

    def close(self) -> None:
        """Accepts those who have connected, and nobody after them: the system would reset a client that nobody
        accepted, who could not know whether its request arrived."""
        if self._is_open:
            self._is_open = False
            if self._share:
                self._share.clear()
            self._loop.remove_reader(self._listener)
            if self._retry:
                self._retry.cancel()
            for _ in range(_BACKLOG):  # At most so many waited.
                if not self._accept():
                    break

    @property
    def is_starting(self) -> bool:
        """Whether an accepted connection is not served yet."""
        return bool(self._starts)

    async def wait_closed(self) -> None:
        """Cancels unfinished handshakes: those clients have not sent a request yet."""
        self._guard.close()
        for task in self._starts:
            task.cancel()
        await asyncio.gather(*self._starts, return_exceptions=True)

    def _update_share(self) -> None:
        """A new connection wakes every process that is idle, so the counts are as old as the last connection."""
        if self._share:
            self._share.set(self._guard.open)

    def _on_readable(self) -> None:
        self._update_share()
        if self._share and self._share.is_exceeded:
            self._accept_later(_ACCEPT_DELAY)
        else:
            self._accept()

    def _accept(self) -> bool:
        """Accepts one connection; whether another one may wait."""
        try:
            connection, peer = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False  # Another process accepted it first, or the client has left.
        except OSError as error:
            made_room = self._guard.make_room()
            log.error(
                "process.accept_failed", error=str(error), retry_in_seconds=_ACCEPT_RETRY_DELAY, made_room=made_room
            )
            if self._is_open:
                self._accept_later(_ACCEPT_RETRY_DELAY)
            return False
        protocol = self._protocol(self._guard.limits.addresses.counted_peer(peer[0]))
        if not self._guard.admit(protocol):
            connection.close()
            return True
        connection.setblocking(False)
        protocol.start = self._loop.create_task(self._start(protocol, connection))
        self._starts.add(protocol.start)
        protocol.start.add_done_callback(self._starts.discard)
        return True

    def _accept_later(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._retry = self._loop.call_later(seconds, self._accept_again)

    def _accept_again(self) -> None:
        self._loop.add_reader(self._listener, self._on_readable)
        self._accept()

    async def _start(self, protocol: GuardedHttpProtocol, connection: socket.socket) -> None:
        """Starts the protocol, after the TLS handshake if there is one. A client that fails in it is not reported."""
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, connection, **self._tls_options)  # type: ignore[arg-type]
        except (OSError, TimeoutError):  # ssl.SSLError is an OSError.
            with suppress(OSError):
                connection.close()
        finally:
            if protocol.transport is None:  # It never began, so it never ends.
                self._guard.forget(protocol)
                protocol.release()


#: Wildcard addresses, and for each an address that a browser on this machine can open.
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - compared, not bound


@contextmanager
def bind_socket(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that has the port but refuses connections until `start_listening`: a proxy must not send requests to a
    process whose start can still fail. Port 0 takes any free port. Raises StartupError if there is none.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise _cannot_listen(error, host, port) from None
    with listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address[:2])
        except OSError as error:
            raise _cannot_listen(error, host, port) from None
        yield listener


@contextmanager
def inherited_socket(descriptor: int) -> Iterator[socket.socket]:
    """The socket of the parent process, which has the port. The first process that is ready listens."""
    with socket.socket(fileno=descriptor) as listener:
        listener.setblocking(False)
        yield listener


def start_listening(listener: socket.socket) -> None:
    """Accepts connections from now on; harmless when it does already. Raises StartupError if another process has been
    faster on the same port."""
    try:
        listener.listen(_BACKLOG)
    except OSError as error:
        raise _cannot_listen(error, *listener.getsockname()[:2]) from None


def is_listening(listener: socket.socket) -> bool:
    return bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def stop_listening(listener: socket.socket) -> None:
    """Refuses connections until `start_listening`, in every process that has this socket, and resets those that nobody
    accepted. The socket keeps its port. It must listen now: one that does not would close what it accepts later.
    """
    address = listener.getsockname()[:2]
    with suppress(OSError):  # Linux can do this, other systems go on listening.
        listener.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):  # For a port that Linux chose and gives up now. Any other is still bound: an error.
        listener.bind(address)


def url_of(listener: socket.socket, scheme: str = "http") -> str:
    """The URL under which a browser on this machine finds the server."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://{_WILDCARDS.get(host) or (f'[{host}]' if ':' in host else host)}:{port}"


def _cannot_listen(error: OSError, host: str, port: int) -> StartupError:
    if error.errno == errno.EADDRINUSE:
        return StartupError(f"Port {port} is already in use: stop what listens there, or choose another --port.")
    return StartupError(f"Cannot listen on {host}, port {port}: {error.strerror}.")
