"""Which client a request comes from, behind proxies or not (D40)."""

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from guichet.settings import Network

_UNKNOWN: Final = "unknown"


def client_address(scope: Scope, trusted_proxies: Sequence[Network]) -> str:
    """The peer's address; behind trusted proxies, the nearest address in `X-Forwarded-For` that is not one of them."""
    client = scope.get("client")
    address: str = client[0] if client else _UNKNOWN
    if not trusted_proxies or not _is_within(address, trusted_proxies):
        return address
    forwarded = Headers(scope=scope).getlist("x-forwarded-for")
    for hop in reversed([part.strip() for line in forwarded for part in line.split(",")]):
        if not _is_address(hop):
            return address
        address = hop
        if not _is_within(hop, trusted_proxies):
            return hop
    return address


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_within(text: str, networks: Sequence[Network]) -> bool:
    return _is_address(text) and any(ip_address(text) in network for network in networks)
