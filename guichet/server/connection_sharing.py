"""One listening socket for several processes, which share the connections evenly (D77).

Without this, one process can end up with every connection: an event loop accepts everything that waits as soon as it
wakes, and of two idle processes the same one wakes first each time. A proxy that keeps its connections open would then
leave the other process without work. So each process writes its number of connections into a table in shared memory,
and a process that has clearly more than another one waits a moment before it accepts.
"""

import asyncio
import mmap
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final

from guichet.logs import log

#: Seconds that a process with more than its share waits before it accepts a connection that no other one took.
ACCEPT_DELAY: Final = 0.005
#: Seconds until the next attempt when the system has no file descriptors left.
_ACCEPT_RETRY_DELAY: Final = 0.5
#: The table holds the number of connections plus this; zero means that the process does not accept connections.
_PRESENT: Final = 1


class ConnectionShare:
    """One process's entry in the table of connection counts."""

    def __init__(self, table: int, number: int) -> None:
        """`table`: descriptor of a file made by `connection_table`; `number`: which process this is, from 1."""
        self._table = memoryview(mmap.mmap(table, 0)).cast("i")
        self._index = number - 1

    def set(self, connections: int) -> None:
        self._table[self._index] = connections + _PRESENT

    def clear(self) -> None:
        """This process accepts no more connections: the others do not compare themselves with it."""
        self._table[self._index] = 0

    @property
    def is_exceeded(self) -> bool:
        """Whether this process has clearly more connections than the process that has the fewest."""
        own = self._table[self._index] - _PRESENT
        fewest = min(count for count in self._table if count) - _PRESENT
        return own > fewest + fewest // 8


@contextmanager
def connection_table(processes: int) -> Iterator[IO[bytes]]:
    """A file that holds the connection counts of so many processes; none of them accepts connections yet."""
    with tempfile.TemporaryFile() as file:
        file.truncate(4 * processes)
        yield file


class SharedListener:
    """Accepts connections from a socket that other processes accept from too; replaces uvicorn's `asyncio.Server`."""

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None,
        share: ConnectionShare,
        open_connections: Callable[[], int],
    ) -> None:
        """`open_connections`: how many connections this process has open now."""
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._protocol = protocol
        self._tls = tls
        self._share = share
        self._open_connections = open_connections
        self._handshakes: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._is_open = True
        self._update_share()
        self._loop.add_reader(listener, self._on_readable)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._share.clear()
            self._loop.remove_reader(self._listener)
            if self._retry:
                self._retry.cancel()

    async def wait_closed(self) -> None:
        """Cancels unfinished handshakes: those clients have not sent a request yet."""
        for task in self._handshakes:
            task.cancel()
        await asyncio.gather(*self._handshakes, return_exceptions=True)

    def _update_share(self) -> None:
        """A new connection wakes every process that is idle, so the counts are as old as the last connection."""
        self._share.set(self._open_connections() + len(self._handshakes))

    def _on_readable(self) -> None:
        self._update_share()
        if self._share.is_exceeded:
            self._accept_later(ACCEPT_DELAY)
        else:
            self._accept()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # Another process accepted it first, or the client has left.
        except OSError as error:
            log.error("process.accept_failed", error=str(error), retry_in_seconds=_ACCEPT_RETRY_DELAY)
            self._accept_later(_ACCEPT_RETRY_DELAY)
            return
        connection.setblocking(False)
        task = self._loop.create_task(self._start(connection))
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    def _accept_later(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._retry = self._loop.call_later(seconds, self._accept_again)

    def _accept_again(self) -> None:
        self._loop.add_reader(self._listener, self._on_readable)
        self._accept()

    async def _start(self, connection: socket.socket) -> None:
        """Starts the protocol, after the TLS handshake if there is one. A client that fails in it is not reported."""
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection, ssl=self._tls)
        except (OSError, TimeoutError):  # ssl.SSLError is an OSError.
            with suppress(OSError):
                connection.close()
