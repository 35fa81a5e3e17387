"""How many connections a port keeps, and which one goes for a new one."""

import asyncio
import errno
import resource
import socket
import ssl
import time
from contextlib import closing
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from guichet.server.connection_limits import BODY, HEAD, ConnectionLimits, raise_descriptor_limit
from guichet.server.http_server import Tls
from guichet.server.request_context import ClientAddresses
from guichet.settings import Settings
from tests.fakes.certificates import CertificateAuthority
from tests.server.port_fixture import REQUEST, RecordingApp, open_port, soon

FEW = ConnectionLimits(total=8, per_address=4)
#: A request whose body does not come.
NO_BODY = b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n"


async def test_one_address_displaces_its_own_oldest_half_open_connection() -> None:
    async with open_port(FEW) as port:
        stranger = (await port.half_open(1, "127.0.0.9"))[0]
        attackers = await port.half_open(10)
        assert [await client.is_closed() for client in attackers[:6]] == [True] * 6
        assert await (await port.client()).ask() == (200, b"ok")
        stranger.send(b"\r\n")
        assert await stranger.response() == (200, b"ok")


async def test_many_addresses_displace_the_oldest_half_open_connection() -> None:
    async with open_port(FEW) as port:
        kept = await port.client("127.0.0.9")
        assert await kept.ask() == (200, b"ok")
        attackers = [(await port.half_open(1, f"127.0.1.{number}"))[0] for number in range(1, 30)]
        assert await attackers[0].is_closed()
        assert await (await port.client("127.0.0.10")).ask() == (200, b"ok")
        assert await kept.ask() == (200, b"ok")
        assert len(port.server.server_state.connections) <= FEW.total


async def test_an_idle_connection_goes_when_none_is_half_open() -> None:
    async with open_port(FEW) as port:
        idle = []
        for number in range(1, FEW.total + 2):
            idle.append(await port.client(f"127.0.1.{number}"))
            assert await idle[-1].ask() == (200, b"ok")
        assert await idle[0].is_closed()
        assert await idle[1].ask() == (200, b"ok")


async def test_a_request_that_is_being_answered_never_goes() -> None:
    app = RecordingApp()
    async with open_port(FEW, app) as port:
        asked = [await port.client(f"127.0.1.{number}", REQUEST) for number in range(1, FEW.total + 1)]
        await soon(lambda: app.calls == FEW.total)
        assert await (await port.client("127.0.0.9")).is_closed()
        app.gate.set()
        assert [await client.response() for client in asked] == [(200, b"ok")] * FEW.total


async def test_clients_that_send_no_body_do_not_keep_others_out() -> None:
    app = RecordingApp()
    app.gate.set()
    async with open_port(FEW, app) as port:
        await port.half_open(20, data=NO_BODY)
        assert await (await port.client()).ask() == (200, b"ok")


@pytest.mark.parametrize(("phase", "data"), [("head", b"GET / HTTP/1.1\r\n"), ("body", NO_BODY)])
async def test_each_phase_has_a_bound_of_its_own(phase: str, data: bytes) -> None:
    """Which bounds memory: an incomplete request may hold a large head, or a large part of a body."""
    limits: dict[str, Any] = {phase: structs.replace({"head": HEAD, "body": BODY}[phase], most=3)}
    async with open_port(structs.replace(ConnectionLimits(), **limits)) as port:
        clients = await port.half_open(5, data=data)
        assert await clients[1].is_closed()
        assert clients[0].reader.at_eof() or clients[0].reader.exception()
        assert all(client.seems_open for client in clients[2:])


async def test_a_flood_from_one_address_does_not_push_out_slow_clients_of_others() -> None:
    """Their heads are older, but they may be on a slow line."""
    async with open_port(structs.replace(ConnectionLimits(), head=structs.replace(HEAD, most=32))) as port:
        slow = [await port.client(f"127.0.1.{number}", b"GET / HTTP/1.1\r\n") for number in range(1, 4)]
        await port.half_open(100, "127.0.0.9")
        for client in slow:
            assert await client.ask(b"Host: a\r\n\r\n") == (200, b"ok")


