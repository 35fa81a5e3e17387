"""Clients for the tests of outgoing requests, over real sockets.

Every 127.x.y.z address is this machine: 127.0.0.2 stands for a public address (the guard allows it),
127.0.0.1 the private one that must not be reached.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

from guichet.http_client import HttpClient
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.name_server import ScriptedResolver

PUBLIC = ip_network("127.0.0.2/32")
HOST = "shop.test"
#: For peers that do hang.
SHORT = 1.0


@asynccontextmanager
async def client(**given: Any) -> AsyncIterator[HttpClient]:
    made = HttpClient(**given)
    try:
        yield made
    finally:
        await made.aclose()


def to_shop(authority: CertificateAuthority, *addresses: str, **given: Any) -> Any:
    """The production guard as if 127.0.0.2 were a public address; `shop.test` has these addresses."""
    names = ScriptedResolver(shop_test=[addresses or ("127.0.0.2",)])
    return client(**{"allow": [PUBLIC], "ca_file": authority.file, "resolver": names, **given})
