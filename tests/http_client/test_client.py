"""The way out, against real sockets: where it may go, when it stops, and what it claims to know after a failure.

Every 127.x.y.z address is this machine: 127.0.0.2 plays the public address (the guard is told to allow it),
127.0.0.1 the private one that must not be reached.
"""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from guichet.http_client import KEEP_ALIVE, Forbidden, HttpClient, Lost, NotSent, is_loopback_host, is_public
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import OK, ReceivedRequest, ScriptedServer, answers, drips, hangs, hangs_up
from tests.fakes.name_server import ScriptedResolver

PUBLIC = ip_network("127.0.0.2/32")
HOST = "shop.test"
#: Far beyond what a request here takes; reached only when something hangs that must not.
PATIENCE = 20.0
#: For peers that do hang.
SHORT = 0.4


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path_factory.mktemp("ca"))


@asynccontextmanager
async def client(**given: Any) -> AsyncIterator[HttpClient]:
    made = HttpClient(**given)
    try:
        yield made
    finally:
        await made.aclose()


def to_shop(authority: CertificateAuthority, *addresses: str, **given: Any) -> Any:
    """The production guard as if 127.0.0.2 were a public address; `shop.test` has these addresses."""
    names = ScriptedResolver(shop_test=[addresses or ("127.0.0.2",)])
    return client(**{"allow": [PUBLIC], "ca_file": authority.file, "resolver": names, **given})


# --- Where it may go -------------------------------------------------------------------------------------------------

PUBLIC_ADDRESSES = ["8.8.8.8", "1.1.1.1", "41.85.160.1", "102.64.0.1", "2606:4700:4700::1111", "2c0f:f248::1"]
REFUSED_ADDRESSES = {
    "127.0.0.1": "loopback",
    "127.8.8.8": "loopback",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "this network",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "100.64.0.1": "carrier-grade NAT",
    "100.100.100.200": "metadata of a cloud",
    "169.254.169.254": "metadata of most clouds",
    "168.63.129.16": "agent of a cloud",
    "192.0.0.192": "metadata of a cloud",
    "192.0.2.1": "documentation",
    "198.51.100.1": "documentation",
    "203.0.113.1": "documentation",
    "198.18.0.1": "benchmarks",
    "192.88.99.1": "6to4 relay",
    "224.0.0.1": "multicast",
    "239.255.255.250": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::7f00:1": "compatible form of 127.0.0.1",
    "::ffff:127.0.0.1": "mapped loopback",
    "::ffff:10.0.0.1": "mapped private",
    "::ffff:8.8.8.8": "mapped",
    "64:ff9b::7f00:1": "NAT64 to 127.0.0.1",
    "64:ff9b::a9fe:a9fe": "NAT64 to metadata",
    "64:ff9b:1::1": "local NAT64",
    "100::1": "discard",
    "2001::1": "Teredo",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "6to4 to 127.0.0.1",
    "2002:a00:1::1": "6to4 to 10.0.0.1",
    "3fff::1": "documentation",
    "5f00::1": "segment routing",
    "fc00::1": "unique local",
    "fd00:ec2::254": "metadata of a cloud",
    "fe80::1": "link-local",
    "fe80::1%lo": "link-local with a scope",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "ff0e::1": "multicast, global scope",
}


