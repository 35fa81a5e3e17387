"""One listening socket for several processes, which share the connections evenly
(docs/decisions.md, "Connections shared").

Without this, one process can end up with every connection: an event loop accepts everything that waits as soon as it
wakes, and of two idle processes the same one wakes first each time. A proxy that keeps its connections open would then
leave the other process without work. So each process writes its number of connections into a table in shared memory,
and a process that has clearly more than another one waits a moment before it accepts.
"""

import mmap
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

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

    @property
    def is_present(self) -> bool:
        return self._table[self._index] != 0

    @property
    def is_anyone_present(self) -> bool:
        """Whether any process accepts connections."""
        return any(self._table)

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
