"""One listening socket for several processes, each with its share of the connections.

An event loop accepts all that waits as soon as it wakes, and of two idle processes the same one wakes first each time:
it gets every kept connection of a proxy, and the other has nothing to do. Here each process writes how many it has into
a table that all of them see, and who has more than the others leaves the next one to them for a moment.
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

#: Seconds that a process with more than its share leaves a caller to the others. If none of them has time, it comes
#: back: nobody waits longer.
_YIELD: Final = 0.005
#: Seconds until the next try when the system gives no more descriptors.
_EXHAUSTED: Final = 0.5
#: What the table holds of a process is its connections and this; zero is a process that is not there.
_PRESENT: Final = 1


class Share:
    """One process's place in the table; `number` counts from 1."""

    def __init__(self, table: int, number: int) -> None:
        """`table`: the descriptor of a file made by `table_for`."""
        self._table = memoryview(mmap.mmap(table, 0)).cast("i")
        self._place = number - 1

    def set(self, connections: int) -> None:
        self._table[self._place] = connections + _PRESENT

    def leave(self) -> None:
        """Nobody accepts here any more: no other process leaves anybody to this one."""
        self._table[self._place] = 0

    @property
    def is_ahead(self) -> bool:
        """Whether this process has clearly more than the one that has least."""
        mine = self._table[self._place] - _PRESENT
        least = min(count for count in self._table if count) - _PRESENT
        return mine > least + least // 8


@contextmanager
def table_for(count: int) -> Iterator[IO[bytes]]:
    """A file for the shares of so many processes, none of which is there yet."""
    with tempfile.TemporaryFile() as file:
        file.truncate(4 * count)
        yield file


class Sharing:
    """Accepts from `listening` until it is closed. Stands where uvicorn expects an `asyncio.Server`."""

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None,
        share: Share,
        connections: Callable[[], int],
    ) -> None:
        """`connections`: how many this process has open now."""
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._protocol = protocol
        self._tls = tls
        self._share = share
        self._connections = connections
        self._beginning: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._open = True
        self._count()
        self._loop.add_reader(listening, self._accept)

    def close(self) -> None:
        if self._open:
            self._open = False
            self._share.leave()
            self._loop.remove_reader(self._listening)
            if self._pause:
                self._pause.cancel()

    async def wait_closed(self) -> None:
        """Who has not even shaken hands by now has asked for nothing."""
        for task in self._beginning:
            task.cancel()
        await asyncio.gather(*self._beginning, return_exceptions=True)

    def _count(self) -> None:
        """Every caller wakes every process that has time, so what others read here is as old as their last one."""
        self._share.set(self._connections() + len(self._beginning))

    def _accept(self) -> None:
        self._count()
        if self._share.is_ahead:
            self._accept_after(_YIELD)
        else:
            self._take()

    def _take(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # Another process was faster, or the caller has gone.
        except OSError as error:
            log.error("process.accepts_nobody", error=str(error), again_in_seconds=_EXHAUSTED)
            self._accept_after(_EXHAUSTED)
            return
        connection.setblocking(False)
        task = self._loop.create_task(self._begin(connection))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    def _accept_after(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._pause = self._loop.call_later(seconds, self._accept_again)

    def _accept_again(self) -> None:
        self._loop.add_reader(self._listening, self._accept)
        self._take()

    async def _begin(self, connection: socket.socket) -> None:
        """A caller that breaks off, or speaks no TLS, is nobody's affair but its own."""
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection, ssl=self._tls)
        except (OSError, TimeoutError):  # ssl.SSLError is one
            with suppress(OSError):
                connection.close()
