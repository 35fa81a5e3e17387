"""Whom the limits count: one key for each client, whatever the limit."""

from dataclasses import replace
from ipaddress import ip_network

import pytest

from guichet.server.request_context import ClientAddresses
from guichet.settings import Settings
from tests.checkout.checkout_fixture import open_checkout
from tests.service_fixture import open_service

PROXY = "127.0.0.1/32"


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("2001:DB8:0:1:ffff::2", "2001:db8:0:1::/64"),
        ("2001:db8:0:2::1", "2001:db8:0:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
    ],
)
def test_a_client_is_an_ipv4_address_or_a_network_of_ipv6(address: str, counted: str) -> None:
    addresses = ClientAddresses((), 64)
    assert addresses.counted({"type": "http", "client": (address, 1)}) == counted
    assert addresses.counted_peer(address) == counted


def test_the_prefix_is_a_setting() -> None:
    assert ClientAddresses((), 56).counted_peer("2001:db8:0:1ff::1") == "2001:db8:0:100::/56"


def test_a_trusted_proxy_is_not_limited_itself_also_when_it_is_written_as_ipv6() -> None:
    addresses = ClientAddresses((ip_network("10.0.0.0/8"),), 64)
    assert addresses.counted_peer("10.1.2.3") is None
    assert addresses.counted_peer("::ffff:10.1.2.3") is None
    scope = {
        "type": "http",
        "client": ("::ffff:10.1.2.3", 1),
        "headers": [(b"x-forwarded-for", b"2001:db8::9, ::ffff:10.9.9.9")],
    }
    assert addresses.counted(scope) == "2001:db8::/64"


HOSTS = [f"2001:db8:0:1::{number}" for number in range(1, 6)]


async def test_requests_to_the_api_from_one_network_of_ipv6_share_one_limit(sqlite_settings: Settings) -> None:
    settings = replace(sqlite_settings, rate_limit=4, trusted_proxies=(ip_network(PROXY),))
    async with open_service(settings) as service:

        async def status(host: str) -> int:
            headers = {"Authorization": "Bearer nobody", "X-Forwarded-For": host}
            return (await service.call("GET", "/v1/balance", headers=headers)).status

        assert [await status(host) for host in HOSTS] == [401] * 4 + [429]
        assert await status("2001:db8:0:2::1") == 401


async def test_unknown_pages_from_one_network_of_ipv6_share_one_limit(sqlite_settings: Settings) -> None:
    settings = replace(sqlite_settings, page_rate_limit=4, trusted_proxies=(ip_network(PROXY),))
    async with open_checkout(settings) as checkout:
        answers = [await checkout.send("GET", "/pay/nothing", headers={"X-Forwarded-For": host}) for host in HOSTS]
        assert [answer.status for answer in answers] == [404] * 4 + [429]
