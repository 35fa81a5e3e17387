"""What is known after a failure: the request was not sent (`NotSent`), or its fate is unknown (`Lost`)."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from guichet.http_client import Forbidden, Lost, NotSent
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import OK, ReceivedRequest, ScriptedServer, answers, drips, hangs, hangs_up
from tests.fakes.name_server import ScriptedResolver
from tests.http_client.egress import HOST, SHORT, client, to_shop
from tests.patience import PATIENCE


async def test_an_unknown_name_was_not_sent() -> None:
    async with client(resolver=ScriptedResolver()) as out:
        with pytest.raises(NotSent) as caught:
            await out.request("POST", f"https://{HOST}/", body=b"x", timeout=PATIENCE)
    assert not isinstance(caught.value, Forbidden)


async def test_a_name_that_no_name_service_accepts_was_not_sent() -> None:
    async with client() as out:
        with pytest.raises(NotSent):
            await out.request("POST", f"https://{'a' * 64}.test/", body=b"x", timeout=PATIENCE)


async def test_a_lookup_that_hangs_was_not_sent() -> None:
    class Silent(ScriptedResolver):
        async def resolve(self, *_: Any, **__: Any) -> Any:
            await asyncio.sleep(60)

    async with client(resolver=Silent()) as out:
        with pytest.raises(NotSent):
            await out.request("POST", f"https://{HOST}/", body=b"x", timeout=SHORT)


async def test_a_refused_connection_was_not_sent() -> None:
    async with client() as out:
        with pytest.raises(NotSent) as caught:
            await out.request("POST", f"http://127.0.0.1:{_unused_port()}/", body=b"x", timeout=PATIENCE, guarded=False)
    assert not isinstance(caught.value, Forbidden)


async def test_a_handshake_that_hangs_was_not_sent(authority: CertificateAuthority) -> None:
    with socket.create_server(("127.0.0.2", 0)) as listening:  # accepts, and says nothing
        async with to_shop(authority) as out:
            with pytest.raises(NotSent):
                await out.request("POST", f"https://{HOST}:{listening.getsockname()[1]}/", body=b"x", timeout=SHORT)


async def test_a_peer_that_never_answers_is_lost(authority: CertificateAuthority) -> None:
    async with ScriptedServer(hangs, tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        with pytest.raises(Lost) as caught:
            await out.request("POST", receiver.url(HOST), body=b"x", timeout=SHORT)
    assert caught.value.status is None
    assert len(receiver.received) == 1


async def test_a_slow_body_does_not_extend_the_deadline(authority: CertificateAuthority) -> None:
    async with ScriptedServer(drips, tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        with pytest.raises(Lost) as caught:
            async with asyncio.timeout(PATIENCE):
                await out.request("POST", receiver.url(HOST), body=b"x", timeout=SHORT)
    assert caught.value.status == 200


async def test_a_slow_head_does_not_extend_the_deadline(authority: CertificateAuthority) -> None:
    async def script(writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: 1\r\n")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with ScriptedServer(script, tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        with pytest.raises(Lost) as caught:
            async with asyncio.timeout(PATIENCE):
                await out.request("POST", receiver.url(HOST), body=b"x", timeout=SHORT)
    assert caught.value.status is None


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_a_peer_that_stops_reading_is_lost() -> None:
    """The request itself cannot be sent to its end: it is larger than all buffers between the two."""
    release = asyncio.Event()

    async def idle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.transport.abort()

    server = await asyncio.start_server(idle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        async with client() as out:
            with pytest.raises(Lost):
                await out.request("POST", url, body=b"x" * 30_000_000, timeout=SHORT, guarded=False)
    finally:
        release.set()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (hangs_up, None),
        (answers(b"HTTP/1.1 200 OK\r\nContent-Le", hang_up=True), None),
        (answers(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", hang_up=True), None),
        (answers(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", hang_up=True), None),
        (answers(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", hang_up=True), 200),
        (answers(b"HTTP/1.1 502 Bad\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal", hang_up=True), 502),
        (answers(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n", hang_up=True), None),
        (answers(b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"a":"\xc3\xa9"}', hang_up=True), 200),
    ],
    ids=[
        "no answer",
        "half a head",
        "not HTTP",
        "absurd length",
        "half a body",
        "half a chunk",
        "endless header",
        "characters counted for bytes",
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
async def test_a_broken_response_is_lost_and_the_request_not_repeated(
    authority: CertificateAuthority, script: Callable[..., Awaitable[None]], status: int | None, method: str
) -> None:
    async with ScriptedServer(script, tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        with pytest.raises(Lost) as caught:
            await out.request(method, receiver.url(HOST, "/?secret=hush"), body=b"x", timeout=PATIENCE)
    assert caught.value.status == status
    assert "hush" not in str(caught.value)
    assert len(receiver.received) == 1


async def test_a_connection_closed_right_after_it_was_made_is_lost() -> None:
    """The peer read nothing, but this side cannot know that."""
    async with ScriptedServer(deaf=True) as receiver, client() as out:
        with pytest.raises(Lost):
            await out.request("POST", receiver.url("127.0.0.1"), body=b"x", timeout=PATIENCE, guarded=False)
    assert receiver.received == []
    assert receiver.connections == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "GET"])
async def test_a_dead_kept_alive_connection_is_lost_and_nothing_is_sent_again(
    authority: CertificateAuthority, method: str
) -> None:
    """The peer answers the first request on a connection and cuts the connection upon the second."""
    seen = 0

    async def script(writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
        nonlocal seen
        seen += 1
        if seen == 2:
            writer.transport.abort()
        else:
            writer.write(OK)

    async with ScriptedServer(script, tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        assert (await out.request(method, receiver.url(HOST), body=b"1", timeout=PATIENCE)).status == 200
        with pytest.raises(Lost):
            await out.request(method, receiver.url(HOST), body=b"2", timeout=PATIENCE)
        assert [request.body for request in receiver.received] == [b"1", b"2"]
        assert receiver.connections == 1
        assert (await out.request(method, receiver.url(HOST), body=b"3", timeout=PATIENCE)).status == 200
    assert [request.body for request in receiver.received] == [b"1", b"2", b"3"]


async def test_a_cancelled_request_is_cancelled_and_its_connection_not_reused(authority: CertificateAuthority) -> None:
    async with ScriptedServer(hangs, tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        task = asyncio.create_task(out.request("POST", receiver.url(HOST), body=b"1", timeout=PATIENCE))
        while not receiver.received:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        receiver.script = answers(OK)
        assert (await out.request("POST", receiver.url(HOST), body=b"2", timeout=PATIENCE)).status == 200
    assert receiver.connections == 2


async def test_hung_requests_delay_no_other_request(authority: CertificateAuthority) -> None:
    """Two hundred at one peer that never answers, and the next request leaves at once."""
    async with ScriptedServer(hangs) as slow, ScriptedServer() as fast, client() as out:
        stuck = [
            asyncio.create_task(out.request("POST", slow.url("127.0.0.1"), timeout=PATIENCE, guarded=False))
            for _ in range(200)
        ]
        while len(slow.received) < 200:
            await asyncio.sleep(0.01)
        assert (await out.request("POST", fast.url("127.0.0.1"), timeout=PATIENCE, guarded=False)).status == 200
        assert not any(task.done() for task in stuck)
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)


async def test_after_closing_nothing_is_sent() -> None:
    async with ScriptedServer() as receiver, client() as out:
        await out.aclose()
        with pytest.raises(NotSent):
            await out.request("POST", receiver.url("127.0.0.1"), timeout=PATIENCE, guarded=False)
    assert receiver.connections == 0


def _unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        return int(reserved.getsockname()[1])
