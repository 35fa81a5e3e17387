"""`kill -9` of the real command while a receiver hangs, then a restart: what was cut off is sent again.

Kills under live traffic: `test_live_money.py`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest

from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import service
from guichet.db.queues.fair_share import FIRST_WINDOW
from guichet.settings import Settings
from reliability.processes import ManagedProcess, clean_environ, guichet
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import ReceivedRequest, ScriptedServer, answers
from tests.invariants import check_books
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.processes.fleet import half_a_minute_passes

OK = answers(b"HTTP/1.1 204 No Content\r\n\r\n")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path_factory.mktemp("ca"))


class Server(ManagedProcess):
    """A process of `guichet serve`. `variables`: more GUICHET_* settings."""

    def __init__(self, settings: Settings, **variables: str) -> None:
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        self.url = f"{address}/v1"
        environ = {
            **clean_environ(),
            "GUICHET_HOME": str(settings.home),
            "GUICHET_DATABASE_URL": settings.database_url,
            "GUICHET_SECRET_KEYS": ",".join(settings.secret_keys),
            "GUICHET_PROFILE": "development",
            "GUICHET_RATE_LIMIT": "0",
            "GUICHET_LOG_LEVEL": "error",
            "GUICHET_PUBLIC_URL": address,
            **variables,
        }
        log_file = settings.home / "server.log"
        super().__init__("serve", guichet("serve", "--port", port), environ, log_file, f"{address}/readyz")


@asynccontextmanager
async def serving(settings: Settings, **variables: str) -> AsyncIterator[Server]:
    """Killed at the end, if nothing else has ended it."""
    server = Server(settings, **variables)
    try:
        await server.start_and_wait()
        yield server
    finally:
        await server.kill()


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


async def deliveries(client: aiohttp.ClientSession, server: Server) -> list[Any]:
    async with client.get(f"{server.url}/webhooks/deliveries?per_page=100") as answer:
        return list((await answer.json())["data"])


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
        async with serving(settings) as server:
            async with client.put(f"{server.url}/webhooks/endpoint", json={"url": receiver.url()}) as answer:
                assert answer.status == 200
            await asyncio.gather(*(create(client, server, n, answered) for n in range(20)))
            async with asyncio.timeout(PATIENCE):
                while len(receiver.received) < FIRST_WINDOW:
                    await asyncio.sleep(0.02)
            await server.kill()
        recovered.set()
        await half_a_minute_passes(settings)
        async with serving(settings) as server:
            async with asyncio.timeout(PATIENCE):
                while len(receiver.received) < 20 + FIRST_WINDOW:
                    await asyncio.sleep(0.1)
                log: list[Any] = []
                while Counter(each["status"] for each in log) != {"success": 20}:
                    log = await deliveries(client, server)
                    await asyncio.sleep(0.05)
            assert await server.stop() == 0
        attempts = Counter(each["attempts"] for each in log)
        assert attempts == {2: FIRST_WINDOW, 1: 20 - FIRST_WINDOW}, "the attempt that was cut off counts"
        assert len(receiver.received) == 20 + FIRST_WINDOW
        assert len({request.body for request in receiver.received}) == 20, "a repeated notification keeps its id"
    await audited(settings)


async def audited(settings: Settings) -> None:
    async with service(settings) as opened:
        await check_books(opened.ctx.db, events_queued=True)
