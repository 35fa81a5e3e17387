"""Accepts connections from a listening socket, within the limits of the guard; replaces uvicorn's `asyncio.Server`.

asyncio's own accepts whatever comes: a limit of connections, and what happens without file descriptors, need the
socket itself.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from guichet.logs import log
from guichet.server.connection_guard import ConnectionGuard
from guichet.server.connection_sharing import ConnectionShare
from guichet.server.http_protocol import GuardedHttpProtocol

#: Seconds that a process with more than its share waits before it accepts a connection that no other one took.
_ACCEPT_DELAY: Final = 0.005
#: Seconds until the next attempt when the system has no file descriptors left.
_ACCEPT_RETRY_DELAY: Final = 0.5
#: Seconds that a TLS client has to read the end of its last response and to say goodbye.
_TLS_SHUTDOWN_TIMEOUT: Final = 5.0


class Listener:
    """One listening socket. With `share`, other processes accept from the same socket (D77)."""

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
        if self._is_open:
            self._is_open = False
            if self._share:
                self._share.clear()
            self._loop.remove_reader(self._listener)
            if self._retry:
                self._retry.cancel()

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

    def _accept(self) -> None:
        try:
            connection, peer = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # Another process accepted it first, or the client has left.
        except OSError as error:
            made_room = self._guard.make_room()
            log.error(
                "process.accept_failed", error=str(error), retry_in_seconds=_ACCEPT_RETRY_DELAY, made_room=made_room
            )
            self._accept_later(_ACCEPT_RETRY_DELAY)
            return
        protocol = self._protocol(self._guard.limits.addresses.counted_peer(peer[0]))
        if not self._guard.admit(protocol):
            connection.close()
            return
        connection.setblocking(False)
        protocol.start = self._loop.create_task(self._start(protocol, connection))
        self._starts.add(protocol.start)
        protocol.start.add_done_callback(self._starts.discard)

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
