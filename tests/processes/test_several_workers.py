"""`guichet serve --workers N`: one port, several processes, one that dies is started again, all of them stop."""

import asyncio
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

from guichet.settings import Settings
from tests.cli.conftest import Cli, clean_environ
from tests.peers import Peer
from tests.processes.fleet import Fleet, Member, Merchant, Receiver, fleet_of, new_merchant, soon, until


@pytest.fixture
def fleet(new_database: Callable[[], Settings]) -> Iterator[Fleet]:
    with fleet_of(new_database(), GUICHET_RATE_LIMIT="0") as opened:
        yield opened


def pids(server: Member) -> list[int]:
    return [int(pid) for pid in re.findall(r"process\.started.*pid=(\d+)", re.sub(r"\x1b\[\d*m", "", server.log))]


def alive(pid: int) -> bool:
    """Not when it is gone, nor when it only waits to be buried."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def open_several(fleet: Fleet, count: int = 2) -> Member:
    server = fleet.server("--workers", str(count))
    fleet.ready(server)
    until(lambda: len(pids(server)) == count, 10, server)
    return server


def test_the_embedded_database_refuses(tmp_path: Path) -> None:
    newcomer = Cli(clean_environ(tmp_path / "var"), tmp_path)
    assert newcomer("serve", "--workers", "2").refusal == (
        "The embedded database has one server process. --workers needs PostgreSQL: set GUICHET_DATABASE_URL."
    )


async def test_a_process_that_dies_is_started_again_and_nobody_is_turned_away(fleet: Fleet) -> None:
    server = await asyncio.to_thread(open_several, fleet)
    receiver = Receiver()
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector) as client, Peer(receiver) as peer:
        merchant = Merchant(client, await new_merchant(fleet.settings))
        await merchant.receive_at(server, peer.url("127.0.0.1"))
        os.kill(pids(server)[0], signal.SIGKILL)
        answers = [await merchant.pay(server, f"after-{number}") for number in range(20)]
        assert {status for status, _ in answers} == {201}
        await soon(lambda: len(pids(server)) == 3)
        assert "process.died" in server.log
        await soon(lambda: len(receiver.told) == 20)
    assert set(receiver.most.values()) == {1}
    assert await asyncio.to_thread(server.stop) < 3
    assert not any(alive(pid) for pid in pids(server))


def test_no_process_survives_its_parent(fleet: Fleet) -> None:
    server = open_several(fleet)
    server.kill()
    until(lambda: not any(alive(pid) for pid in pids(server)), 5, server)


def test_one_ctrl_c_stops_everybody_once(fleet: Fleet) -> None:
    server = open_several(fleet)
    assert server.stop(signal.SIGINT) < 3
    assert not any(alive(pid) for pid in pids(server))
    assert "process.killed" not in server.log
    assert "process.died" not in server.log
