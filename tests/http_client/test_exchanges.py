"""What a request sends, what its response gives, and which connections are kept."""

import asyncio
import gzip

import pytest

from guichet.http_client import Forbidden
from guichet.http_client.connector import KEEP_ALIVE
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import OK, ReceivedRequest, ScriptedServer, answers
from tests.fakes.name_server import ScriptedResolver
from tests.http_client.egress import HOST, client, to_shop
from tests.patience import PATIENCE


async def test_a_request_has_the_given_headers_and_few_others(authority: CertificateAuthority) -> None:
    async with (
        ScriptedServer(tls=authority.server(HOST)) as receiver,
        to_shop(authority, user_agent="Guichet/9") as out,
    ):
        await out.request(
            "POST", receiver.url(HOST, "/a%2Fb?x=1%202"), headers={"X-One": "1"}, body=b"{}", timeout=PATIENCE
        )
        await out.request("GET", receiver.url(HOST), headers={"User-Agent": "Other"}, timeout=PATIENCE)
    posted, got = receiver.received
    assert posted.line == "POST /a%2Fb?x=1%202 HTTP/1.1"
    assert posted.body == b"{}"
    assert posted.headers == {
        "host": f"{HOST}:{receiver.port}",
        "user-agent": "Guichet/9",
        "accept-encoding": "identity",
        "accept": "*/*",
        "x-one": "1",
        "content-length": "2",
    }
    assert got.headers["user-agent"] == "Other"
    assert receiver.connections == 1, "the connection is kept"


