"""Which addresses are public, which spellings mean this machine, and that the guard refuses all others."""

from ipaddress import ip_address

import pytest

from guichet.http_client import Forbidden, NotSent, is_loopback_host, is_public
from tests.fakes.http_server import ScriptedServer
from tests.fakes.name_server import ScriptedResolver
from tests.http_client.egress import HOST, client
from tests.patience import PATIENCE

PUBLIC_ADDRESSES = ["8.8.8.8", "1.1.1.1", "41.85.160.1", "102.64.0.1", "2606:4700:4700::1111", "2c0f:f248::1"]
REFUSED_ADDRESSES = {
    "127.0.0.1": "loopback",
    "127.8.8.8": "loopback",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "this network",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "100.64.0.1": "carrier-grade NAT",
    "100.100.100.200": "metadata of a cloud",
    "169.254.169.254": "metadata of most clouds",
    "168.63.129.16": "agent of a cloud",
    "192.0.0.192": "metadata of a cloud",
    "192.0.2.1": "documentation",
    "198.51.100.1": "documentation",
    "203.0.113.1": "documentation",
    "198.18.0.1": "benchmarks",
    "192.88.99.1": "6to4 relay",
    "224.0.0.1": "multicast",
    "239.255.255.250": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::7f00:1": "compatible form of 127.0.0.1",
    "::ffff:127.0.0.1": "mapped loopback",
    "::ffff:10.0.0.1": "mapped private",
    "::ffff:8.8.8.8": "mapped",
    "64:ff9b::7f00:1": "NAT64 to 127.0.0.1",
    "64:ff9b::a9fe:a9fe": "NAT64 to metadata",
    "64:ff9b:1::1": "local NAT64",
    "100::1": "discard",
    "2001::1": "Teredo",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "6to4 to 127.0.0.1",
    "2002:a00:1::1": "6to4 to 10.0.0.1",
    "3fff::1": "documentation",
    "5f00::1": "segment routing",
    "fc00::1": "unique local",
    "fd00:ec2::254": "metadata of a cloud",
    "fe80::1": "link-local",
    "fe80::1%lo": "link-local with a scope",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "ff0e::1": "multicast, global scope",
}


@pytest.mark.parametrize("text", PUBLIC_ADDRESSES)
def test_public_addresses_may_be_reached(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize("text", REFUSED_ADDRESSES, ids=lambda text: f"{text} {REFUSED_ADDRESSES[text]}")
def test_addresses_that_are_not_public_are_refused(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", REFUSED_ADDRESSES)
async def test_a_name_that_resolves_to_a_refused_address_is_not_connected(text: str) -> None:
    """A name that leads there: nothing is dialled, and the error says why."""
    async with client(resolver=ScriptedResolver(shop_test=[[text]])) as out:
        with pytest.raises(Forbidden, match="refused by the guard"):
            await out.request("POST", f"https://{HOST}/", body=b"x", timeout=PATIENCE)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:{port}/",
        "https://[::ffff:127.0.0.1]:{port}/",
        "https://localhost:{port}/",
        "https://0.0.0.0:{port}/",
        "https://127.1:{port}/",
        "https://2130706433:{port}/",
        "https://0x7f000001:{port}/",
        "https://0177.0.0.1:{port}/",
        "https://127.0.0.1.:{port}/",
    ],
)
async def test_every_spelling_of_this_machine_is_refused(url: str) -> None:
    """With the system's own lookups. `NotSent` rather than `Forbidden` where the spelling is not even a name."""
    async with ScriptedServer() as receiver, client() as out:
        with pytest.raises(NotSent):
            await out.request("POST", url.format(port=receiver.port), body=b"x", timeout=PATIENCE)
    assert receiver.connections == 0


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("shop.localhost", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost.shop.test", False),
        ("notlocalhost", False),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
    ],
)
def test_loopback_hosts_are_recognised_by_name(host: str, local: bool) -> None:
    assert is_loopback_host(host) is local
