"""Attempts that fail through our own fault do not count, for a day at most."""

import asyncio
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_network

import pytest
from cryptography.fernet import Fernet

from guichet.clock import SECOND
from guichet.http_client import HttpClient
from guichet.settings import Settings
from guichet.webhooks.dispatcher import OWN_FAULT_PAUSE
from guichet.worker.worker import Worker
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.clock import ManualClock
from tests.fakes.http_server import ScriptedServer
from tests.fakes.name_server import name_server
from tests.patience import PATIENCE
from tests.service_fixture import MerchantClient, ServiceFixture, open_service
from tests.webhooks.receivers import delivery_log, merchant_with_endpoint, receiver

PAUSE = OWN_FAULT_PAUSE / SECOND
DAY = 24 * 3600


async def state(merchant: MerchantClient) -> tuple[str, int]:
    (entry,) = await delivery_log(merchant)
    return entry["status"], entry["attempts"]


@contextmanager
def no_descriptors_left() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_without_descriptors_an_attempt_does_not_count(
    sqlite_service: ServiceFixture, authority: CertificateAuthority
) -> None:
    service = sqlite_service
    async with receiver(authority) as server:
        merchant, _ = await merchant_with_endpoint(service, server)
        await merchant.post("/webhooks/test")
        for _ in range(7):
            with no_descriptors_left():
                await service.run_worker(PAUSE)
        assert server.connections == 0
        assert await state(merchant) == ("pending", 0)
        await service.run_worker(PAUSE)
        assert await state(merchant) == ("success", 1)


async def test_a_secret_that_cannot_be_read_costs_no_attempt_for_a_day(
    settings: Settings, authority: CertificateAuthority
) -> None:
    clock = ManualClock()
    async with receiver(authority) as server:
        async with open_service(settings, clock) as service:
            merchant, _ = await merchant_with_endpoint(service, server)
            await merchant.post("/webhooks/test")
        async with open_service(replace(settings, secret_keys=(Fernet.generate_key().decode(),)), clock) as service:
            merchant = replace(merchant, service=service)
            for _ in range(7):
                await service.run_worker(PAUSE)
            assert await state(merchant) == ("pending", 0)
            await service.run_worker(DAY)
            assert await state(merchant) == ("pending", 1), "after a day they count"
        async with open_service(settings, clock) as service:
            merchant = replace(merchant, service=service)
            await service.run_worker(10)
            assert await state(merchant) == ("success", 2)


async def test_a_name_server_that_fails_for_all_costs_no_attempt(sqlite_settings: Settings) -> None:
    async with name_server() as (names, resolver), open_service(sqlite_settings) as service:
        client = HttpClient(resolver=resolver)
        worker = Worker(service.ctx, client)
        merchant = await service.merchant()
        await merchant.put("/webhooks/endpoint", {"url": "https://shop.failing.test/hook"})
        await merchant.post("/webhooks/test")
        await worker.run_until_idle()
        assert names.lookups
        assert await state(merchant) == ("pending", 0)
        await client.aclose()


async def test_a_name_server_that_fails_for_one_merchant_is_the_merchants(
    sqlite_settings: Settings, authority: CertificateAuthority
) -> None:
    async with (
        name_server() as (_, resolver),
        open_service(sqlite_settings) as service,
        ScriptedServer(tls=authority.server("shop.test")) as server,
    ):
        client = HttpClient(allow=[ip_network("127.0.0.2/32")], ca_file=authority.file, resolver=resolver)
        worker = Worker(service.ctx, client)
        good = await service.merchant()
        await good.put("/webhooks/endpoint", {"url": server.url("shop.test")})
        await good.post("/webhooks/test")
        await worker.run_until_idle()
        assert await state(good) == ("success", 1)
        for name in ("failing", "unknown"):
            bad = await service.merchant()
            await bad.put("/webhooks/endpoint", {"url": f"https://shop.{name}.test/hook"})
            await bad.post("/webhooks/test")
            await worker.run_until_idle()
            assert await state(bad) == ("pending", 1), name
        await client.aclose()


@pytest.mark.both_databases
@pytest.mark.parametrize("connected", [False, True])
async def test_what_was_not_sent_when_the_worker_stops_is_due_again(
    settings: Settings, authority: CertificateAuthority, connected: bool
) -> None:
    """A request that may have been read counts, one that waits for a connection does not."""
    asked = asyncio.Event()

    async def never(writer: asyncio.StreamWriter, _: object) -> None:
        asked.set()
        await asyncio.sleep(60)

    async with (
        name_server() as (names, resolver),
        open_service(settings) as service,
        ScriptedServer(never, tls=authority.server("shop.test")) as server,
    ):
        client = HttpClient(allow=[ip_network("127.0.0.2/32")], ca_file=authority.file, resolver=resolver)
        worker = Worker(service.ctx, client)
        merchant = await service.merchant()
        host = "shop.test" if connected else "shop.silent.test"
        await merchant.put("/webhooks/endpoint", {"url": server.url(host)})
        await merchant.post("/webhooks/test")
        worker.start()
        async with asyncio.timeout(PATIENCE):
            while not (asked.is_set() if connected else names.lookups):
                await asyncio.sleep(0.005)
        await worker.stop(grace=0)
        assert await state(merchant) == ("pending", int(connected))
        await client.aclose()
