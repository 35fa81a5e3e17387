"""The server on which all our outgoing calls end: hostile providers in front of the simulated ones, hostile receivers.

A provider's call is passed on to the simulator, unless the hostile answer says that nothing was taken: what the
simulator's books hold is then the truth about every payment, whatever was answered.
"""

import asyncio
import re
import socket
import struct
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from reliability.fuzz.answers import Hostile, hostile

#: The parts of calls and of webhooks that are answered with hostile bytes; the others let payments go on.
_PROVIDER_SHARE: Final = 0.6
_RECEIVER_SHARE: Final = 0.7
_OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_ACKNOWLEDGES: Final = re.compile(rb"HTTP/\d\.\d +2\d\d")
_LAST_ANSWERS: Final = 200
_RESET: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class _Request:
    raw: bytes
    method: str
    path: str
    delivery_id: str | None


@dataclass
class HostileServer:
    """`async with HostileServer(…) as server`. Counts what it answered, by kind."""

    random: Random
    simulator_port: int
    port: int
    hostile: bool = True
    provider_answers: Counter[str] = field(default_factory=Counter)
    receiver_answers: Counter[str] = field(default_factory=Counter)
    #: Ids of deliveries that may count as taken: an answer to them had a 2xx in it.
    acknowledged: set[str] = field(default_factory=set)
    #: The last calls and answers, for a failure's file.
    last: list[str] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> "HostileServer":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=1024 * 1024)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def hostile_answers(self) -> int:
        return sum(count for kind, count in self.answered.items() if kind != "genuine")

    @property
    def answered(self) -> Counter[str]:
        return self.provider_answers + self.receiver_answers

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError):
                while await self._answer_next(reader, writer):
                    pass
        finally:
            writer.transport.abort()

    async def _answer_next(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """False once the connection is not to be used any more."""
        request = await _read_request(reader)
        if request.path.startswith("/simulator"):
            answer = await self._provider_answer(request)
            self.provider_answers[answer.kind] += 1
        else:
            answer = self._receiver_answer(request)
            self.receiver_answers[answer.kind] += 1
        self.last = [*self.last[-_LAST_ANSWERS:], f"{request.raw[:600]!r} → {answer.kind} {answer.pieces[:1]!r:.600}"]
        for piece in answer.pieces:
            writer.write(piece)
            await writer.drain()
            if answer.pause:
                await asyncio.sleep(answer.pause)
        if answer.ending == "reset":
            opened: socket.socket = writer.get_extra_info("socket")
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        elif answer.ending == "close":
            with suppress(OSError):
                writer.write_eof()
            await asyncio.sleep(0)
            writer.close()
        return answer.ending == "keep"

    async def _provider_answer(self, request: _Request) -> Hostile:
        if not self.hostile or self.random.random() > _PROVIDER_SHARE:
            genuine = await self._ask_simulator(request)
            return Hostile("genuine", (genuine,), "close")
        first = hostile(self.random, b"")
        if first.may_refuse:
            return first
        return hostile_but_taken(self.random, await self._ask_simulator(request))

    def _receiver_answer(self, request: _Request) -> Hostile:
        wicked = self.hostile and self.random.random() < _RECEIVER_SHARE
        answer = hostile(self.random, _OK) if wicked else Hostile("genuine", (_OK,), "keep", status=200)
        if request.delivery_id is not None and _ACKNOWLEDGES.search(b"".join(answer.pieces)):
            self.acknowledged.add(request.delivery_id)
        return answer

    async def _ask_simulator(self, request: _Request) -> bytes:
        """The whole raw answer."""
        head, _, body = request.raw.partition(b"\r\n\r\n")
        reader, writer = await asyncio.open_connection("127.0.0.1", self.simulator_port)
        try:
            writer.write(head + b"\r\nConnection: close\r\n\r\n" + body)
            return await reader.read(-1)
        finally:
            writer.close()


def hostile_but_taken(random: Random, genuine: bytes) -> Hostile:
    """A hostile answer that does not say that nothing was taken, unless the provider says so itself."""
    while True:
        answer = hostile(random, genuine)
        refused_anyway = genuine[9:10] == b"4" or genuine[9:12] == b"500"
        if refused_anyway or not answer.may_refuse:
            return answer


async def _read_request(reader: asyncio.StreamReader) -> _Request:
    head = await reader.readuntil(b"\r\n\r\n")
    line, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in rest)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = line.split(" ", 2)
    return _Request(head + body, method, path, headers.get("x-service-delivery"))


def simulator_books(home: Path) -> Path:
    """The file in which the simulator of this data folder keeps what it moved."""
    return home / "simulator.db"
