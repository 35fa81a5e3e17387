"""PostgreSQL goes away and comes back under load: a wait or a clear error, nothing wrong, nothing lost, no restart."""

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from operator import gt
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import asyncpg
import pytest
from sqlalchemy import func, insert, select

from guichet.bootstrap import service
from guichet.db.errors import NoPrimary, StorageUnavailable
from guichet.db.postgres import pool
from guichet.db.postgres.database import PostgresDatabase
from guichet.db.postgres.pool import READ_CONNECTIONS, RECONNECT_TIMEOUT, STATEMENT_TIMEOUT
from guichet.db.tables import merchants
from guichet.settings import Settings
from guichet.worker.wakeups import wakeups
from tests.fakes.http_server import ScriptedServer
from tests.invariants import check_books
from tests.patience import PATIENCE
from tests.processes.bouncer import pgbouncer
from tests.processes.conftest import Postgres
from tests.processes.fleet import (
    Merchant,
    Receiver,
    ServiceProcess,
    execute,
    fleet_of,
    half_a_minute_passes,
    new_merchant,
    soon,
)

TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
ADD = insert(merchants).values(name="M", status="active", currency="XOF", created_at=1)
COUNT = select(merchants.c.id)
SLOW = select(func.pg_sleep(0.005))
CLIENTS = 6


@pytest.fixture
async def db(own: Settings) -> AsyncIterator[PostgresDatabase]:
    database = PostgresDatabase(own.database_url)
    await database.open()
    yield database
    await database.close()


async def test_lost_connections_are_replaced_without_errors(own: Settings, db: PostgresDatabase) -> None:
    """Reads are repeated, transactions begun again, and writes that were never sent are sent again."""
    before = len(await db.all(COUNT))
    killing = True

    reads = [0] * READ_CONNECTIONS

    async def read(reader: int) -> None:
        while killing:
            await db.all(SLOW)
            reads[reader] += 1

    readers = [asyncio.create_task(read(reader)) for reader in range(READ_CONNECTIONS)]
    for _ in range(7):
        before_kill = list(reads)
        await execute(own, TERMINATE)
        await soon(lambda before=before_kill: all(map(gt, reads, before)))  # type: ignore[misc]
    killing = False
    await asyncio.gather(*readers)
    for _ in range(3):
        await execute(own, TERMINATE)
        async with db.transaction() as tx:
            await tx.write(ADD)
    assert len(await db.all(COUNT)) == before + 3


async def test_a_transaction_that_lost_its_connection_leaves_nothing(own: Settings, db: PostgresDatabase) -> None:
    before = len(await db.all(COUNT))
    with pytest.raises(StorageUnavailable):  # noqa: PT012 - lost in the middle
        async with db.transaction() as tx:
            await tx.write(ADD)
            await execute(own, TERMINATE)
            await tx.write(ADD)
    assert len(await db.all(COUNT)) == before


async def test_connections_to_a_demoted_primary_are_dropped(own: Settings, db: PostgresDatabase) -> None:
    """Connections to it stay open and refuse every write: they must not stay in the pool."""
    await execute(own, "ALTER DATABASE postgres SET default_transaction_read_only = on")
    await execute(own, TERMINATE)
    try:
        with pytest.raises(StorageUnavailable):
            await db.write(ADD)
    finally:
        await execute(own, "BEGIN READ WRITE; ALTER DATABASE postgres RESET default_transaction_read_only; COMMIT")
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(StorageUnavailable):
                await db.write(ADD)
                break


