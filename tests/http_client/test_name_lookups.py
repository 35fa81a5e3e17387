"""Names, looked up for real: by c-ares, from the hosts file and a name server of the test's own."""

import asyncio
import socket
from ipaddress import ip_network
from pathlib import Path

import pytest

from guichet.http_client import Forbidden, HttpClient, NotSent
from guichet.settings import Settings
from guichet.worker.worker import Worker
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import ScriptedServer
from tests.fakes.name_server import name_server
from tests.patience import PATIENCE
from tests.service_fixture import MerchantClient, ServiceFixture, open_service

#: Far beyond what anything here takes; reached only when something hangs that must not.
MERCHANTS = 110


async def _merchant_with_webhooks(service: ServiceFixture, url: str, count: int) -> MerchantClient:
    merchant = await service.merchant()
    assert (await merchant.put("/webhooks/endpoint", {"url": url})).status == 200
    for _ in range(count):
        assert (await merchant.post("/webhooks/test")).status in (200, 201, 202)
    return merchant


async def test_a_silent_name_server_of_many_merchants_delays_no_other(
    sqlite_settings: Settings, authority: CertificateAuthority
) -> None:
    """110 merchants whose names never resolve, two webhooks each; those of another merchant leave at once."""
    async with (
        name_server() as (names, resolver),
        open_service(sqlite_settings) as service,
        ScriptedServer(tls=authority.server("shop.test")) as server,
    ):
        for number in range(MERCHANTS):
            await _merchant_with_webhooks(service, f"https://merchant{number}.silent.test/hook", 2)
        client = HttpClient(allow=[ip_network("127.0.0.2/32")], ca_file=authority.file, resolver=resolver)
        worker = Worker(service.ctx, client)
        worker.start()
        try:
            async with asyncio.timeout(PATIENCE):
                while len([name for name in names.lookups if name.endswith(".silent.test")]) < MERCHANTS:
                    await asyncio.sleep(0.01)  # All of them hang.
            fast = await _merchant_with_webhooks(service, server.url("shop.test"), 20)
            async with asyncio.timeout(PATIENCE):
                while len(server.received) < 20:
                    await asyncio.sleep(0.01)
                while True:
                    log = (await fast.get("/webhooks/deliveries?per_page=100")).data
                    if all(entry["status"] == "success" for entry in log):
                        break
                    await asyncio.sleep(0.01)
            assert {entry["attempts"] for entry in log} == {1}
            assert len(log) == 20
        finally:
            await worker.stop(grace=0.01)
            await client.aclose()


async def test_two_hundred_hung_lookups_delay_no_other(authority: CertificateAuthority) -> None:
    async with name_server() as (names, resolver), ScriptedServer(tls=authority.server("shop.test")) as server:
        client = HttpClient(allow=[ip_network("127.0.0.2/32")], ca_file=authority.file, resolver=resolver)
        hung = [
            asyncio.create_task(client.request("POST", f"https://name{n}.silent.test/", timeout=PATIENCE))
            for n in range(200)
        ]
        async with asyncio.timeout(PATIENCE):
            while len(names.lookups) < 200:
                await asyncio.sleep(0.01)
        assert (await client.request("POST", server.url("shop.test"), timeout=PATIENCE)).status == 200
        assert not any(task.done() for task in hung)
        await client.aclose()
        outcomes = await asyncio.gather(*hung, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {NotSent}


async def test_names_of_this_machine_come_from_the_hosts_file(authority: CertificateAuthority) -> None:
    """`localhost`, `*.localhost` and whatever `/etc/hosts` says, without any name server."""
    entries = [line.split("#")[0].split() for line in Path("/etc/hosts").read_text().splitlines()]
    local = {name for entry in entries if entry and entry[0] == "127.0.0.1" for name in entry[1:]}
    async with name_server() as (names, resolver), ScriptedServer() as server:
        client = HttpClient(resolver=resolver)
        for name in sorted({"localhost", "shop.localhost"} | local):
            response = await client.request("GET", server.url(name), timeout=PATIENCE, guarded=False)
            assert response.status == 200
            with pytest.raises(Forbidden):
                await client.request("GET", f"https://{name}:{server.port}/", timeout=PATIENCE)
        await client.aclose()
    assert names.lookups == {}


async def test_both_address_families_are_tried() -> None:
    """`localhost` is `::1` and `127.0.0.1`; servers that listen on one of them are found."""
    for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
        try:
            socket.create_server((host, 0), family=family).close()
        except OSError:
            continue  # This machine has no IPv6.
        async with ScriptedServer(host=host) as server:
            client = HttpClient(loopback=True)
            assert (await client.request("GET", server.url("localhost"), timeout=PATIENCE)).status == 200
            await client.aclose()
