"""A service on SQLite that is killed and started again."""

import asyncio
import os
import re
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest

from guichet.clock import SystemClock, later
from guichet.db.queues.work_queue import LEASE_DURATION
from guichet.settings import Settings
from tests.fakes.http_server import ScriptedServer
from tests.processes.fleet import Fleet, Merchant, Receiver, ServiceProcess, fleet_of, new_merchant, soon


@pytest.fixture
def fleet(sqlite_settings: Settings) -> Iterator[Fleet]:
    with fleet_of(sqlite_settings) as opened:
        yield opened


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


def started(fleet: Fleet, *options: str) -> ServiceProcess:
    server = fleet.server(*options)
    fleet.ready(server)
    return server


def _is_dead(pid: int) -> bool:
    """Also if nobody has asked for its end yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["one process", "two processes"])
async def test_what_was_being_sent_is_sent_again_at_the_start(
    fleet: Fleet, client: aiohttp.ClientSession, options: tuple[str, ...]
) -> None:
    """And not half a minute later, at the end of its lease."""
    receiver = Receiver(hanging=asyncio.Event())
    async with ScriptedServer(receiver) as merchants_server:
        server = await asyncio.to_thread(started, fleet, *options)
        merchant = Merchant(client, await new_merchant(fleet.settings))
        await merchant.receive_at(server, merchants_server.url("127.0.0.1"))
        await merchant.pay(server, "order-1")
        await soon(lambda: receiver.attempts.total() == 1)
        server.kill()
        pids = [int(pid) for pid in re.findall(r"process\.started.*pid=(\d+)", server.log)]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        await soon(lambda: all(map(_is_dead, pids)))  # What still lives keeps its leases.
        receiver.hanging = None
        lease_end = later(SystemClock().now(), LEASE_DURATION)
        with closing(sqlite3.connect(fleet.settings.sqlite_path)) as db, db:  # As if it had been claimed just now.
            db.execute("UPDATE webhook_deliveries SET next_attempt_at = ?", (lease_end,))
        server = await asyncio.to_thread(started, fleet, *options)
        await soon(lambda: receiver.attempts.total() == 2)
        assert SystemClock().now() < lease_end
        status, listed = await merchant.call(server, "GET", "/webhooks/deliveries")
        await soon(lambda: receiver.open.total() <= 1)
    assert status == 200
    assert [delivery["attempts"] for delivery in listed["data"]] == [2]
