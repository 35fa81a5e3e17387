"""Three servers and two workers on one PostgreSQL and one Redis: one payment, one credit, one attempt at a time."""

import asyncio
import http.client
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count

import aiohttp
import pytest

from guichet.bootstrap import service
from guichet.db.queues.fair_share import FIRST_WINDOW
from guichet.settings import Settings
from guichet.worker.queue_loop import POLL_INTERVAL
from tests.cli.child import POLLS_EVERY, REDIS_ANSWERS_IN
from tests.fakes.http_server import ScriptedServer
from tests.fakes.redis import RedisServer
from tests.invariants import check_books
from tests.patience import PATIENCE
from tests.processes.fleet import (
    RATE_LIMIT,
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
from tests.processes.kept_clients import paying_all_along

AMOUNT = 5000
SUCCESS = "delivery.success"


@dataclass
class SharedFleet:
    fleet: Fleet
    servers: list[ServiceProcess]
    workers: list[ServiceProcess]

    @property
    def settings(self) -> Settings:
        return self.fleet.settings


@pytest.fixture(scope="module")
def company(new_database: Callable[[], Settings], redis: RedisServer) -> Iterator[SharedFleet]:
    with fleet_of(new_database(), **{"GUICHET_REDIS_URL": redis.url, REDIS_ANSWERS_IN: str(PATIENCE)}) as fleet:
        company = SharedFleet(
            fleet, [fleet.server("--no-worker") for _ in range(3)], [fleet.worker() for _ in range(2)]
        )
        fleet.ready(*company.servers, *company.workers)
        yield company


@pytest.fixture
async def merchant(company: SharedFleet) -> AsyncIterator[Merchant]:
    async with aiohttp.ClientSession() as client:
        yield Merchant(client, await new_merchant(company.settings))


async def test_concurrent_processes_make_one_payment_one_credit_and_one_attempt_at_a_time(
    company: SharedFleet, merchant: Merchant
) -> None:
    receiver = Receiver(pause=0.05)
    orders = [f"order-{number}" for number in range(10)]
    async with ScriptedServer(receiver) as scripted_server:
        await merchant.receive_at(company.servers[0], scripted_server.url("127.0.0.1"))
        created = await asyncio.gather(
            *(merchant.pay(server, order) for order in orders for server in company.servers * 2)
        )
        read = await asyncio.gather(
            *(merchant.call(server, "GET", f"/payments/{order}") for order in orders for server in company.servers)
        )
        await soon(lambda: len(receiver.delivery_ids) == len(orders))
        await asyncio.sleep(0.3)
    assert {status for status, _ in created} == {201}
    assert {status for status, _ in read} == {200}
    references = {(body["data"]["external_id"], body["data"]["reference"]) for _, body in (*created, *read)}
    assert len(references) == len(orders)
    assert [await merchant.balance(server) for server in company.servers] == [AMOUNT * len(orders)] * 3
    assert set(receiver.attempts.values()) == set(receiver.most.values()) == {1}
    assert {order: len(ids) for order, ids in receiver.delivery_ids.items()} == dict.fromkeys(orders, 1)
    assert sum(worker.log.count(SUCCESS) for worker in company.workers) == len(orders)
    assert not any(server.says(SUCCESS) for server in company.servers)
    async with service(company.settings) as opened:
        await check_books(opened.ctx.db)


async def test_a_worker_is_notified_at_once_of_a_stored_payment(own: Settings) -> None:
    """From the request of a server without loops to the webhook, while no loop looks by itself."""
    receiver = Receiver()
    with fleet_of(own, **{POLLS_EVERY: "3600"}) as fleet:
        server, worker = fleet.server("--no-worker"), fleet.worker()
        await asyncio.to_thread(fleet.ready, server, worker)
        async with aiohttp.ClientSession() as client, ScriptedServer(receiver) as scripted_server:
            merchant = Merchant(client, await new_merchant(own))
            await merchant.receive_at(server, scripted_server.url("127.0.0.1"))
            for number in range(9):
                status, _ = await merchant.pay(server, f"quick-{number}")
                assert status == 201
                await soon(lambda number=number: f"quick-{number}" in receiver.at)  # type: ignore[misc]


async def test_leases_of_a_killed_worker_are_taken_over(company: SharedFleet, merchant: Merchant) -> None:
    receiver = Receiver(hanging=asyncio.Event())
    orders = [f"held-{number}" for number in range(FIRST_WINDOW)]
    doomed, other = company.workers
    async with ScriptedServer(receiver) as scripted_server:
        await merchant.receive_at(company.servers[0], scripted_server.url("127.0.0.1"))
        other.stop()
        await asyncio.gather(*(merchant.pay(company.servers[0], order) for order in orders))
        await soon(lambda: len(receiver.delivery_ids) == len(orders))  # All of them by the doomed worker.
        doomed.kill()  # Before its attempts end by their time limit.
        heir = company.workers[1] = company.fleet.worker()
        company.fleet.ready(heir)
        await asyncio.sleep(1.5 * POLL_INTERVAL)
        assert set(receiver.attempts.values()) == {1}, "a lease holds as long as it lasts"
        assert receiver.hanging is not None
        receiver.hanging.set()
        await soon(lambda: not +receiver.open)
        await half_a_minute_passes(company.settings)
        await soon(lambda: set(receiver.attempts.values()) == {2})
        await soon(lambda: heir.log.count(SUCCESS) == len(orders))
    assert set(receiver.most.values()) == {1}
    assert {len(ids) for ids in receiver.delivery_ids.values()} == {1}, "a repeated notification keeps its id"
    assert await merchant.balance(company.servers[1]) == AMOUNT * len(orders)
    company.workers[0] = company.fleet.worker()
    company.fleet.ready(company.workers[0])


async def _admitted(company: SharedFleet, merchant: Merchant, address: str) -> int:
    answers = await asyncio.gather(
        *(
            merchant.call(server, "GET", "/balance", address=address)
            for server in company.servers
            for _ in range(RATE_LIMIT)
        )
    )
    counted = Counter(status for status, _ in answers)
    assert counted.keys() <= {200, 429}
    return counted[200]


async def _until_counted_together(company: SharedFleet, merchant: Merchant, addresses: Iterator[str]) -> None:
    """Until the servers together admit exactly RATE_LIMIT requests of one address; or a TimeoutError.

    A server for which Redis was away counts alone for some seconds more. Each try has an address of its own, because
    the requests of the earlier tries still count.
    """
    async with asyncio.timeout(PATIENCE):
        while await _admitted(company, merchant, next(addresses)) != RATE_LIMIT:
            await asyncio.sleep(1)


async def test_the_rate_limit_is_shared_and_continues_without_redis(
    company: SharedFleet, merchant: Merchant, redis: RedisServer
) -> None:
    addresses = (f"203.0.113.{number}" for number in count(1))
    await _until_counted_together(company, merchant, addresses)
    redis.stop()
    try:
        for server in company.servers:
            status, body = await merchant.pay(server, f"without-redis-{server.port}")
            assert status == 201, body
        assert await _admitted(company, merchant, next(addresses)) == 3 * RATE_LIMIT, "each server counts for itself"
        assert all(server.says("ratelimit.redis_away") for server in company.servers)
    finally:
        redis.start()
    await _until_counted_together(company, merchant, addresses)


def test_a_request_in_flight_to_a_stopping_server_is_answered(company: SharedFleet) -> None:
    """Its client kept the connection and could not know; the answer tells it not to come back."""
    server = company.servers[0]
    assert server.port is not None
    kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    with closing(kept):
        assert _status_and_connection(kept) == (200, None)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: _refuses(server.port), server)
        assert _status_and_connection(kept) == (200, "close")
    assert server.process.wait(timeout=PATIENCE) == 0
    company.servers[0] = company.fleet.server("--no-worker", port=server.port)
    company.fleet.ready(company.servers[0])


def _status_and_connection(kept: http.client.HTTPConnection) -> tuple[int, str | None]:
    kept.request("GET", "/healthz")
    answer = kept.getresponse()
    answer.read()
    return answer.status, answer.getheader("connection")


def _refuses(port: int | None) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port or 0)) != 0


async def test_a_rolling_restart_loses_no_request(company: SharedFleet, merchant: Merchant) -> None:
    """Every server in turn is stopped and started again, while clients continue on kept connections."""
    async with paying_all_along(merchant, company.servers) as clients:
        for index in range(len(company.servers)):
            await asyncio.sleep(0.3)
            company.servers[index] = await company.fleet.restarted(company.servers[index], "--no-worker")
    assert not clients.cut
