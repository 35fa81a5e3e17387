"""Whom a limit counts: the address of a client, the same one for every limit (D97).

Behind a trusted proxy it is the address that the proxy names. A network of IPv6 counts as one address: a subscriber has
2⁶⁴ of them or more, so a limit for single ones would be no limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from guichet.settings import Network, Settings

_UNKNOWN: Final = "unknown"


@dataclass(frozen=True)
class ClientAddresses:
    """`ipv6_prefix`: bits of an IPv6 address that are counted as one client."""

    trusted_proxies: Sequence[Network]
    ipv6_prefix: int

    @classmethod
    def of(cls, settings: Settings) -> "ClientAddresses":
        return cls(settings.trusted_proxies, settings.ipv6_prefix)

    def counted(self, scope: Scope) -> str:
        """What limits of requests count by: `203.0.113.7`, or `2001:db8:0:1::/64`."""
        return counted_address(self._client(scope), self.ipv6_prefix)

    def counted_peer(self, peer: str) -> str | None:
        """What limits of connections count by; None for a trusted proxy, which is not limited."""
        return None if self._is_trusted(peer) else counted_address(peer, self.ipv6_prefix)

    def _client(self, scope: Scope) -> str:
        """The peer's address; behind trusted proxies, the nearest in `X-Forwarded-For` that is not one of them."""
        client = scope.get("client")
        address: str = client[0] if client else _UNKNOWN
        if not self._is_trusted(address):
            return address
        forwarded = Headers(scope=scope).getlist("x-forwarded-for")
        for hop in reversed([part.strip() for line in forwarded for part in line.split(",")]):
            if _parse(hop) is None:
                return address
            address = hop
            if not self._is_trusted(hop):
                return hop
        return address

    def _is_trusted(self, text: str) -> bool:
        if not self.trusted_proxies:
            return False
        address = _parse(text)
        return address is not None and any(address in network for network in self.trusted_proxies)


@lru_cache(maxsize=4096)
def counted_address(text: str, ipv6_prefix: int) -> str:
    """IPv4 as it is, also when it is written as IPv6 (`::ffff:203.0.113.7`); of IPv6 the network of `ipv6_prefix`."""
    address = _parse(text)
    if address is None:
        return text
    if isinstance(address, IPv4Address):
        return str(address)
    return str(IPv6Network((int(address), ipv6_prefix), strict=False))


@lru_cache(maxsize=4096)
def _parse(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
