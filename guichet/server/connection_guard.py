"""Who may connect, and who must go: the connections of one process, by phase and by address.

A connection is in at most one phase. All connections of a phase have the same time limit, so the first of a phase is
the oldest and the next whose time is up: no connection needs a timer, and an ordinary request moves its connection
twice.
"""

import asyncio
from collections import Counter
from typing import Final, Protocol

from guichet import metrics
from guichet.server.connection_limits import ConnectionLimits, PhaseLimit

#: Seconds between two looks at the time limits.
_SWEEP_INTERVAL: Final = 0.25


class Connection(Protocol):
    """What the guard needs of a connection, which may still be in its TLS handshake."""

    #: What it is counted by; None for a trusted proxy.
    address: str | None
    #: Written by the guard only.
    phase: "Phase | None"
    is_admitted: bool

    def end(self, phase: "Phase") -> None:
        """The time of its phase is up."""

    def abort(self) -> None:
        """Closes it at once."""


class Phase:
    """Connections in one phase, oldest first, with the time when each must have left it."""

    __slots__ = ("deadlines", "most", "seconds")

    def __init__(self, limit: PhaseLimit) -> None:
        self.seconds = limit.seconds
        self.most = limit.most
        self.deadlines: dict[Connection, float] = {}

    def oldest(self, address: str | None = None) -> Connection | None:
        """The connection that has been in it for longest; with `address`, of that address."""
        return next((conn for conn in self.deadlines if address is None or conn.address == address), None)

    def to_evict(self) -> Connection:
        """Of a phase that is full: the oldest of the address that clearly has the most, else the oldest of all. So one
        address cannot push out the slow clients of all others."""
        counted = Counter(connection.address for connection in self.deadlines if connection.address is not None)
        address, most = counted.most_common(1)[0] if counted else (None, 0)
        oldest = self.oldest(address if most > self.most // 16 else None)
        assert oldest is not None
        return oldest


class ConnectionGuard:
    """The connections that this process accepted from one socket."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        #: No full head yet.
        self.head = Phase(limits.head)
        #: A full head, no full body yet.
        self.body = Phase(limits.body)
        #: The same for an address that takes more.
        self.upload = Phase(limits.upload)
        self.idle = Phase(limits.idle)
        #: The client does not read what we send.
        self.stalled = Phase(limits.stalled)
        #: Refused, and not closed by the client yet.
        self.refused = Phase(limits.refused)
        self.open = 0
        self._by_address: Counter[str] = Counter()
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time
        self._next_sweep = self._loop.call_later(_SWEEP_INTERVAL, self._sweep_again)

    def close(self) -> None:
        """No time limit is looked at any more."""
        self._next_sweep.cancel()

    def admit(self, connection: Connection) -> bool:
        """Counts a new connection and starts the time of its first head; False when it must be closed at once.

        If there is no room, the oldest connection without a full head goes, else the oldest idle one, else the oldest
        without a full body.
        """
        address = connection.address
        if address is not None:
            if self._by_address[address] >= self.limits.per_address and not self._make_room("address", address):
                metrics.CLOSED_CONNECTIONS.labels("address").inc()
                return False
            self._by_address[address] += 1
        if self.open >= self.limits.total and not self.make_room():
            self._uncount(address)
            metrics.CLOSED_CONNECTIONS.labels("full").inc()
            return False
        self.open += 1
        metrics.OPEN_CONNECTIONS.inc()
        connection.is_admitted = True
        self.enter(connection, self.head)
        return True

    def forget(self, connection: Connection) -> None:
        """The connection has ended; may be said twice."""
        if connection.is_admitted:
            connection.is_admitted = False
            self.enter(connection, None)
            self.open -= 1
            metrics.OPEN_CONNECTIONS.dec()
            self._uncount(connection.address)

    def enter(self, connection: Connection, phase: Phase | None) -> None:
        """The connection leaves its phase for `phase`; None: a request is being answered, which has no limit here."""
        if connection.phase is not None:
            connection.phase.deadlines.pop(connection, None)
        connection.phase = phase
        if phase is not None:
            if len(phase.deadlines) >= phase.most:
                self._evict(phase.to_evict(), "full")
            phase.deadlines[connection] = self._now() + phase.seconds

    def make_room(self) -> bool:
        """Closes one connection that waits for its client; False if there is none."""
        return self._make_room("full", None)

    def _make_room(self, reason: str, address: str | None) -> bool:
        waiting = (self.head, self.idle, self.body, self.upload)
        victim = next((oldest for phase in waiting if (oldest := phase.oldest(address))), None)
        if victim is not None:
            self._evict(victim, reason)
        return victim is not None

    def _evict(self, connection: Connection, reason: str) -> None:
        metrics.CLOSED_CONNECTIONS.labels(reason).inc()
        self.forget(connection)
        connection.abort()

    def _uncount(self, address: str | None) -> None:
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def _sweep_again(self) -> None:
        self._next_sweep = self._loop.call_later(_SWEEP_INTERVAL, self._sweep_again)
        now = self._now()
        for phase in (self.head, self.body, self.upload, self.idle, self.stalled, self.refused):
            while (oldest := phase.oldest()) is not None and phase.deadlines[oldest] <= now:
                self.enter(oldest, None)
                oldest.end(phase)