async def test_a_trusted_proxy_may_open_as_many_as_it_likes() -> None:
    proxies = ClientAddresses((ip_network("127.0.0.1/32"),), 64)
    async with open_port(ConnectionLimits(total=100, per_address=2, addresses=proxies)) as port:
        clients = await port.half_open(20)
        for client in clients:
            client.send(b"\r\n")
        assert [await client.response() for client in clients] == [(200, b"ok")] * 20


async def test_connections_that_ended_make_room() -> None:
    async with open_port(ConnectionLimits(total=2, per_address=2)) as port:
        for _ in range(10):
            client = await port.client()
            assert await client.ask() == (200, b"ok")
            client.writer.close()
            await soon(lambda: not port.server.server_state.connections)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Tls, ssl.SSLContext]:
    authority = CertificateAuthority.create(tmp_path)
    file = tmp_path / "server.pem"
    authority.ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(file))
    trust = ssl.create_default_context()
    authority.ca.configure_trust(trust)
    return Tls(file, None), trust


def _connect(port: int) -> socket.socket:
    """TCP without a TLS handshake."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setblocking(False)
    return connection


def _is_open(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False


async def test_an_unfinished_tls_handshake_counts_as_half_open(certificate: tuple[Tls, ssl.SSLContext]) -> None:
    async with open_port(FEW, None, *certificate) as port:
        with closing(_connect(port.number)) as oldest:
            others = [_connect(port.number) for _ in range(6)]
            await soon(lambda: not _is_open(oldest))
            assert await (await port.client()).ask() == (200, b"ok")
            for connection in others:
                connection.close()


async def test_a_tls_handshake_has_the_time_of_the_head(certificate: tuple[Tls, ssl.SSLContext]) -> None:
    limits = structs.replace(ConnectionLimits(), head=structs.replace(HEAD, seconds=1.0))
    async with open_port(limits, None, *certificate) as port:
        with closing(_connect(port.number)) as silent:
            await soon(lambda: not _is_open(silent))
        partial = await port.client(data=b"GET / HTTP/1.1\r\n")
        assert await partial.refusal() == (408, "invalid_request")


async def test_a_failed_tls_handshake_makes_room(certificate: tuple[Tls, ssl.SSLContext]) -> None:
    async with open_port(ConnectionLimits(total=1, per_address=1), None, *certificate) as port:
        for _ in range(3):
            with closing(_connect(port.number)) as plain:
                plain.send(REQUEST)
                await soon(lambda: not _is_open(plain))
        assert await (await port.client()).ask() == (200, b"ok")


async def test_accepting_begins_again_after_the_descriptors_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real, failures = socket.socket.accept, iter([errno.EMFILE, errno.ENFILE])

    def accept(listener: socket.socket) -> tuple[socket.socket, object]:
        if (number := next(failures, None)) is not None:
            raise OSError(number, "no descriptors left")
        return real(listener)

    async with open_port(FEW) as port:
        monkeypatch.setattr(socket.socket, "accept", accept)
        assert await (await port.client()).ask() == (200, b"ok")


async def test_clients_that_wait_to_be_accepted_when_the_server_stops_are_answered() -> None:
    async with open_port(ConnectionLimits()) as port:
        port.server.should_exit = True
        waiting = [_connect(port.number) for _ in range(50)]
        for client in waiting:
            client.sendall(REQUEST)
        time.sleep(0.2)  # So the server stops before it has accepted many.
        for client in waiting:
            reader, writer = await asyncio.open_connection(sock=client)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert head.startswith(b"http/1.1 200")
            assert b"connection: close" in head
            writer.close()


def test_connections_leave_descriptors_for_the_rest(base_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1024))
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: raised.append(both))
    assert ConnectionLimits.of(base_settings).total == 768
    assert raised == [(1024, 1024)]
    assert ConnectionLimits.of(replace(base_settings, max_connections=100)).total == 100


@pytest.mark.parametrize(
    ("limits", "expected"),
    [((1024, 1024), 1024), ((1024, -1), 65_536), ((1 << 20, 1 << 20), 1 << 20), ((-1, -1), 65_536)],
)
def test_the_limit_of_descriptors_is_raised_within_reason(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], expected: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    assert raise_descriptor_limit() == expected
