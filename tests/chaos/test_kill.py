"""`kill -9` of the real command under load, then a restart: acknowledged payments exist once, with their events."""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from sqlalchemy import update

from guichet.bootstrap import create_merchant, service
from guichet.clock import SECOND
from guichet.db.tables import payments, refunds, webhook_deliveries
from guichet.settings import Settings
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import ReceivedRequest, ScriptedServer, answers
from tests.invariants import check_books
from tests.ports import free_port

OK = answers(b"HTTP/1.1 204 No Content\r\n\r\n")
PAYMENTS = 200


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path_factory.mktemp("ca"))


@dataclass
class Server:
    """A process of `guichet serve`."""

    settings: Settings
    port: int
    process: asyncio.subprocess.Process

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            await self.process.wait()


async def start(settings: Settings) -> Server:
    port = free_port()
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GUICHET_")},
        "GUICHET_HOME": str(settings.home),
        "GUICHET_DATABASE_URL": settings.database_url,
        "GUICHET_SECRET_KEYS": ",".join(settings.secret_keys),
        "GUICHET_PROFILE": "development",
        "GUICHET_RATE_LIMIT": "0",
        "GUICHET_LOG_LEVEL": "error",
        "GUICHET_PUBLIC_URL": f"http://127.0.0.1:{port}",
    }
    with (settings.home / "server.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "guichet", "serve", "--port", str(port), env=environ, stdout=log, stderr=log
        )
    server = Server(settings, port, process)
    async with asyncio.timeout(20), aiohttp.ClientSession() as client:
        while True:
            assert process.returncode is None, (settings.home / "server.log").read_text()
            with suppress(aiohttp.ClientError):
                async with client.get(f"http://127.0.0.1:{port}/readyz") as answer:
                    if answer.status == 200:
                        return server
            await asyncio.sleep(0.05)


@asynccontextmanager
async def calling(key: str) -> AsyncIterator[aiohttp.ClientSession]:
    pool = aiohttp.TCPConnector(limit=32, force_close=False)
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(connector=pool, headers=headers) as client:
        yield client


async def merchant(settings: Settings) -> str:
    """The test key of a new merchant."""
    async with service(settings) as opened:
        _, keys = await create_merchant(opened.ctx, "M")
    return keys["test"]


async def create(client: aiohttp.ClientSession, server: Server, number: int, answered: dict[str, str]) -> None:
    body = {"amount": 5000, "operator": "mtn", "phone_number": "22997000000", "external_id": f"e{number}"}
    with suppress(aiohttp.ClientError):
        async with client.post(f"{server.url}/payments", json=body) as answer:
            created = (await answer.json())["data"]
            assert answer.status == 201
            answered[created["external_id"]] = created["reference"]


async def everything(client: aiohttp.ClientSession, url: str) -> list[Any]:
    found: list[Any] = []
    for page in (1, 2, 3, 4, 5):
        async with client.get(f"{url}?per_page=100&page={page}") as answer:
            found += (await answer.json())["data"]
    return found


def delivery_ids_by_payment(receiver: ScriptedServer) -> dict[str, set[str]]:
    """Delivery ids by the external_id of their payment."""
    by_payment: dict[str, set[str]] = {}
    for request in receiver.received:
        body = json.loads(request.body)
        assert body["event"] == "payment.succeeded"
        by_payment.setdefault(body["data"]["external_id"], set()).add(body["id"])
    return by_payment


async def test_acknowledged_payments_survive_a_kill_and_are_notified(
    settings: Settings, authority: CertificateAuthority
) -> None:
    key = await merchant(settings)
    answered: dict[str, str] = {}
    async with ScriptedServer(OK, authority.server("localhost")) as receiver, calling(key) as client:
        server = await start(settings)
        async with client.put(f"{server.url}/webhooks/endpoint", json={"url": receiver.url()}) as answer:
            assert answer.status == 200
        creating = [asyncio.create_task(create(client, server, n, answered)) for n in range(PAYMENTS)]
        while len(answered) < PAYMENTS // 3:
            await asyncio.sleep(0)
        await server.kill()
        await asyncio.gather(*creating)
        await half_a_minute_passes(settings)
        assert len(answered) < PAYMENTS, "the kill came too late to prove anything"

        server = await start(settings)
        try:
            rows = await everything(client, f"{server.url}/payments")
            stored = Counter(row["external_id"] for row in rows)
            assert set(stored.values()) <= {1}
            assert {row["external_id"]: row["reference"] for row in rows if row["external_id"] in answered} == answered
            # A stored payment that was never answered is notified as well.
            async with asyncio.timeout(20):
                while set(delivery_ids_by_payment(receiver)) != set(stored):
                    await asyncio.sleep(0.1)
        finally:
            await server.stop()
        assert all(len(ids) == 1 for ids in delivery_ids_by_payment(receiver).values()), (
            "a repeated notification keeps its id"
        )
    await audited(settings)


async def test_deliveries_cut_off_by_a_kill_are_sent_again(settings: Settings, authority: CertificateAuthority) -> None:
    """The receiver reads and hangs while the server is killed; afterwards it answers."""
    recovered = asyncio.Event()

    async def hangs_at_first(writer: asyncio.StreamWriter, request: ReceivedRequest) -> None:
        if not recovered.is_set():
            await asyncio.sleep(60)
        await OK(writer, request)

    key = await merchant(settings)
    answered: dict[str, str] = {}
    async with ScriptedServer(hangs_at_first, authority.server("localhost")) as receiver, calling(key) as client:
        server = await start(settings)
        async with client.put(f"{server.url}/webhooks/endpoint", json={"url": receiver.url()}) as answer:
            assert answer.status == 200
        await asyncio.gather(*(create(client, server, n, answered) for n in range(20)))
        async with asyncio.timeout(10):
            while len(receiver.received) < 20:
                await asyncio.sleep(0.02)
        await server.kill()
        recovered.set()
        await half_a_minute_passes(settings)
        server = await start(settings)
        try:
            async with asyncio.timeout(20):
                while len(receiver.received) < 40:
                    await asyncio.sleep(0.1)
                log: list[Any] = []
                while Counter(each["status"] for each in log) != {"success": 20}:
                    log = await everything(client, f"{server.url}/webhooks/deliveries")
                    await asyncio.sleep(0.05)
        finally:
            await server.stop()
        assert {each["attempts"] for each in log} == {2}, "the attempt that was cut off counts"
        assert len(receiver.received) == 40
        assert all(len(ids) == 1 for ids in delivery_ids_by_payment(receiver).values())
        assert len({request.body for request in receiver.received}) == 20
    await audited(settings)


async def half_a_minute_passes(settings: Settings) -> None:
    """While no process runs: moves the leases of the killed ones back, so that the test need not wait for them."""
    async with service(settings) as opened, opened.ctx.db.transaction() as tx:
        for due in (payments.c.next_poll_at, refunds.c.next_poll_at, webhook_deliveries.c.next_attempt_at):
            earlier = update(due.table).where(due.table.c.status == "pending").values({due: due - 30 * SECOND})
            await tx.write(earlier)


async def audited(settings: Settings) -> None:
    async with service(settings) as opened:
        await check_books(opened.ctx.db, events_queued=True)
