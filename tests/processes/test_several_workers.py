"""`guichet serve --workers N`: one port, several processes, one that dies is started again, all of them stop."""

import asyncio
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

from guichet.bootstrap import service
from guichet.clock import SystemClock
from guichet.db.engine import require
from guichet.settings import Settings
from tests.cli.child import WORKERS_START_PYTHON
from tests.fakes.http_server import ScriptedServer
from tests.invariants import check_books
from tests.patience import PATIENCE
from tests.processes.conftest import Postgres
from tests.processes.fleet import (
    Fleet,
    Merchant,
    Receiver,
    ServiceProcess,
    fleet_of,
    half_a_minute_passes,
    new_merchant,
    soon,
    until,
)


@pytest.fixture
def fleet(sqlite_settings: Settings) -> Iterator[Fleet]:
    with fleet_of(sqlite_settings, GUICHET_RATE_LIMIT="0") as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgresql"])
def any_fleet(
    request: pytest.FixtureRequest, sqlite_settings: Settings, new_database: Callable[[], Settings]
) -> Iterator[Fleet]:
    """On SQLite and on PostgreSQL."""
    settings = new_database() if request.param == "postgresql" else sqlite_settings
    with fleet_of(settings, GUICHET_RATE_LIMIT="0") as opened:
        yield opened


def pids(server: ServiceProcess) -> list[int]:
    return [int(pid) for pid in re.findall(r"process\.started.*pid=(\d+)", re.sub(r"\x1b\[\d*m", "", server.log))]


def alive(pid: int) -> bool:
    """Not when it is gone, nor when it only waits to be buried."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def connections(server: ServiceProcess) -> list[int]:
    """How many callers of its port each of its processes serves."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    port = f":{require(server.port):04X}"
    served = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(port) and row[3] == "01"}
    folders = [Path(f"/proc/{pid}/fd") for pid in pids(server)]
    return [sum(str(link.readlink()) in served for link in each.iterdir() if link.is_symlink()) for each in folders]


def connects(server: ServiceProcess) -> bool:
    with socket.socket() as caller:
        caller.settimeout(PATIENCE)
        return caller.connect_ex(("127.0.0.1", require(server.port))) == 0


def open_several(fleet: Fleet, count: int = 2, *options: str) -> ServiceProcess:
    server = fleet.server("--workers", str(count), *options)
    fleet.ready(server)
    until(lambda: len(pids(server)) == count, server)
    return server


async def test_a_dead_process_is_restarted_without_refused_connections(fleet: Fleet) -> None:
    server = await asyncio.to_thread(open_several, fleet)
    receiver = Receiver()
    pool = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=pool) as client, ScriptedServer(receiver) as scripted_server:
        merchant = Merchant(client, await new_merchant(fleet.settings))
        await merchant.receive_at(server, scripted_server.url("127.0.0.1"))
        os.kill(pids(server)[0], signal.SIGKILL)
        answers = [await merchant.pay(server, f"after-{number}") for number in range(20)]
        assert {status for status, _ in answers} == {201}
        await soon(lambda: len(pids(server)) == 3)
        assert "process.died" in server.log
        await soon(lambda: len(receiver.delivery_ids) == 20)
    assert set(receiver.most.values()) == {1}
    await asyncio.to_thread(server.stop)
    assert not any(alive(pid) for pid in pids(server))


async def test_connections_are_refused_while_no_process_can_start(own: Settings, postgres: Postgres) -> None:
    """A proxy asks another server then; in the queue of the socket they would wait for an answer."""
    with fleet_of(own) as fleet:
        server = await asyncio.to_thread(open_several, fleet)
        await soon(lambda: server.log.count("process.serving") == 2)
        for pid in pids(server):
            os.kill(pid, signal.SIGKILL)
        assert await asyncio.to_thread(connects, server), "one that served is started again: its callers wait"
        await asyncio.to_thread(fleet.ready, server)
        await soon(lambda: server.log.count("process.serving") == 4)
        await postgres.stop()
        for pid in pids(server)[2:]:
            os.kill(pid, signal.SIGKILL)
        await soon(lambda: server.says("process.none_serves"))
        assert not await asyncio.to_thread(connects, server)
        await soon(lambda: server.log.count("process.started") > 6)
        assert not await asyncio.to_thread(connects, server)
        await postgres.start()
        await asyncio.to_thread(fleet.ready, server)