async def test_cookies_are_not_kept(authority: CertificateAuthority) -> None:
    cookie = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 0\r\n\r\n"
    async with ScriptedServer(answers(cookie), tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        for _ in range(2):
            await out.request("POST", receiver.url(HOST), timeout=PATIENCE)
    assert [("cookie" in request.headers) for request in receiver.received] == [False, False]


async def test_proxies_of_the_environment_are_ignored(
    authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        ScriptedServer() as proxy,
        ScriptedServer(tls=authority.server(HOST)) as receiver,
        to_shop(authority) as out,
    ):
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert (await out.request("POST", receiver.url(HOST), timeout=PATIENCE)).status == 200
    assert proxy.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_redirects_are_returned_and_not_followed(
    authority: CertificateAuthority, status: int, method: str
) -> None:
    async with ScriptedServer() as target:
        moved = f"HTTP/1.1 {status} Moved\r\nLocation: {target.url('127.0.0.1')}\r\nContent-Length: 0\r\n\r\n"
        async with (
            ScriptedServer(answers(moved.encode()), tls=authority.server(HOST)) as receiver,
            to_shop(authority) as out,
        ):
            answer = await out.request(method, receiver.url(HOST), timeout=PATIENCE)
    assert answer.status == status
    assert (len(receiver.received), target.connections) == (1, 0)


async def test_a_huge_response_is_cut_and_its_connection_dropped(authority: CertificateAuthority) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"
    async with (
        ScriptedServer(answers(head + b"x" * 2_000_000), tls=authority.server(HOST)) as receiver,
        to_shop(authority) as out,
    ):
        answer = await out.request("POST", receiver.url(HOST), timeout=PATIENCE)
        assert (answer.status, len(answer.body), answer.complete) == (200, 64 * 1024, False)
        answer = await out.request("POST", receiver.url(HOST), timeout=PATIENCE, max_bytes=10)
        assert (answer.body, answer.complete) == (b"x" * 10, False)
    assert receiver.connections == 2


async def test_a_response_of_exactly_the_limit_is_complete(authority: CertificateAuthority) -> None:
    async with ScriptedServer(tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        answer = await out.request("POST", receiver.url(HOST), timeout=PATIENCE, max_bytes=2)
    assert (answer.body, answer.complete) == (b"ok", True)


async def test_compressed_responses_stay_compressed(authority: CertificateAuthority) -> None:
    bomb = gzip.compress(b"0" * 10_000_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n".encode()
    async with ScriptedServer(answers(head + bomb), tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        answer = await out.request("POST", receiver.url(HOST), timeout=PATIENCE)
    assert answer.body == bomb


@pytest.mark.parametrize("header", [b"", b"Transfer-Encoding: identity\r\n"])
async def test_a_response_without_a_length_ends_with_its_connection(
    authority: CertificateAuthority, header: bytes
) -> None:
    until_end = answers(b"HTTP/1.1 200 OK\r\n" + header + b"\r\nall of it", hang_up=True)
    async with ScriptedServer(until_end, tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        for _ in range(2):
            answer = await out.request("POST", receiver.url(HOST), timeout=PATIENCE)
            assert (answer.status, answer.body, answer.complete) == (200, b"all of it", True)
    assert receiver.connections == 2


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nonetwo",
        b"HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\nContent-Length: 6\r\n\r\nonetwo",
        b"HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 6\r\n\r\nonetwo",
    ],
    ids=["chunks", "informational answers first", "a header in two lines", "offers HTTP/2"],
)
async def test_every_complete_form_of_response_keeps_its_connection(
    authority: CertificateAuthority, raw: bytes
) -> None:
    async with ScriptedServer(answers(raw), tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        for _ in range(2):
            answer = await out.request("POST", receiver.url(HOST), timeout=PATIENCE)
            assert (answer.status, answer.body, answer.complete) == (200, b"onetwo", True)
    assert receiver.connections == 1


@pytest.mark.parametrize(("status", "connections"), [(101, 2), (204, 1), (304, 1)])
async def test_a_response_that_has_no_body_needs_no_length(
    authority: CertificateAuthority, status: int, connections: int
) -> None:
    raw = f"HTTP/1.1 {status} Empty\r\n\r\n".encode()
    async with ScriptedServer(answers(raw), tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        for _ in range(2):
            answer = await out.request("POST", receiver.url(HOST), timeout=PATIENCE)
            assert (answer.status, answer.body, answer.complete) == (status, b"", True)
    assert receiver.connections == connections


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 Not asked for\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 Not",
    ],
    ids=["says so", "HTTP/1.0", "a second answer", "half a second answer"],
)
async def test_a_connection_that_must_be_closed_is_not_reused(authority: CertificateAuthority, raw: bytes) -> None:
    async with ScriptedServer(answers(raw), tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        for _ in range(2):
            assert (await out.request("POST", receiver.url(HOST), timeout=PATIENCE)).status == 200
    assert receiver.connections == 2


async def test_bytes_on_an_idle_connection_are_not_the_next_response(authority: CertificateAuthority) -> None:
    """On an idle connection: the next request must not take it for its own."""
    said = asyncio.Event()

    async def script(writer: asyncio.StreamWriter, _: ReceivedRequest) -> None:
        writer.write(OK)
        await writer.drain()
        if not said.is_set():
            await asyncio.sleep(0.05)
            writer.write(b"HTTP/1.1 204 Poison\r\n\r\n")
            await writer.drain()
            said.set()

    async with ScriptedServer(script, tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        assert (await out.request("POST", receiver.url(HOST), timeout=PATIENCE)).status == 200
        await said.wait()
        await asyncio.sleep(0.05)
        assert (await out.request("POST", receiver.url(HOST), timeout=PATIENCE)).status == 200
    assert receiver.connections == 2


async def test_an_idle_connection_is_closed_in_time() -> None:
    """Before common servers close theirs, so that no request meets a connection that is just going."""
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await reader.read()
        closed.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, client() as out:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        assert (await out.request("GET", url, timeout=PATIENCE, guarded=False)).status == 200
        before = asyncio.get_running_loop().time()
        async with asyncio.timeout(PATIENCE):
            await closed.wait()
        assert asyncio.get_running_loop().time() - before > KEEP_ALIVE - 0.2


@pytest.mark.parametrize("headers", [{"X-A": "1\r\nX-B: 2"}, {"X-A": "1\n2"}, {"X-A\r\nX-B": "1"}, {"X-A": "\0"}])
async def test_a_header_with_a_line_break_is_refused(headers: dict[str, str]) -> None:
    async with ScriptedServer() as receiver, client() as out:
        with pytest.raises(Forbidden):
            await out.request("POST", receiver.url("127.0.0.1"), headers=headers, timeout=PATIENCE, guarded=False)
    assert receiver.connections == 0


async def test_simultaneous_requests_share_one_lookup(authority: CertificateAuthority) -> None:
    names = ScriptedResolver(shop_test=[["127.0.0.2"]])
    async with ScriptedServer(tls=authority.server(HOST)) as receiver, to_shop(authority, resolver=names) as out:
        await asyncio.gather(*(out.request("POST", receiver.url(HOST), timeout=PATIENCE) for _ in range(20)))
    assert names.lookups == [HOST]
    assert len(receiver.received) == 20
