"""A simulator on a real loopback port, a client for its providers, and a server that receives its callbacks."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from guichet.clock import SECOND, SystemClock
from guichet_simulator.app import create_simulator
from guichet_simulator.store import Store
from tests.fakes.clock import TurningClock
from tests.patience import PATIENCE

#: A decision or a callback that is due, or a callback whose attempt has not ended.
UNANSWERED: Final = """SELECT 1 FROM transactions WHERE state = 'pending' AND due_at <= ?1 UNION ALL
SELECT 1 FROM callbacks WHERE due_at <= ?1 OR (due_at IS NOT NULL AND attempts > 0 AND answered IS error) LIMIT 1"""


@contextlib.asynccontextmanager
async def serve(app: ASGIApp, sock: socket.socket, **options: Any) -> AsyncIterator[None]:
    """Serves on a bound socket with uvicorn, in which a developer may mount the simulator.

    Without its main loop and `Server.shutdown`, which look every tenth of a second whether there is anything to do:
    that is longer than most tests take.
    """
    config = uvicorn.Config(app, log_level="warning", access_log=False, **options)
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup([sock])
    await server.on_tick(0)  # Sets the Date header.
    try:
        yield
    finally:
        for listening in server.servers:
            listening.close()
        state = server.server_state
        for connection in [*state.connections]:
            connection.shutdown()
        while state.connections or state.tasks:
            await asyncio.sleep(0.001)
        await server.lifespan.shutdown()


def loopback() -> tuple[socket.socket, str]:
    # Without its protocol, asyncio would not switch Nagle's algorithm off, and every answer would take 40 ms.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.bind(("127.0.0.1", 0))
    return sock, f"http://127.0.0.1:{sock.getsockname()[1]}"


@dataclass
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class CallbackReceiver:
    """Receives callbacks. `answers`: the statuses of the first responses; 200 afterwards."""

    url: str
    passing: Callable[[], Awaitable[None]]
    received: list[Received] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    async def wait_for(self, count: int) -> list[Received]:
        async with asyncio.timeout(PATIENCE):
            while len(self.received) < count:
                await self.passing()
        return self.received


@dataclass
class Simulator:
    """`json` calls any path; `force`, `truth`, `debits` and `credits` call the control API."""

    url: str
    http: aiohttp.ClientSession
    clock: TurningClock
    #: Looking into it is cheaper than asking it.
    store: Store

    async def passing(self) -> None:
        """Between two looks of a test: time passes until something is due, a second at most, once all that was due
        before has happened."""
        now = self.clock.now()
        if not self.store.rows(UNANSWERED, now):
            self.clock.advance(min((self.store.next_due() - now) / SECOND, 1))
        await asyncio.sleep(0.002)

    async def json(self, method: str, path: str, status: int = 200, **options: Any) -> Any:
        async with self.http.request(method, f"{self.url}{path}", **options) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json() if status != 204 else None

    async def force(self, provider_name: str, scenario: str, call: str = "debit", **more: Any) -> None:
        wanted = {"family": provider_name, "scenario": scenario, "call": call, **more}
        await self.json("POST", "/control/next", 201, json=wanted)

    async def truth(self, **query: str) -> Any:
        return await self.json("GET", "/control/transactions", params=query)

    async def debits(self, **query: str) -> int:
        """How many debits really happened."""
        return sum(entry["debits"] for entry in (await self.truth(**query))["books"])

    async def credits(self, **query: str) -> int:
        return sum(entry["credits"] for entry in (await self.truth(**query))["books"])

    async def press(self, transaction: int, decision: str, **fields: str) -> tuple[int, str]:
        """Presses a button of the simulated phone; returns the status and the `Location`."""
        form = {"decision": decision, **fields}
        async with self.http.post(f"{self.url}/phone/{transaction}", data=form, allow_redirects=False) as answer:
            return answer.status, answer.headers.get("location", "")


@contextlib.asynccontextmanager
async def open_simulator(
    *, state: Path | None = None, clock: TurningClock | None = None, at_root: str | None = None
) -> AsyncIterator[Simulator]:
    """Its time passes while the test waits. It begins at the hour that other people's libraries have."""
    sock, url = loopback()
    clock = clock or TurningClock(SystemClock().now())
    app = create_simulator(state, public_url=f"{url}/simulator", clock=clock, at_root=at_root)
    async with serve(app, sock), aiohttp.ClientSession() as http:
        yield Simulator(f"{url}/simulator", http, clock, app.state.store)


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with open_simulator() as opened:
        yield opened


@pytest.fixture
async def callback_receiver(simulator: Simulator) -> AsyncIterator[CallbackReceiver]:
    sock, url = loopback()
    box = CallbackReceiver(url, simulator.passing)

    async def receive(request: Request) -> Response:
        box.received.append(Received(request.method, request.url.path, dict(request.headers), await request.body()))
        return Response(status_code=box.answers.pop(0) if box.answers else 200)

    app = Starlette(routes=[Route("/{path:path}", receive, methods=["POST", "PUT"])])
    async with serve(app, sock):
        yield box
