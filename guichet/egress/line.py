"""Connections made under one rule: names looked up, addresses checked as they are dialled, idle connections kept."""

import asyncio
import socket
import ssl
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Protocol

from aiohappyeyeballs import start_connection

from guichet.egress.answers import Answer, Forbidden
from guichet.egress.connection import Broken, Connection
from guichet.egress.guard import Permits, is_address, permitted

#: Seconds an idle connection is kept. Common servers close theirs after 5; taking one up as it closes is a `Lost`.
KEEP_ALIVE: Final = 4.0
#: Seconds a looked-up name is remembered.
REMEMBERED: Final = 10.0
#: Name lookups at once, for each line: a merchant's slow name server must not hold up an operator's.
LOOKUPS: Final = 8
#: Seconds after which the next address of a name is tried beside the one before (RFC 8305).
_NEXT_ADDRESS: Final = 0.25
#: How often running exchanges are held against their deadlines, in seconds: one timer for all of them.
_TICK: Final = 0.05
_NAMES: Final = 1024


class Resolver(Protocol):
    async def resolve(self, host: str) -> Sequence[str]:
        """The addresses of a name, as text. Raises OSError."""

    async def close(self) -> None: ...


class SystemResolver:
    """The system's lookups in threads of their own: hung ones fill this pool, not the one everybody shares."""

    def __init__(self, line: str) -> None:
        self._pool = ThreadPoolExecutor(LOOKUPS, f"dns-{line}")

    async def resolve(self, host: str) -> Sequence[str]:
        def lookup() -> list[str]:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
            return [str(address[0]) for *_, address in found]

        return await asyncio.get_running_loop().run_in_executor(self._pool, lookup)

    async def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is talked to: a host as it is looked up and as its certificate names it."""

    host: str
    port: int
    tls: bool


class Line:
    """`permits` decides about every address; `context` about certificates."""

    def __init__(self, permits: Permits, context: ssl.SSLContext, resolver: Resolver) -> None:
        self._permits = permits
        self._context = context
        self._resolver = resolver
        self._loop = asyncio.get_running_loop()
        self._idle: dict[Peer, list[Connection]] = defaultdict(list)
        self._busy: set[Connection] = set()
        self._names: dict[Peer, tuple[float, asyncio.Task[Sequence[str]]]] = {}
        self._ticking: asyncio.TimerHandle | None = None

    def kept(self, peer: Peer) -> Connection | None:
        """A connection from before, in hand."""
        idle = self._idle.get(peer)
        while idle:
            connection = idle.pop()
            if self._may_serve(connection, self._loop.time()):
                return connection
        return None

    async def exchange(self, peer: Peer, connection: Connection, request: bytes, most: int, deadline: float) -> Answer:
        """`deadline`: of the loop's clock. Raises Broken. The connection is kept when it can serve again."""
        connection.deadline = deadline
        self._busy.add(connection)
        if self._ticking is None:
            self._ticking = self._loop.call_later(_TICK, self._tick)
        try:
            answer = await connection.exchange(request, most)
        finally:
            self._busy.discard(connection)
        if connection.usable:
            connection.idle_since = self._loop.time()
            self._idle[peer].append(connection)
        else:
            connection.abort()
        return answer

    async def aclose(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        for connection in (*self._busy, *(each for idle in self._idle.values() for each in idle)):
            connection.abort()
        self._idle.clear()
        for _, lookup in self._names.values():
            lookup.cancel()
        await asyncio.gather(*(lookup for _, lookup in self._names.values()), return_exceptions=True)
        await self._resolver.close()

    async def dial(self, peer: Peer) -> Connection:
        """A new one, in hand. Raises Forbidden, OSError (ssl.SSLError is one)."""
        # Checked last and dialled as checked: a name that answers differently from one lookup to the next gains
        # nothing.
        addresses = [text for text in await self._addresses(peer) if permitted(text, self._permits)]
        if not addresses:
            raise Forbidden("address refused by the guard")
        numeric = [_numeric(text, peer.port) for text in addresses]
        sock = await start_connection(numeric, happy_eyeballs_delay=_NEXT_ADDRESS, interleave=1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            _, connection = await self._loop.create_connection(
                Connection,
                sock=sock,
                ssl=self._context if peer.tls else None,
                server_hostname=peer.host.rstrip(".") if peer.tls else None,
            )
        except BaseException:
            sock.close()
            raise
        return connection

    async def _addresses(self, peer: Peer) -> Sequence[str]:
        """Whoever asks for the same name at the same time shares the lookup, and may give up without ending it."""
        if is_address(peer.host):
            return [peer.host]
        now = self._loop.time()
        known = self._names.get(peer)
        if known is None or known[0] < now or _failed(known[1]):
            if len(self._names) >= _NAMES:
                self._names = {name: found for name, found in self._names.items() if found[0] >= now}
            known = now + REMEMBERED, asyncio.ensure_future(self._resolver.resolve(peer.host))
            known[1].add_done_callback(_failed)  # Seen, should everybody have given up.
            self._names[peer] = known
        return await asyncio.shield(known[1])

    def _may_serve(self, connection: Connection, now: float) -> bool:
        """Whether an idle connection may be taken up; one that may not is closed."""
        if connection.usable and now - connection.idle_since < KEEP_ALIVE:
            return True
        connection.abort()
        return False

    def _tick(self) -> None:
        """Ends what is late and closes what lay idle for too long; turns while there is anything to look at."""
        now = self._loop.time()
        for connection in [each for each in self._busy if each.deadline <= now]:
            connection.expire()
        for peer, idle in list(self._idle.items()):
            self._idle[peer] = [each for each in idle if self._may_serve(each, now)]
            if not self._idle[peer]:
                del self._idle[peer]
        waiting = self._busy or self._idle
        self._ticking = self._loop.call_later(_TICK, self._tick) if waiting else None


def _failed(lookup: asyncio.Task[Sequence[str]]) -> bool:
    return lookup.done() and (lookup.cancelled() or lookup.exception() is not None)


def _numeric(text: str, port: int) -> Any:
    """As `start_connection` takes it: the address of a socket, nothing left to look up."""
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return socket.getaddrinfo(text, port, type=socket.SOCK_STREAM, flags=flags)[0]


__all__ = ["Broken", "Line", "Peer", "Resolver", "SystemResolver"]