@pytest.mark.parametrize("text", PUBLIC_ADDRESSES)
def test_public_addresses_may_be_reached(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize("text", REFUSED_ADDRESSES, ids=lambda text: f"{text} {REFUSED_ADDRESSES[text]}")
def test_all_other_addresses_may_not(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", REFUSED_ADDRESSES)
async def test_the_guard_stands_where_the_connection_is_made(text: str) -> None:
    """A name that leads there: nothing is dialled, and the error says why."""
    async with client(resolver=ScriptedResolver(shop_test=[[text]])) as out:
        with pytest.raises(Forbidden, match="refused by the guard"):
            await out.request("POST", f"https://{HOST}/", body=b"x", timeout=PATIENCE)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:{port}/",
        "https://[::ffff:127.0.0.1]:{port}/",
        "https://localhost:{port}/",
        "https://0.0.0.0:{port}/",
        "https://127.1:{port}/",
        "https://2130706433:{port}/",
        "https://0x7f000001:{port}/",
        "https://0177.0.0.1:{port}/",
        "https://127.0.0.1.:{port}/",
    ],
)
async def test_no_spelling_of_this_machine_gets_through(url: str) -> None:
    """With the system's own lookups. `NotSent` rather than `Forbidden` where the spelling is not even a name."""
    async with ScriptedServer() as receiver, client() as out:
        with pytest.raises(NotSent):
            await out.request("POST", url.format(port=receiver.port), body=b"x", timeout=PATIENCE)
    assert receiver.connections == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://shop.test/",
        "ftp://shop.test/",
        "file:///etc/passwd",
        "shop.test",
        "//shop.test/",
        "https://",
        "https:///path",
        "https://user@shop.test/",
        "https://user:secret@shop.test/",
        "https://:@shop.test/",
        "https://shop.test:99999/",
        "https://[::1/",
        "",
    ],
)
async def test_urls_are_checked_before_anything_is_looked_up(url: str) -> None:
    names = ScriptedResolver(shop_test=[["127.0.0.2"]])
    async with client(allow=[PUBLIC], resolver=names) as out:
        with pytest.raises(Forbidden) as caught:
            await out.request("POST", url, body=b"x", timeout=PATIENCE)
    assert not names.asked
    assert "secret" not in str(caught.value)


async def test_a_name_with_a_public_and_a_private_address_is_reached_by_the_public_one(
    authority: CertificateAuthority,
) -> None:
    async with (
        ScriptedServer(tls=authority.server(HOST)) as receiver,
        to_shop(authority, "127.0.0.1", "127.0.0.2") as out,
    ):
        answer = await out.request("POST", receiver.url(HOST), body=b"x", timeout=PATIENCE)
    assert answer.status == 200
    assert [request.address for request in receiver.received] == ["127.0.0.2"]
    assert receiver.connections == 1


async def test_a_private_address_is_no_fallback_for_a_public_one_that_refuses(authority: CertificateAuthority) -> None:
    """The server listens on 127.0.0.1 only."""
    private = ScriptedServer(tls=authority.server(HOST), host="127.0.0.1")
    async with private as receiver, to_shop(authority, "127.0.0.2", "127.0.0.1") as out:
        with pytest.raises(NotSent):
            await out.request("POST", receiver.url(HOST), body=b"x", timeout=PATIENCE)
    assert receiver.connections == 0


async def test_a_name_that_turns_private_between_two_lookups_is_refused(authority: CertificateAuthority) -> None:
    """Rebinding: the first lookup is public, as any check beforehand would have seen it; the next one is not."""
    names = ScriptedResolver(shop_test=[["127.0.0.2"], ["127.0.0.1"]])
    tls = authority.server(HOST)
    rebound = client(allow=[PUBLIC], ca_file=authority.file, resolver=names)
    async with ScriptedServer(tls=tls) as first, ScriptedServer(tls=tls) as second, rebound as out:
        assert (await out.request("POST", first.url(HOST), timeout=PATIENCE)).status == 200
        with pytest.raises(Forbidden):
            await out.request("POST", second.url(HOST), timeout=PATIENCE)
    assert names.asked == [HOST, HOST]
    assert second.connections == 0


async def test_an_operators_connection_is_not_taken_up_for_a_webhook(authority: CertificateAuthority) -> None:
    """Same host and port: the open line's idle connection to a private address must not serve the guarded one."""
    async with ScriptedServer(tls=authority.server(HOST)) as receiver, to_shop(authority, "127.0.0.1") as out:
        assert (await out.request("POST", receiver.url(HOST), timeout=PATIENCE, guarded=False)).status == 200
        with pytest.raises(Forbidden):
            await out.request("POST", receiver.url(HOST), timeout=PATIENCE)
    assert len(receiver.received) == 1


async def test_operators_may_be_anywhere_also_without_tls() -> None:
    async with ScriptedServer() as receiver, client() as out:
        answer = await out.request("GET", receiver.url("127.0.0.1"), timeout=PATIENCE, guarded=False)
    assert (answer.status, answer.body, answer.complete) == (200, b"ok", True)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("shop.localhost", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost.shop.test", False),
        ("notlocalhost", False),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
    ],
)
def test_what_is_loopback_by_its_spelling(host: str, local: bool) -> None:
    assert is_loopback_host(host) is local


