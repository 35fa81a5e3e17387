"""Broken responses on the wire, under both of uvicorn's HTTP implementations, mounted and behind middlewares."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guichet.clock import SystemClock
from guichet_simulator.app import create_simulator
from tests.guichet_simulator.conftest import loopback, serve
from tests.patience import PATIENCE

BODY = {"shop": "s", "amount": 500, "phoneNumber": "2290161000000", "description": "x", "callback_info": "ref-1"}
PAYIN = "/feexpay/api/transactions/public/requesttopay/mtn"


class Wrapping:
    """A pure ASGI middleware that passes on a closure over `send`."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def wrapped(message: Message) -> None:
            await send(message)

        await self.app(scope, receive, wrapped)


class Buffering(BaseHTTPMiddleware):
    """A middleware that hides the server's `send` behind a queue."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        return await call_next(request)


@pytest.fixture(params=["httptools", "h11", "pure middleware"])
async def base(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    sock, url = loopback()
    app: Starlette = create_simulator(tmp_path / "s.sqlite", public_url=f"{url}/simulator", clock=SystemClock())
    if request.param == "pure middleware":
        app = Starlette(routes=[Mount("/simulator", app)], middleware=[Middleware(Wrapping), Middleware(Wrapping)])
    async with serve(app, sock, http="h11" if request.param == "h11" else "httptools"):
        yield f"{url}/simulator"


async def raw_answer(base: str, path: str, body: bytes) -> bytes:
    """Every byte of the response until the connection ends, read without an HTTP library."""
    host, port = base.removeprefix("http://").removesuffix("/simulator").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = (
        f"POST /simulator{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    received = b""
    try:
        async with asyncio.timeout(PATIENCE):
            while chunk := await reader.read(4096):
                received += chunk
    except ConnectionResetError:
        pass
    finally:
        writer.close()
    return received


def payin(phone: str) -> bytes:
    return json.dumps({**BODY, "phoneNumber": phone}).encode()


async def held(base: str) -> int:
    async with aiohttp.ClientSession() as http, http.get(f"{base}/control/transactions") as answer:
        return len((await answer.json())["transactions"])


async def test_a_lost_response_is_stored_and_sends_no_byte(base: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert await raw_answer(base, PAYIN, payin("2290161009010")) == b""
    assert await held(base) == 1
    assert not caplog.records


async def test_a_lost_request_is_not_stored(base: str) -> None:
    assert await raw_answer(base, PAYIN, payin("2290161009012")) == b""
    assert await held(base) == 0


async def test_a_truncated_response_sends_the_head_and_part_of_the_body(
    base: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        received = await raw_answer(base, PAYIN, payin("2290161009017"))
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    [length] = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    assert 0 < len(body) < length
    assert await held(base) == 1
    assert not caplog.records


async def test_a_buffering_middleware_does_not_hide_the_broken_connection(tmp_path: Path) -> None:
    sock, url = loopback()
    inner = create_simulator(tmp_path / "s.sqlite", public_url=f"{url}/simulator", clock=SystemClock())
    app = Starlette(routes=[Mount("/simulator", inner)], middleware=[Middleware(Buffering)])
    async with serve(app, sock, log_config=None), aiohttp.ClientSession(headers={"Authorization": "Bearer k"}) as http:
        for phone in ("2290161009010", "2290161009017"):
            with pytest.raises(aiohttp.ClientError):
                async with http.post(f"{url}/simulator{PAYIN}", json={**BODY, "phoneNumber": phone}) as answer:
                    await answer.read()
        assert await held(f"{url}/simulator") == 2
