"""Merchants' servers that try to exhaust this service, over TLS: bytes, sockets and time stay bounded."""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import cast

import pytest

from guichet.http_client import HttpClient, Lost, NotSent, Response
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import OK, ReceivedRequest, Script, ScriptedServer, answers
from tests.fakes.name_server import ScriptedResolver
from tests.patience import PATIENCE

HOST = "shop.test"
#: Far beyond what a request here takes; reached only when something hangs that must not.
#: For peers that never finish.
SHORT = 1.0
#: What a server can put into the buffers of the kernel and the event loop before it notices that nothing is read.
BUFFERS = 16 * 1024 * 1024
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def client_and_peer(
    authority: CertificateAuthority, script: Script
) -> AsyncIterator[tuple[HttpClient, ScriptedServer]]:
    """`merchant.test` is a hostile HTTPS server at 127.0.0.2, which counts as a public address here."""
    client = HttpClient(
        allow=[ip_network("127.0.0.2/32")], ca_file=authority.file, resolver=ScriptedResolver(shop_test=[["127.0.0.2"]])
    )
    async with ScriptedServer(script, tls=authority.server(HOST)) as server:
        try:
            yield client, server
        finally:
            await client.aclose()


@dataclass
class Endless:
    """A script that sends `first` and then `piece` for ever, and counts."""

    first: bytes
    piece: bytes
    pause: float = 0.0
    sent: int = 0
    ended: list[BaseException] = field(default_factory=list)

    async def __call__(self, writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
        writer.write(self.first)
        try:
            while True:
                writer.write(self.piece)
                self.sent += len(self.piece)
                await writer.drain()
                await asyncio.sleep(self.pause)
        except OSError as error:
            self.ended.append(error)
            raise


async def ignores(writer: asyncio.StreamWriter) -> None:
    """Keeps the connection open and reads no more, not even the close_notify of TLS."""
    cast(asyncio.Transport, writer.transport).pause_reading()
    await asyncio.sleep(60)


async def post(client: HttpClient, server: ScriptedServer, timeout: float = PATIENCE) -> Response:
    return await client.request("POST", server.url(HOST), body=b"{}", timeout=timeout)


def open_sockets(server: ScriptedServer) -> int:
    """How many internet sockets this process has, those of `server` left out, whatever any object believes."""
    found = 0
    for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        try:
            copy = os.dup(number)
        except OSError:  # that of the listing itself
            continue
        if not stat.S_ISSOCK(os.fstat(copy).st_mode):
            os.close(copy)
            continue
        with socket.socket(fileno=copy) as opened:
            internet = opened.family in (socket.AF_INET, socket.AF_INET6)
            found += internet and opened.getsockname()[1] != server.port
    return found


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


# --- Sockets ----------------------------------------------------------------------------------------------------------


def long_head(*, hang_up: bool) -> Script:
    """63 KB of head, a pause, 3 KB more and the end."""
    line = b"X-Padding: " + b"x" * 1000 + b"\r\n"

    async def script(writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + line * 62)
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.write(line * 3 + b"Content-Length: 0\r\n\r\n")
        await writer.drain()
        if hang_up:
            writer.close()
        else:
            await ignores(writer)

    return script


@pytest.mark.parametrize("hang_up", [True, False], ids=["peer closes", "peer stays"])
async def test_a_head_that_grows_too_long_leaves_no_socket_open(authority: CertificateAuthority, hang_up: bool) -> None:
    async with client_and_peer(authority, long_head(hang_up=hang_up)) as (client, server):
        for _ in range(6):
            outcomes = await asyncio.gather(*(post(client, server) for _ in range(20)), return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} == {Lost}
        assert len(server.received) == 120
        await until(lambda: open_sockets(server) == 0)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
        CHUNKED + b"5\r\nhal",
        CHUNKED + b"not a size\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 300_000,
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
    ],
    ids=["half a head", "not HTTP", "half a body", "half a chunk", "absurd chunk", "too long a body", "upgrade"],
)
async def test_an_exchange_that_did_not_finish_cleanly_leaves_no_socket_open(
    authority: CertificateAuthority, raw: bytes
) -> None:
    """The peer keeps its side open and does not reply to a TLS goodbye."""

    async def script(writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
        writer.write(raw)
        await ignores(writer)

    async with client_and_peer(authority, script) as (client, server):
        requests = [asyncio.create_task(post(client, server)) for _ in range(20)]
        await until(lambda: len(server.received) == 20)
        await asyncio.sleep(0.1)
        for request in requests:
            request.cancel()  # Some are over by now, the others wait for more.
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        assert {isinstance(outcome, Response | Lost | asyncio.CancelledError) for outcome in outcomes} == {True}
        await until(lambda: open_sockets(server) == 0)
        server.script = answers(OK)
        assert (await post(client, server)).status == 200
        assert server.connections == 21, "none of the broken connections was reused"


async def test_a_handshake_that_hangs_leaves_no_socket_open(authority: CertificateAuthority) -> None:
    """The server accepts and says nothing."""
    with socket.create_server(("127.0.0.2", 0)) as listening:
        server = ScriptedServer(port=listening.getsockname()[1], tls=authority.server(HOST))
        names = ScriptedResolver(shop_test=[["127.0.0.2"]])
        client = HttpClient(allow=[ip_network("127.0.0.2/32")], ca_file=authority.file, resolver=names)
        outcomes = await asyncio.gather(*(post(client, server, SHORT) for _ in range(20)), return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {NotSent}
        await until(lambda: open_sockets(server) == 0)
        await client.aclose()


async def test_a_complete_exchange_keeps_its_socket_open(authority: CertificateAuthority) -> None:
    """Shows that the socket counts of the other tests can differ."""
    async with client_and_peer(authority, answers(OK)) as (client, server):
        for _ in range(3):
            assert (await post(client, server)).status == 200
        assert open_sockets(server) == 1
        await client.aclose()
        await until(lambda: open_sockets(server) == 0)


# --- Bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "piece", "status"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"y" * 900 + b"\r\n", None),
        (b"HTTP/1.1 200 OK\r\nX-More: ", b"y" * 1000, None),
        (b"HTTP/1.1 200 ", b"O" * 1000, None),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 20, None),
        (CHUNKED + b"2\r\nok\r\n0\r\n", b"X-Trailer: " + b"y" * 900 + b"\r\n", 200),
        (CHUNKED + b"2\r\nok\r\n0\r\nX-Trailer: ", b"y" * 1000, 200),
        (CHUNKED + b"2;", b"extension=1;" * 80, 200),
    ],
    ids=["headers", "one header", "reason", "informational responses", "trailers", "one trailer", "chunk extensions"],
)
async def test_bytes_outside_the_body_are_bounded(
    authority: CertificateAuthority, first: bytes, piece: bytes, status: int | None
) -> None:
    """The peer would send for ever, as fast as it can; it is cut off, and long before the request times out."""
    script = Endless(first, piece)
    async with client_and_peer(authority, script) as (client, server):
        with pytest.raises(Lost) as caught:
            await post(client, server)
        assert caught.value.status == status
        assert "no response in time" not in str(caught.value)
        await until(lambda: bool(script.ended))
        assert script.sent < BUFFERS
        assert open_sockets(server) == 0


