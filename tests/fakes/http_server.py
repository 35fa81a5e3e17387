"""A scripted HTTP server on a real socket, which can also break the protocol."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as it came off the socket. `address` is the local address the client connected to."""

    line: str
    headers: dict[str, str]
    body: bytes
    address: str


Script = Callable[[asyncio.StreamWriter, ReceivedRequest], Awaitable[None]]


def answers(raw: bytes, *, hang_up: bool = False) -> Script:
    """Always the same bytes, whole or not."""

    async def script(writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
        writer.write(raw)
        await writer.drain()
        if hang_up:
            writer.close()

    return script


async def hangs(writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
    """Reads the request and never says a word."""
    await asyncio.sleep(60)


async def hangs_up(writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
    """Reads the request and closes."""
    writer.close()


async def drips(writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
    """A 200 whose body never ends and never pauses."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.02)


@dataclass
class ScriptedServer:
    """`async with ScriptedServer(script, tls=…) as server`. Listens on every address unless
    `host` is given; keeps the requests it received.
    """

    script: Script = field(default_factory=lambda: answers(OK))
    tls: ssl.SSLContext | None = None
    #: Connections are closed as soon as they are accepted.
    deaf: bool = False
    received: list[ReceivedRequest] = field(default_factory=list)
    connections: int = 0
    host: str = "0.0.0.0"
    port: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def url(self, host: str = "localhost", path: str = "/hook") -> str:
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    async def __aenter__(self) -> "ScriptedServer":
        self._server = await asyncio.start_server(self._serve, self.host, 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while not self.deaf and not writer.is_closing():
                request = await _read(reader, writer.get_extra_info("sockname")[0])
                self.received.append(request)
                await self.script(writer, request)
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort() if not writer.is_closing() else writer.close()


async def _read(reader: asyncio.StreamReader, address: str) -> ReceivedRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in rest)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(line, headers, body, address)
