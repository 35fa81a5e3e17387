"""Behind PgBouncer in transaction mode: the same service, woken by polls, or through a direct address."""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import aiohttp
import pytest

from guichet.bootstrap import service
from guichet.db import migrate
from guichet.db.schema_version import REQUIRED_REVISION, current_revision
from guichet.settings import Settings
from guichet.worker.queue_loop import POLL_INTERVAL
from tests.fakes.http_server import ScriptedServer
from tests.invariants import check_books
from tests.processes.bouncer import pgbouncer
from tests.processes.fleet import Merchant, Receiver, ServiceProcess, fleet_of, new_merchant, soon


@pytest.fixture
def direct(new_database: Callable[[], Settings]) -> Settings:
    return new_database()


@pytest.fixture
def bounced(direct: Settings) -> Iterator[Settings]:
    with pgbouncer(direct.database_url) as url:
        yield replace(direct, database_url=url, pgbouncer=True)


async def test_payments_work_behind_pgbouncer_by_polls_and_by_announcements(
    direct: Settings, bounced: Settings
) -> None:
    key = await new_merchant(bounced)
    receiver = Receiver()
    medians = {}
    async with aiohttp.ClientSession() as client, ScriptedServer(receiver) as scripted_server:
        merchant = Merchant(client, key)
        for way, listen_url in (("polls", ""), ("announcements", direct.database_url)):
            with fleet_of(
                bounced, GUICHET_RATE_LIMIT="0", GUICHET_PGBOUNCER="yes", GUICHET_LISTEN_URL=listen_url
            ) as fleet:
                server, worker = fleet.server("--no-worker"), fleet.worker()
                await asyncio.to_thread(fleet.ready, server, worker)
                await merchant.receive_at(server, scripted_server.url("127.0.0.1"))
                answers = await asyncio.gather(*(merchant.pay(server, f"{way}-{number}") for number in range(30)))
                assert {status for status, _ in answers} == {201}, server.log
                await soon(lambda way=way: sum(each.startswith(way) for each in receiver.delivery_ids) == 30)  # type: ignore[misc]
                status, refund = await merchant.call(server, "POST", f"/payments/{way}-0/refund", {})
                assert status == 201, refund
                medians[way] = await _median_delay(merchant, receiver, server, way)
                assert worker.says("wakeups.listening") == bool(listen_url)
                assert not server.says("request.crashed"), server.log
                assert not worker.says("worker.failed"), worker.log
    print(f"\nfrom the request to the webhook: { ({way: round(1000 * each) for way, each in medians.items()}) } ms")  # noqa: T201
    assert medians["announcements"] < POLL_INTERVAL / 2
    assert set(receiver.most.values()) == {1}
    async with service(bounced) as opened:
        await check_books(opened.ctx.db)


async def _median_delay(merchant: Merchant, receiver: Receiver, server: ServiceProcess, way: str) -> float:
    delays = []
    for number in range(3):
        began, order = time.monotonic(), f"one-{way}-{number}"
        await merchant.pay(server, order)
        await soon(lambda order=order: order in receiver.at)  # type: ignore[misc]
        delays.append(receiver.at[order] - began)
        await asyncio.sleep(0.15)
    return statistics.median(delays)


async def test_the_schema_is_migrated_through_pgbouncer(bounced: Settings) -> None:
    for _ in range(3):
        assert await migrate.upgrade(bounced) == (REQUIRED_REVISION, REQUIRED_REVISION)
        assert await current_revision(bounced) == REQUIRED_REVISION