@pytest.mark.parametrize(
    ("first", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n", b"x" * 10_000),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 10_000),
        (CHUNKED, b"2710\r\n" + b"x" * 10_000 + b"\r\n"),
    ],
    ids=["announced", "until the end", "chunks"],
)
async def test_an_endless_body_is_cut(authority: CertificateAuthority, first: bytes, piece: bytes) -> None:
    script = Endless(first, piece)
    async with client_and_peer(authority, script) as (client, server):
        response = await post(client, server)
        assert (response.status, len(response.body), response.complete) == (200, 64 * 1024, False)
        await until(lambda: bool(script.ended))
        assert script.sent < BUFFERS
        assert open_sockets(server) == 0


async def test_a_body_in_small_chunks_is_accepted(authority: CertificateAuthority) -> None:
    """A whole body of the greatest size, in chunks that are half overhead."""
    raw = CHUNKED + b"8\r\n12345678\r\n" * (8 * 1024) + b"0\r\n\r\n"
    async with client_and_peer(authority, answers(raw)) as (client, server):
        for _ in range(2):
            response = await post(client, server)
            assert (response.body, response.complete) == (b"12345678" * (8 * 1024), True)
    assert server.connections == 1


# --- Time -------------------------------------------------------------------------------------------------------------


async def test_a_slow_drip_does_not_extend_the_deadline(authority: CertificateAuthority) -> None:
    """In the head, in the body and in the trailers of a response, beside each other."""
    dripping = {
        "/head": (b"HTTP/1.1 200 OK\r\nX-Slow: ", None),
        "/body": (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", 200),
        "/trailers": (CHUNKED + b"0\r\nX-Slow: ", 200),
    }

    async def script(writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        first, _ = dripping[request.line.split(" ")[1]]
        await Endless(first, b".", pause=SHORT / 10)(writer, request)

    async with client_and_peer(authority, script) as (client, server):
        async with asyncio.timeout(PATIENCE):
            lost = await asyncio.gather(
                *(client.request("POST", server.url(HOST, path), timeout=2 * SHORT) for path in dripping),
                return_exceptions=True,
            )
        assert [type(each) for each in lost] == [Lost] * len(dripping)
        assert [vars(each)["status"] for each in lost] == [status for _, status in dripping.values()]
        await until(lambda: open_sockets(server) == 0)


# --- Bytes outside a response -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unsolicited", [b"HTTP/1.1 204 Poison\r\n\r\n", b"HTTP/1.1 204 Poi", b"\r\n"])
async def test_bytes_on_an_idle_connection_make_it_unusable(
    authority: CertificateAuthority, unsolicited: bytes
) -> None:
    said = asyncio.Event()

    async def script(writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
        writer.write(OK)
        if not said.is_set():
            await asyncio.sleep(0.05)
            writer.write(unsolicited)
            said.set()

    async with client_and_peer(authority, script) as (client, server):
        assert (await post(client, server)).status == 200
        await said.wait()
        await until(lambda: open_sockets(server) == 0)
        assert (await post(client, server)).status == 200
    assert server.connections == 2


async def test_a_second_response_after_the_body_is_ignored(authority: CertificateAuthority) -> None:
    """The body ends and the other response begins in one segment, after the head was already taken."""

    async def script(writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.write(b"okHTTP/1.1 500 Not asked for\r\nContent-Length: 0\r\n\r\n")

    async with client_and_peer(authority, script) as (client, server):
        for _ in range(2):
            assert (await post(client, server)).status == 200
    assert server.connections == 2
