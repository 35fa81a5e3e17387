"""Requests that ask for another protocol are requests like any other: Java's client asks for HTTP/2 in each."""

import asyncio

import pytest

from guichet.server.connection_limits import MAX_BODY, ConnectionLimits
from tests.server.port_fixture import REQUEST, open_port, soon

PATIENT = ConnectionLimits()
UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n"
HEAD = b"POST /v1/payments?a=1 HTTP/1.1\r\nHost: localhost\r\n" + UPGRADE


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        (b"Content-Length: 4\r\n\r\n", b"paid"),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"2\r\npa\r\n2\r\nid\r\n0\r\n\r\n"),
    ],
    ids=["length", "chunked"],
)
@pytest.mark.parametrize("apart", [False, True], ids=["one packet", "body later"])
async def test_the_body_arrives_and_the_connection_goes_on(framing: bytes, body: bytes, apart: bool) -> None:
    async with open_port(PATIENT) as port:
        client = await port.client()
        for expected in (1, 2, 3):
            client.send(HEAD + framing + (b"" if apart else body))
            if apart:
                await asyncio.sleep(0.02)
                client.send(body)
            assert await client.response() == (200, b"ok")
            assert port.app.bodies == [b"paid"] * expected
        assert await client.ask(REQUEST) == (200, b"ok")


async def test_in_single_bytes() -> None:
    async with open_port(PATIENT) as port:
        client = await port.client()
        for byte in HEAD + b"Content-Length: 4\r\n\r\npaid":
            client.send(bytes([byte]))
            await asyncio.sleep(0)
        assert await client.response() == (200, b"ok")
        assert port.app.bodies == [b"paid"]


async def test_pipelined_ones_are_answered_in_order() -> None:
    async with open_port(PATIENT) as port:
        client = await port.client()
        first = HEAD + b"Content-Length: 4\r\n\r\npaid"
        second = HEAD + b"Content-Length: 5\r\n\r\nagain"
        client.send(first + second + REQUEST)
        for _ in range(3):
            assert await client.response() == (200, b"ok")
        assert port.app.bodies == [b"paid", b"again", b""]


async def test_their_bodies_have_the_same_limit() -> None:
    async with open_port(PATIENT) as port:
        client = await port.client(data=HEAD + b"Content-Length: %d\r\n\r\n" % (2 * MAX_BODY))
        client.send(b"a" * 2 * MAX_BODY)
        await soon(lambda: port.app.disconnects == 1)
        assert await client.is_closed()


async def test_a_tunnel_is_refused() -> None:
    async with open_port(PATIENT) as port:
        client = await port.client(data=b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await client.refusal() == (400, "invalid_request")
