"""The synchronous standby is away and every write waits for it: reads answer, and nothing is lost."""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from guichet.bootstrap import service
from guichet.db.postgres.pool import STATEMENT_TIMEOUT, WRITE_CONNECTIONS
from guichet.settings import Settings
from reliability.standby import Standby
from tests.cli.child import CONNECTION_FREE_IN
from tests.invariants import check_books
from tests.patience import PATIENCE
from tests.processes.bouncer import pgbouncer
from tests.processes.fleet import Merchant, ServiceProcess, fleet_of, new_merchant

#: Far more than there are connections for writes.
PAYMENTS = 8 * WRITE_CONNECTIONS
#: Seconds in place of ten, after which a write that found no connection fails.
WAITING = 3.0
READS = ("/balance", "/payments", "/refunds", "/webhooks/deliveries", "/payment-modes")


@pytest.fixture
async def standby(own: Settings) -> AsyncIterator[Standby]:
    with tempfile.TemporaryDirectory(prefix="guichet-standby-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        standby = Standby(own.database_url, Path(folder))
        await standby.create()
        yield standby
        await standby.remove()


@pytest.fixture(params=["direct", "pgbouncer"])
def served(request: pytest.FixtureRequest, own: Settings) -> Iterator[tuple[Settings, dict[str, str]]]:
    """Settings of a service, and the variables that say the same."""
    with ExitStack() as stack:
        if request.param == "direct":
            yield own, {}
        else:  # As many as docs/operations/ha/pgbouncer.ini gives one process.
            url = stack.enter_context(pgbouncer(own.database_url, pool=WRITE_CONNECTIONS + 6))
            yield replace(own, database_url=url, pgbouncer=True), {"GUICHET_PGBOUNCER": "yes"}


async def test_reads_go_on_while_every_connection_for_writes_waits(
    own: Settings, standby: Standby, served: tuple[Settings, dict[str, str]]
) -> None:
    settings, variables = served
    key = await new_merchant(own)
    with fleet_of(settings, GUICHET_RATE_LIMIT="0", **variables, **{CONNECTION_FREE_IN: str(WAITING)}) as fleet:
        server = fleet.server("--no-worker")
        await asyncio.to_thread(fleet.ready, server)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as client:
            merchant = Merchant(client, key)
            # Reading it would settle it: a write that has to wait, too.
            status, body = await merchant.pay(server, "before")
            assert (status, body["data"]["status"]) == (201, "pending")
            standby.stop()
            began = time.monotonic()
            waiting = {
                f"order-{number}": asyncio.create_task(merchant.pay(server, f"order-{number}"))
                for number in range(PAYMENTS)
            }
            await asyncio.sleep(1)
            await asyncio.gather(*(_reads_answer(merchant, server) for _ in range(3)))
            await asyncio.wait(waiting.values(), timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            await _reads_answer(merchant, server)
            answered, still_waiting = await asyncio.wait(waiting.values(), timeout=0)
            assert set(_statuses(answered)) <= {(500, "server_error")}
            assert still_waiting, "those that were sent"
            assert time.monotonic() - began < STATEMENT_TIMEOUT, "too slow for the rest of this test"
            standby.start()
            done, _ = await asyncio.wait(still_waiting)
            assert set(_statuses(done)) == {(201, None)}
            repeated = await asyncio.gather(*(merchant.pay(server, order) for order in waiting))
            assert {status for status, _ in repeated} == {201}
            _, listed = await merchant.call(server, "GET", "/payments?per_page=1")
            assert listed["meta"]["total"] == 1 + PAYMENTS
        assert not server.says("request.crashed"), server.log
    async with service(own) as opened:
        await check_books(opened.ctx.db)


async def _reads_answer(merchant: Merchant, server: ServiceProcess) -> None:
    async with asyncio.timeout(PATIENCE):
        assert {
            status for status, _ in await asyncio.gather(*(merchant.call(server, "GET", path) for path in READS))
        } == {200}
    async with asyncio.timeout(PATIENCE):
        status, body = await merchant.call(server, "GET", "/payments/before")
        assert (status, body["data"]["status"]) == (200, "pending"), body
    async with asyncio.timeout(PATIENCE), merchant.client.get(f"{server.url}/readyz") as answer:
        assert (answer.status, (await answer.json())["database"]) == (503, "unavailable")


def _statuses(answered: Any) -> Counter[tuple[int, str | None]]:
    results = [task.result() for task in answered]
    return Counter((status, body.get("error", {}).get("code") if status != 201 else None) for status, body in results)