async def test_kept_connections_are_spread_over_the_processes(fleet: Fleet) -> None:
    """As a proxy keeps them: also when they come one by one, and after some have gone."""
    server = await asyncio.to_thread(open_several, fleet, 3)
    await soon(lambda: server.log.count("process.serving") == 3)

    opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def connect(number: int) -> None:
        opened.extend(await asyncio.gather(*(asyncio.open_connection("127.0.0.1", server.port) for _ in range(number))))

    def kept() -> int:
        """Those that sent no request for ten seconds are closed, on a busy machine before the others come."""
        for each in [each for each in opened if each[0].at_eof()]:
            each[1].close()
            opened.remove(each)
        return len(opened)

    async def are_spread_soon() -> bool:
        """On a busy machine a process may miss its turns; the connections that come after that must make up for it."""
        for _ in range(60):
            await soon(lambda: sum(connections(server)) == kept())
            if min(connections(server)) >= len(opened) / 6:
                return True
            await connect(1)
        return False

    await connect(30)
    for _ in range(15):
        await connect(1)
        await asyncio.sleep(0.005)
    assert await are_spread_soon(), connections(server)
    for _, writer in opened[::2]:
        writer.close()
    del opened[::2]
    await soon(lambda: sum(connections(server)) == kept())
    await connect(23)
    assert await are_spread_soon(), connections(server)
    for _, writer in opened:
        writer.close()


async def test_writes_of_several_processes_survive_the_death_of_one(any_fleet: Fleet) -> None:
    """Each order comes twice, to whichever process: one payment, one credit, one event; what was answered is there."""
    server = await asyncio.to_thread(open_several, any_fleet, 3)
    receiver = Receiver()
    orders = [f"order-{number}" for number in range(60)]
    pool = aiohttp.TCPConnector(force_close=True, limit=24)
    async with aiohttp.ClientSession(connector=pool) as client, ScriptedServer(receiver) as scripted_server:
        merchant = Merchant(client, await new_merchant(any_fleet.settings))
        await merchant.receive_at(server, scripted_server.url("127.0.0.1"))

        async def order(external_id: str) -> str:
            while True:  # As a merchant does whose connection broke: the same again.
                try:
                    status, body = await merchant.pay(server, external_id)
                except aiohttp.ClientError:
                    continue
                assert status == 201, body
                return str(body["data"]["reference"])

        paying = asyncio.gather(*(order(external_id) for external_id in orders * 2))
        await asyncio.sleep(0.1)
        os.kill(pids(server)[1], signal.SIGKILL)
        killed_at = SystemClock().now()
        references = await paying
        assert references[: len(orders)] == references[len(orders) :]
        assert len(set(references)) == len(orders)
        # What the dead process had claimed comes due again with its leases, the living have long sent what they had.
        came = -1
        while came < len(receiver.delivery_ids) < len(orders):
            came = len(receiver.delivery_ids)
            await asyncio.sleep(1)
        await half_a_minute_passes(any_fleet.settings, claimed_before=killed_at)
        await soon(lambda: len(receiver.delivery_ids) == len(orders))
        assert await merchant.balance(server) == 5000 * len(orders)
    assert set(receiver.most.values()) == {1}
    assert {order: len(ids) for order, ids in receiver.delivery_ids.items()} == dict.fromkeys(orders, 1)
    await asyncio.to_thread(server.stop)
    async with service(any_fleet.settings) as opened:
        await check_books(opened.ctx.db)


def test_child_processes_end_with_their_parent(sqlite_settings: Settings) -> None:
    """Those that Python starts, as it does outside of tests."""
    with fleet_of(sqlite_settings, **{WORKERS_START_PYTHON: "yes"}) as fleet:
        server = open_several(fleet)
        until(lambda: server.log.count("process.serving") == 2, server)
        assert all(b"guichet\0serve" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids(server))
        server.kill()
        until(lambda: not any(alive(pid) for pid in pids(server)), server)


def test_one_ctrl_c_stops_every_process_once(fleet: Fleet) -> None:
    # Who has not ended after the grace is killed.
    server = open_several(fleet, 2, "--grace", str(int(PATIENCE)))
    until(lambda: server.log.count("process.serving") == 2, server)
    server.stop(signal.SIGINT)
    assert not any(alive(pid) for pid in pids(server))
    assert "process.killed" not in server.log
    assert "process.died" not in server.log
