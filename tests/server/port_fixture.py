"""A port of ours with limits that a test chooses, an application that tells what it saw, and raw clients."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet.server.connection_limits import ConnectionLimits
from guichet.server.http_server import Server, ServerOptions, Tls
from guichet.server.listener import bind_socket

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@dataclass
class RecordingApp:
    """Reads the whole body, then answers with `content`; until `gate` is set it waits before that.

    `reads`: False for one that answers without the body, as a 401 does.
    """

    content: bytes = b"ok"
    reads: bool = True
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    bodies: list[bytes] = field(default_factory=list)
    disconnects: int = 0
    calls: int = 0
    sent: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.calls += 1
        body = b""
        message: Message = {"more_body": self.reads}
        while message.get("more_body"):
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnects += 1
                return
            body += message["body"]
        self.bodies.append(body)
        await self.gate.wait()
        length = str(len(self.content)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": self.content})
        self.sent += 1


class Client:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def response(self) -> tuple[int, Any]:
        """The next response's status, and its body: from JSON if it is JSON."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length: ")[1].split("\r\n")[0])
        body = await self.reader.readexactly(length)
        return int(head.split()[1]), json.loads(body) if "application/json" in head else body

    async def ask(self, data: bytes = REQUEST) -> tuple[int, Any]:
        self.send(data)
        return await self.response()

    async def refusal(self) -> tuple[int, str]:
        """Status and code of the contract's error envelope, after which the server closes."""
        status, body = await self.response()
        assert await self.is_closed()
        return status, body["error"]["code"]

    async def is_closed(self) -> bool:
        """Waits until the server has closed; what it still sends is read and forgotten."""
        try:
            while await self.reader.read(65536):
                pass
        except OSError:
            pass
        return True

    @property
    def seems_open(self) -> bool:
        return not self.reader.at_eof() and self.reader.exception() is None


@dataclass
class Port:
    number: int
    server: Server
    app: RecordingApp
    tls: ssl.SSLContext | None
    clients: list[Client] = field(default_factory=list)

    async def client(self, address: str = "127.0.0.1", data: bytes = b"") -> Client:
        opened = await asyncio.open_connection("127.0.0.1", self.number, ssl=self.tls, local_addr=(address, 0))
        client = Client(*opened)
        self.clients.append(client)
        client.send(data)
        return client

    async def half_open(
        self, count: int, address: str = "127.0.0.1", data: bytes = b"GET / HTTP/1.1\r\n"
    ) -> list[Client]:
        return [await self.client(address, data) for _ in range(count)]


@asynccontextmanager
async def open_port(
    limits: ConnectionLimits,
    app: RecordingApp | ASGIApp | None = None,
    tls: Tls | None = None,
    trust: ssl.SSLContext | None = None,
) -> AsyncIterator[Port]:
    """Without `app`, every request is answered at once."""
    if app is None:
        app = RecordingApp()
        app.gate.set()
    with bind_socket("127.0.0.1", 0) as listener:
        server = Server(app, options=ServerOptions(tls=tls), limits=limits)
        serving = asyncio.create_task(server.serve([listener]))
        while not server.listening.is_set():
            await asyncio.sleep(0)
        port = Port(listener.getsockname()[1], server, app if isinstance(app, RecordingApp) else RecordingApp(), trust)
        try:
            yield port
        finally:
            port.app.gate.set()
            for client in port.clients:
                client.writer.transport.abort()
            server.should_exit = True
            await serving
            await asyncio.sleep(0)  # Transports that were aborted last.


async def soon(condition: Any) -> None:
    """Waits until `condition()` holds; the test's own time limit ends it."""
    while not condition():
        await asyncio.sleep(0.005)
