"""The load generator: a process of its own, raw HTTP/1.1 over kept-alive connections, requests built beforehand.

Reads one JSON `Load` on stdin, writes one JSON `Outcome` on stdout. Two kinds of load:

    closed   each connection sends its next request when the answer came: throughput
    open     requests are due at fixed instants whatever the server does, and latency counts from that instant, so a
             server that stalls cannot make the generator wait politely with it (no coordinated omission)
"""

import asyncio
import gc
import os
import re
import ssl
import sys
import time
from collections import Counter, deque
from typing import Final, cast

import msgspec
import uvloop

#: In a request: ten digits that differ in every one. Same length, so that Content-Length holds.
COUNTER: Final = b"{{COUNTER}}"
_WIDTH: Final = len(COUNTER)
_LENGTH: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: *(\d+)")
_CHUNKED: Final = re.compile(rb"\r\n[Tt]ransfer-[Ee]ncoding: *chunked")
#: With the end of the chunk before it: a CSV may well have a line that ends with 0.
_LAST_CHUNK: Final = b"\r\n0\r\n\r\n"
_REFERENCE: Final = re.compile(rb'"reference":"([0-9a-f-]{36})"')


class Load(msgspec.Struct):
    """`requests` are whole HTTP requests, sent in turn. Closed: `seconds` or `most` ends it. Open: `rate` a second."""

    host: str
    port: int
    requests: list[bytes]
    seconds: float = 5.0
    warm_up: float = 0.0
    connections: int = 32
    rate: float | None = None
    most: int | None = None
    first: int = 0
    keep_references: bool = False
    #: Whom to trust, for a server with TLS.
    ca_file: str | None = None
    #: Seconds for what is not answered when an open load ends.
    patience: float = 15.0


class Outcome(msgspec.Struct):
    """Latencies in milliseconds, in the order of completion; `statuses` counts answers; times are time.time()."""

    statuses: dict[str, int]
    seconds: float
    latencies: list[float]
    references: list[str]
    started_at: float
    #: Answers that the plan expected and that never came.
    missing: int = 0


class _Connection(asyncio.Protocol):
    def __init__(self, run: "_Run") -> None:
        self._run = run
        self._buffer = b""
        self._due = 0.0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own, no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        self._run.lost(self)

    def send(self, request: bytes, due: float) -> None:
        assert self.transport is not None
        self._due = due
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[: end + 2]
        if length := _LENGTH.search(head):
            complete = len(self._buffer) >= end + 4 + int(length[1])
        else:
            complete = not _CHUNKED.search(head) or self._buffer.endswith(_LAST_CHUNK)
        if complete:
            answer, self._buffer = self._buffer, b""
            self._run.answered(self, answer, self._due)


class _Run:
    def __init__(self, load: Load) -> None:
        self._load = load
        self._number = load.first
        self._sent = 0
        self._planned: int | None = load.most
        self._planned_open = 0
        self._statuses: Counter[str] = Counter()
        self._latencies: list[float] = []
        self._references: list[str] = []
        self._idle: list[_Connection] = []
        self._waiting: deque[float] = deque()
        self._open = 0
        self._done = asyncio.Event()
        self._until = 0.0
        self._counted_from = 0.0

    async def run(self) -> Outcome:
        loop = asyncio.get_running_loop()
        load = self._load
        tls = ssl.create_default_context(cafile=load.ca_file) if load.ca_file else None
        connections = []
        for _ in range(load.connections):
            _, connection = await loop.create_connection(lambda: _Connection(self), load.host, load.port, ssl=tls)
            connections.append(connection)
        self._open = len(connections)
        gc.disable()
        started_at, start = time.time(), time.perf_counter()
        self._counted_from = start + load.warm_up
        self._until = self._counted_from + load.seconds
        if load.rate is None:
            for connection in connections:
                self._next(connection)
            await self._done.wait()
            seconds = time.perf_counter() - self._counted_from
        else:
            self._idle = connections
            seconds = load.seconds
            await self._arrive(start, load.rate)
        gc.enable()
        for connection in connections:
            if connection.transport is not None:
                connection.transport.close()
        missing = 0 if load.rate is None else self._planned_open - len(self._latencies)
        return Outcome(dict(self._statuses), seconds, self._latencies, self._references, started_at, missing)

    async def _arrive(self, start: float, rate: float) -> None:
        """Every request at its own instant; the first `warm_up` seconds are not counted."""
        total = int((self._load.warm_up + self._load.seconds) * rate)
        uncounted = int(self._load.warm_up * rate)
        self._planned_open = total - uncounted
        self._counted_from = start + uncounted / rate
        for i in range(total):
            due = start + i / rate
            if (wait := due - time.perf_counter()) > 0.0002:
                await asyncio.sleep(wait)
            if self._idle:
                self._fire(self._idle.pop(), due)
            else:
                self._waiting.append(due)
        give_up = time.perf_counter() + self._load.patience
        while len(self._latencies) < self._planned_open and time.perf_counter() < give_up and self._open:
            await asyncio.sleep(0.01)

    def _fire(self, connection: _Connection, due: float) -> None:
        requests = self._load.requests
        request = requests[self._number % len(requests)]
        if COUNTER in request:
            request = request.replace(COUNTER, b"%0*d" % (_WIDTH, self._number))
        self._number += 1
        self._sent += 1
        connection.send(request, due)

    def _next(self, connection: _Connection) -> None:
        now = time.perf_counter()
        if now >= self._until or (self._planned is not None and self._sent >= self._planned):
            self._rest()
            return
        self._fire(connection, now)

    def _rest(self) -> None:
        self._open -= 1
        if not self._open:
            self._done.set()

    def lost(self, connection: _Connection) -> None:
        if self._load.rate is None and not self._done.is_set():
            self._statuses["lost"] += 1
            self._rest()
        elif connection in self._idle:
            self._idle.remove(connection)

    def answered(self, connection: _Connection, answer: bytes, due: float) -> None:
        now = time.perf_counter()
        counted = due >= self._counted_from and (self._load.rate is not None or now <= self._until)
        if counted:
            self._statuses[answer[9:12].decode("ascii", "replace")] += 1
            self._latencies.append(round((now - due) * 1000, 3))
        if self._load.keep_references and (found := _REFERENCE.search(answer)):
            self._references.append(found[1].decode())
        if self._load.rate is None:
            self._next(connection)
        elif self._waiting:
            self._fire(connection, self._waiting.popleft())
        else:
            self._idle.append(connection)


def main() -> None:
    load = msgspec.json.decode(sys.stdin.buffer.read(), type=Load)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        outcome = runner.run(_Run(load).run())
    said = memoryview(msgspec.json.encode(outcome))
    while said:  # A pipe takes what it has room for.
        said = said[os.write(1, said) :]


if __name__ == "__main__":
    main()