async def test_development_reaches_loopback_without_tls_or_with_any_certificate(tmp_path: Path) -> None:
    stranger = CertificateAuthority.create(tmp_path).server("someone.else.test")
    async with ScriptedServer() as plain, ScriptedServer(tls=stranger) as secure, client(loopback=True) as out:
        assert (await out.request("POST", plain.url("127.0.0.1"), timeout=PATIENCE)).status == 200
        assert (await out.request("POST", plain.url("localhost"), timeout=PATIENCE)).status == 200
        assert (await out.request("POST", secure.url("localhost"), timeout=PATIENCE)).status == 200
        assert (await out.request("POST", secure.url("localhost"), timeout=PATIENCE, guarded=False)).status == 200


async def test_development_verifies_certificates_of_every_other_name(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    stranger = CertificateAuthority.create(tmp_path)
    async with (
        ScriptedServer(tls=stranger.server(HOST)) as receiver,
        to_shop(authority, "127.0.0.1", loopback=True) as out,
    ):
        with pytest.raises(NotSent, match="certificate verify failed"):
            await out.request("POST", receiver.url(HOST), body=b"x", timeout=PATIENCE)
    assert receiver.received == []


async def test_development_does_not_take_localhost_at_its_word(tmp_path: Path) -> None:
    """A name service that sends `localhost` elsewhere does not turn certificate checks off elsewhere."""
    names = ScriptedResolver(localhost=[["203.0.113.7"]])
    async with client(loopback=True, resolver=names, allow=[ip_network("203.0.113.0/24")]) as out:
        with pytest.raises(Forbidden):
            await out.request("POST", "https://localhost/", timeout=PATIENCE)


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://shop.test/", "https://169.254.169.254/"])
async def test_development_is_otherwise_as_strict(url: str) -> None:
    async with client(loopback=True, resolver=ScriptedResolver(shop_test=[["127.0.0.1"]])) as out:
        with pytest.raises(Forbidden):
            await out.request("POST", url, timeout=PATIENCE)


# --- Certificates ----------------------------------------------------------------------------------------------------


async def test_an_authority_of_the_ca_file_is_trusted_and_only_with_it(authority: CertificateAuthority) -> None:
    async with ScriptedServer(tls=authority.server(HOST)) as receiver:
        async with to_shop(authority) as out:
            assert (await out.request("POST", receiver.url(HOST), timeout=PATIENCE)).status == 200
        async with to_shop(authority, ca_file=None) as out:
            with pytest.raises(NotSent, match="certificate verify failed") as caught:
                await out.request("POST", receiver.url(HOST), timeout=PATIENCE)
    assert not isinstance(caught.value, Forbidden)
    assert len(receiver.received) == 1


async def test_a_certificate_for_another_name_is_refused_before_sending(authority: CertificateAuthority) -> None:
    async with ScriptedServer(tls=authority.server("other.test")) as receiver, to_shop(authority) as out:
        with pytest.raises(NotSent, match="Hostname mismatch"):
            await out.request("POST", receiver.url(HOST), body=b"x", timeout=PATIENCE)
    assert receiver.received == []


async def test_a_peer_that_does_not_speak_tls_received_nothing(authority: CertificateAuthority) -> None:
    async with ScriptedServer() as receiver, to_shop(authority) as out:
        with pytest.raises(NotSent):
            await out.request("POST", f"https://{HOST}:{receiver.port}/", body=b"x", timeout=SHORT)


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nnonsense\n"])
def test_an_unusable_ca_file_stops_the_start(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValueError, match="GUICHET_EGRESS_CA_FILE"):
        HttpClient(ca_file=file)


# --- What travels ----------------------------------------------------------------------------------------------------


async def test_what_is_sent_is_what_was_given_and_little_else(authority: CertificateAuthority) -> None:
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
async def test_redirects_are_answers_and_are_not_followed(
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
    assert answer.headers["location"] == target.url("127.0.0.1")
    assert (len(receiver.received), target.connections) == (1, 0)


async def test_a_huge_answer_is_cut_and_its_connection_dropped(authority: CertificateAuthority) -> None:
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


async def test_an_answer_of_exactly_the_limit_is_complete(authority: CertificateAuthority) -> None:
    async with ScriptedServer(tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        answer = await out.request("POST", receiver.url(HOST), timeout=PATIENCE, max_bytes=2)
    assert (answer.body, answer.complete) == (b"ok", True)


async def test_compressed_answers_stay_compressed(authority: CertificateAuthority) -> None:
    bomb = gzip.compress(b"0" * 10_000_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n".encode()
    async with ScriptedServer(answers(head + bomb), tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        answer = await out.request("POST", receiver.url(HOST), timeout=PATIENCE)
    assert answer.body == bomb


async def test_an_answer_without_a_length_ends_with_its_connection(authority: CertificateAuthority) -> None:
    until_end = answers(b"HTTP/1.1 200 OK\r\n\r\nall of it", hang_up=True)
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
    ],
    ids=["chunks", "informational answers first"],
)
async def test_answers_in_every_form_keep_their_connection(authority: CertificateAuthority, raw: bytes) -> None:
    async with ScriptedServer(answers(raw), tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        for _ in range(2):
            answer = await out.request("POST", receiver.url(HOST), timeout=PATIENCE)
            assert (answer.status, answer.body, answer.complete) == (200, b"onetwo", True)
    assert receiver.connections == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 Not asked for\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["says so", "HTTP/1.0", "a second answer"],
)
async def test_a_connection_that_may_not_be_kept_is_not(authority: CertificateAuthority, raw: bytes) -> None:
    async with ScriptedServer(answers(raw), tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        for _ in range(2):
            assert (await out.request("POST", receiver.url(HOST), timeout=PATIENCE)).status == 200
    assert receiver.connections == 2


async def test_what_a_peer_says_unasked_is_nobodys_answer(authority: CertificateAuthority) -> None:
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
        async with asyncio.timeout(KEEP_ALIVE + 1):
            await closed.wait()
        assert asyncio.get_running_loop().time() - before > KEEP_ALIVE - 0.2


@pytest.mark.parametrize("headers", [{"X-A": "1\r\nX-B: 2"}, {"X-A": "1\n2"}, {"X-A\r\nX-B": "1"}, {"X-A": "\0"}])
async def test_no_header_smuggles_another(headers: dict[str, str]) -> None:
    async with ScriptedServer() as receiver, client() as out:
        with pytest.raises(Forbidden):
            await out.request("POST", receiver.url("127.0.0.1"), headers=headers, timeout=PATIENCE, guarded=False)
    assert receiver.connections == 0


async def test_names_are_looked_up_once_for_many(authority: CertificateAuthority) -> None:
    names = ScriptedResolver(shop_test=[["127.0.0.2"]])
    async with ScriptedServer(tls=authority.server(HOST)) as receiver, to_shop(authority, resolver=names) as out:
        await asyncio.gather(*(out.request("POST", receiver.url(HOST), timeout=PATIENCE) for _ in range(20)))
    assert names.asked == [HOST]
    assert len(receiver.received) == 20


# --- What is known after a failure -----------------------------------------------------------------------------------


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


async def test_a_dripping_answer_does_not_extend_the_deadline(authority: CertificateAuthority) -> None:
    async with ScriptedServer(drips, tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        with pytest.raises(Lost) as caught:
            async with asyncio.timeout(PATIENCE):
                await out.request("POST", receiver.url(HOST), body=b"x", timeout=SHORT)
    assert caught.value.status == 200


async def test_a_dripping_head_does_not_extend_the_deadline(authority: CertificateAuthority) -> None:
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
    ],
    ids=["no answer", "half a head", "not HTTP", "absurd length", "half a body", "half a chunk", "endless header"],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
async def test_a_broken_answer_is_lost_and_asked_for_once(
    authority: CertificateAuthority, script: Callable[..., Awaitable[None]], status: int | None, method: str
) -> None:
    async with ScriptedServer(script, tls=authority.server(HOST)) as receiver, to_shop(authority) as out:
        with pytest.raises(Lost) as caught:
            await out.request(method, receiver.url(HOST, "/?secret=hush"), body=b"x", timeout=PATIENCE)
    assert caught.value.status == status
    assert "hush" not in str(caught.value)
    assert len(receiver.received) == 1


async def test_a_connection_closed_right_after_it_was_made_is_lost() -> None:
    """The peer read nothing, but nobody on this side can prove it."""
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


async def test_hung_requests_hold_up_nobody_else(authority: CertificateAuthority) -> None:
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