async def test_a_restart_is_waited_for_and_a_longer_outage_fails_fast(
    postgres: Postgres, db: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    await db.write(ADD)
    await postgres.stop()
    with monkeypatch.context() as patience:
        patience.setattr(pool, "RECONNECT_TIMEOUT", PATIENCE)
        waiting = [asyncio.create_task(db.write(ADD)) for _ in range(40)]
        await asyncio.sleep(0.5)
        await postgres.start()
        await asyncio.gather(*waiting)
    await postgres.stop()
    with pytest.raises(StorageUnavailable):
        await db.write(ADD)
    began = time.monotonic()
    for _ in range(10):
        outcomes = await asyncio.gather(*(db.write(ADD) for _ in range(4)), return_exceptions=True)
        assert {type(each) for each in outcomes} <= {NoPrimary}
    assert time.monotonic() - began < 5 * RECONNECT_TIMEOUT, "later requests fail at once"
    await postgres.start()
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(StorageUnavailable):
                await db.write(ADD)
                break
            await asyncio.sleep(0.05)


@dataclass
class Load:
    """Clients that repeat a payment until it is answered, and read what was answered."""

    merchant: Merchant
    server: ServiceProcess
    stopping: bool = False
    seen: Counter[int] = field(default_factory=Counter)
    answered: dict[str, str] = field(default_factory=dict)

    async def client(self, number: int) -> None:
        order = 0
        while not self.stopping:
            external_id = f"{number}-{order}"
            status, body = await self.merchant.pay(self.server, external_id)
            self._note(status, body)
            if status != 201:
                await asyncio.sleep(0.05)
                continue
            self.answered[external_id] = body["data"]["reference"]
            status, body = await self.merchant.call(self.server, "GET", f"/payments/{external_id}")
            self._note(status, body)
            if status == 200:
                assert body["data"]["reference"] == self.answered[external_id]
            order += 1
            await asyncio.sleep(0.02)

    def _note(self, status: int, body: Any) -> None:
        self.seen[status] += 1
        assert status in {200, 201, 500}, body
        if status == 500:
            assert (body["success"], body["error"]["code"]) == (False, "server_error")


async def test_no_payment_is_lost_in_a_restart_under_load(own: Settings, postgres: Postgres) -> None:
    key = await new_merchant(own)
    receiver = Receiver()
    with fleet_of(own, GUICHET_RATE_LIMIT="0") as fleet:
        server, worker = fleet.server("--no-worker"), fleet.worker()
        await asyncio.to_thread(fleet.ready, server, worker)
        async with aiohttp.ClientSession() as client, ScriptedServer(receiver) as scripted_server:
            load = Load(Merchant(client, key), server)
            await load.merchant.receive_at(server, scripted_server.url("127.0.0.1"))
            running = [asyncio.create_task(load.client(number)) for number in range(CLIENTS)]
            for _ in range(4):
                await asyncio.sleep(0.4)
                await execute(own, TERMINATE)
            await asyncio.sleep(0.4)
            for seconds in (0.5, RECONNECT_TIMEOUT + 1.5):
                before = load.seen[201]
                await postgres.stop()
                await asyncio.sleep(seconds)
                await postgres.start()
                await soon(lambda before=before: load.seen[201] > before + CLIENTS)  # type: ignore[misc]
            assert load.seen[500] > 0, "the outage was too short to prove anything"
            load.stopping = True
            await asyncio.gather(*running)
            await half_a_minute_passes(own)
            await soon(lambda: receiver.delivery_ids.keys() >= load.answered.keys())
            assert {len(ids) for ids in receiver.delivery_ids.values()} == {1}
            _, listed = await load.merchant.call(server, "GET", "/payments?per_page=1")
            assert await load.merchant.balance(server) == 5000 * listed["meta"]["total"]
        assert (server.process.poll(), worker.process.poll()) == (None, None)
        assert worker.log.count("wakeups.listening") >= 3
        assert not server.says("request.crashed"), server.log
        assert not worker.says("worker.failed"), worker.log
    print(f"\nanswers while the database came and went: {dict(load.seen)}")  # noqa: T201
    assert len(load.answered) <= listed["meta"]["total"] <= len(load.answered) + CLIENTS
    async with service(own) as opened:
        await check_books(opened.ctx.db, events_queued=False)


async def test_announcements_reach_every_loop_after_a_lost_connection(own: Settings) -> None:
    """The connection that listens is killed: it comes back by itself, and every loop looks for what it missed."""
    async with (
        service(own) as server,
        service(own) as worker,
        wakeups(server.ctx, working=False),
        wakeups(worker.ctx, working=True),
    ):
        woken = worker.ctx.wakeups
        for topic in ("polling", "refunds", "deliveries"):
            await soon(lambda topic=topic: getattr(woken, topic).is_set())  # type: ignore[misc]
            getattr(woken, topic).clear()
        server.ctx.wakeups.refunds.set()
        await soon(woken.refunds.is_set)
        assert not woken.polling.is_set()
        woken.refunds.clear()
        await execute(own, TERMINATE)
        await soon(lambda: woken.polling.is_set() and woken.refunds.is_set() and woken.deliveries.is_set())
        woken.deliveries.clear()
        server.ctx.wakeups.deliveries.set()
        await soon(woken.deliveries.is_set)


async def test_a_listener_hears_announcements_only_at_a_direct_address(own: Settings) -> None:
    with pytest.raises(StorageUnavailable):
        await PostgresDatabase("postgresql://nobody@127.0.0.1:1/none").listen(lambda: None, lambda _: None)
    await PostgresDatabase(own.database_url, bouncer=True).listen(lambda: None, lambda _: None)
    heard: list[str] = []
    connected = asyncio.Event()
    listener = PostgresDatabase("unused", bouncer=True, listen_url=own.database_url)
    listening = asyncio.create_task(listener.listen(connected.set, heard.append))
    await connected.wait()
    connection = await asyncpg.connect(own.database_url)
    await connection.execute("NOTIFY guichet, 'refunds'")
    await soon(lambda: heard == ["refunds"])
    await connection.close()
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_connections_to_a_machine_that_fell_silent_are_given_up_within_seconds(own: Settings) -> None:
    """Without a word from the network, the kernel must end them: nobody else would, before a statement's time limit."""
    with pgbouncer(own.database_url) as url:
        opened = PostgresDatabase(url, bouncer=True)
        await opened.open()
        (connected,) = _sockets_to(int(urlsplit(url).port or 0))
        with connected:
            assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
            probes = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT)
            interval = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL)
            idle = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            assert idle + probes * interval < STATEMENT_TIMEOUT / 2
        await opened.close()


def _sockets_to(port: int) -> list[socket.socket]:
    """Copies of this process's sockets that are connected to a local port."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            copied = socket.socket(fileno=os.dup(int(entry.name)))
            if _leads_to(copied, port):
                found.append(copied)
            else:
                copied.close()
    return found


def _leads_to(connected: socket.socket, port: int) -> bool:
    try:
        return connected.family == socket.AF_INET and bool(connected.getpeername()[1] == port)
    except OSError:  # It listens.
        return False
