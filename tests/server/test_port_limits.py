"""The limits of a port, through real sockets: what a request may be, and how long it may take."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from guichet.application import application
from guichet.server.connection_limits import (
    BODY,
    HEAD,
    IDLE,
    MAX_BODY,
    MAX_HEAD,
    MAX_HEADERS,
    MAX_PIPELINED,
    MAX_TARGET,
    MAX_UPLOAD,
    STALLED,
    ConnectionLimits,
    PhaseLimit,
)
from tests.patience import PATIENCE
from tests.server import metrics_reader
from tests.server.port_fixture import REQUEST, RecordingApp, open_port, soon
from tests.service_fixture import ServiceFixture

#: Nothing ends by itself during a test.
PATIENT = ConnectionLimits()
AT_ONCE = 0.5


def counted(reason: str) -> float:
    return metrics_reader.counted("guichet_closed_connections_total", reason=reason)


def hurried(name: str, limit: PhaseLimit) -> ConnectionLimits:
    """Only this phase is short."""
    phase: dict[str, Any] = {name: structs.replace(limit, seconds=AT_ONCE)}
    return structs.replace(PATIENT, **phase)


async def test_an_endless_header_is_refused_before_it_is_kept() -> None:
    before = counted("head_size")
    async with open_port(PATIENT) as port:
        client = await port.client(data=b"GET / HTTP/1.1\r\nX-Endless: " + b"a" * (MAX_HEAD + 1))
        assert await client.refusal() == (431, "invalid_request")
        assert port.app.calls == 0
    assert counted("head_size") == before + 1


async def test_a_head_in_one_packet_is_measured_too() -> None:
    async with open_port(PATIENT) as port:
        client = await port.client(data=b"GET / HTTP/1.1\r\nX: " + b"a" * 3 * MAX_HEAD + b"\r\n\r\n")
        assert await client.refusal() == (431, "invalid_request")


async def test_a_head_of_many_small_headers_is_refused() -> None:
    async with open_port(PATIENT) as port:
        for ending in (b"", b"\r\n"):
            client = await port.client(data=b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * (MAX_HEADERS + 2) + ending)
            assert await client.refusal() == (431, "invalid_request")
        full = await port.client()
        assert await full.ask(b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * MAX_HEADERS + b"\r\n") == (200, b"ok")


@pytest.mark.parametrize("ending", [b"", b" HTTP/1.1\r\nHost: localhost\r\n\r\n"])
async def test_a_long_request_line_is_refused(ending: bytes) -> None:
    async with open_port(PATIENT) as port:
        client = await port.client(data=b"GET /" + b"a" * MAX_TARGET + ending)
        assert await client.refusal() == (414, "invalid_request")
        assert port.app.calls == 0


async def test_what_is_not_http_is_refused_in_the_envelope() -> None:
    async with open_port(PATIENT) as port:
        client = await port.client(data=b"\x16\x03\x01 is not HTTP\r\n\r\n")
        assert await client.refusal() == (400, "invalid_request")


@pytest.mark.parametrize("chunk", [b"1\r\nx\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n"])
async def test_a_chunked_body_without_end_is_refused(chunk: bytes) -> None:
    before = counted("body_size")
    async with open_port(PATIENT) as port:
        client = await port.client(data=b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.send(chunk * (2 * MAX_BODY // len(chunk)))
        assert (await client.response())[0] == 413
        await soon(lambda: port.app.disconnects == 1)
        assert port.app.bodies == []
    assert counted("body_size") == before + 1


async def test_what_follows_an_early_response_is_not_received_for_ever() -> None:
    """The application answered without reading, as a 401 does: its answer is the only one."""
    before = counted("body_size")
    app = RecordingApp(reads=False)
    app.gate.set()
    async with open_port(PATIENT, app) as port:
        client = await port.client(data=b"POST / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n")
        assert await client.response() == (200, b"ok")
        client.send(b"x" * 2 * MAX_BODY)
        assert await client.reader.read() == b""
    assert counted("body_size") == before + 1


async def test_a_body_over_the_limit_of_the_contract_gets_its_422(sqlite_service: ServiceFixture) -> None:
    """The limit of the port is far behind it (docs/contract.md, "Limits"; D6)."""
    merchant = await sqlite_service.merchant()
    app = application(sqlite_service.opened, None)
    head = f"POST /v1/payments HTTP/1.1\r\nAuthorization: Bearer {merchant.keys['test']}\r\n"
    async with open_port(PATIENT, app) as port:
        client = await port.client(data=f"{head}Content-Length: 900000\r\n\r\n".encode() + b"x" * 900_000)
        status, body = await client.response()
        assert (status, body["error"]["code"]) == (422, "invalid_request")


async def test_two_addresses_take_a_file_and_nothing_larger() -> None:
    """The uploads of the back office, and no address that only looks like one."""
    path, head = "/admin/merchants/7/documents", "POST {} HTTP/1.1\r\nContent-Length: {}\r\n\r\n"
    statement = "/admin/reconciliation/statement"
    for target, size, status in (
        (path, 5 * 1024 * 1024, 200),
        (f"{statement}?lang=en", 5 * 1024 * 1024, 200),
        (statement, MAX_UPLOAD + 64 * 1024, 413),
        (f"{statement}/1", 2 * MAX_BODY, 413),
        (f"{path}?lang=en", 5 * 1024 * 1024, 200),
        (path, MAX_UPLOAD + 64 * 1024, 413),
        (f"{path}/1", 2 * MAX_BODY, 413),
        ("/console/documents", 2 * MAX_BODY, 413),
        (f"/v1/payments?{path}", 2 * MAX_BODY, 413),
    ):
        app = RecordingApp()
        app.gate.set()
        async with open_port(PATIENT, app) as port:
            client = await port.client(data=head.format(target, size).encode() + b"x" * size)
            assert (await client.response())[0] == status, target


async def test_an_upload_that_trickles_in_has_a_time_of_its_own() -> None:
    app = RecordingApp()
    app.gate.set()
    async with open_port(structs.replace(hurried("body", BODY), upload=PhaseLimit(PATIENCE, 2)), app) as port:
        request = b"POST /admin/merchants/7/documents HTTP/1.1\r\nContent-Length: 9\r\n\r\n"
        clients = [await port.client(data=request) for _ in range(3)]
        assert await clients[0].is_closed(), "more than may be in this phase"
        await asyncio.sleep(AT_ONCE * 2)
        clients[1].send(b"x" * 9)
        assert await clients[1].response() == (200, b"ok")


async def test_a_silent_connection_is_closed() -> None:
    before = counted("head_time")
    async with open_port(hurried("head", HEAD)) as port:
        client = await port.client()
        assert await client.reader.read() == b""
    assert counted("head_time") == before + 1


async def test_a_head_that_trickles_in_is_ended_in_time() -> None:
    async with open_port(hurried("head", HEAD)) as port:
        client = await port.client(data=b"GET / HTTP/1.1\r\nX-Slow: ")

        async def trickle() -> None:
            while True:
                client.send(b"a")
                await asyncio.sleep(AT_ONCE / 10)

        trickling = asyncio.create_task(trickle())
        assert await client.refusal() == (408, "invalid_request")
        trickling.cancel()


async def test_the_second_head_of_a_kept_connection_has_the_same_time() -> None:
    async with open_port(hurried("head", HEAD)) as port:
        client = await port.client()
        assert (await client.ask())[0] == 200
        client.send(b"GET / HTTP/1.1\r\n")
        assert await client.refusal() == (408, "invalid_request")


async def test_a_body_that_trickles_in_is_ended_in_time() -> None:
    before = counted("body_time")
    async with open_port(hurried("body", BODY)) as port:
        client = await port.client(data=b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nx")
        assert await client.refusal() == (408, "invalid_request")
        assert port.app.disconnects == 1
    assert counted("body_time") == before + 1


async def test_a_slow_request_within_the_limits_is_answered() -> None:
    async with open_port(PATIENT) as port:
        client = await port.client()
        for piece in (b"POST / HT", b"TP/1.1\r\nContent-", b"Length: 4\r\n\r", b"\nab", b"cd"):
            client.send(piece)
            await asyncio.sleep(0.01)
        assert await client.response() == (200, b"ok")
        assert port.app.bodies == [b"abcd"]
        assert (await client.ask())[0] == 200


async def test_an_idle_connection_is_closed() -> None:
    async with open_port(hurried("idle", IDLE)) as port:
        client = await port.client()
        assert (await client.ask())[0] == 200
        assert await client.reader.read() == b""


async def test_a_request_that_is_being_answered_has_no_limit_of_time() -> None:
    every: dict[str, Any] = {name: PhaseLimit(AT_ONCE, 10) for name in ("head", "body", "idle")}
    app = RecordingApp()
    async with open_port(structs.replace(PATIENT, **every), app) as port:
        client = await port.client(data=REQUEST)
        await asyncio.sleep(AT_ONCE * 2)
        app.gate.set()
        assert await client.response() == (200, b"ok")


async def test_pipelined_requests_are_answered_in_order_up_to_a_bound() -> None:
    async with open_port(PATIENT) as port:
        client = await port.client(data=REQUEST * MAX_PIPELINED)
        assert [await client.response() for _ in range(MAX_PIPELINED)] == [(200, b"ok")] * MAX_PIPELINED
        before = counted("pipelined")
        client.send(REQUEST * 5_000)
        assert await client.is_closed()
        assert port.app.calls <= MAX_PIPELINED + 1
    assert counted("pipelined") == before + 1


async def test_a_client_that_does_not_read_is_ended() -> None:
    before = counted("stalled")
    app = RecordingApp(content=b"x" * 20_000_000)
    app.gate.set()
    async with open_port(hurried("stalled", STALLED), app) as port:
        client = await port.client()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.send(REQUEST * 2)
        await soon(lambda: not port.server.server_state.connections)
    assert counted("stalled") == before + 1
