"""Which addresses may be connected to (D38)."""

import socket
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aiohttp.connector import AddrInfoType

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

#: What IPv6 routes on the internet. Everything else (mapped and compatible IPv4, NAT64, link-local…) is refused whole.
_GLOBAL_IPV6: Final = ip_network("2000::/3")
#: Addresses that `is_global` accepts in some Python version, or that lead into a private network all the same.
_NOT_PUBLIC: Final = tuple(
    ip_network(text)
    for text in (
        "168.63.129.16/32",  # the host's own agent, on one large cloud
        "192.0.0.0/24",  # protocol assignments, metadata of another cloud
        "192.88.99.0/24",  # 6to4 relays
        "198.18.0.0/15",  # benchmarks
        "2001::/23",  # Teredo and other assignments
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",  # documentation
    )
)


def is_public(address: Address) -> bool:
    """Whether anybody on the internet could reach this address: the only ones a merchant may name (D38)."""
    if isinstance(address, IPv6Address) and address not in _GLOBAL_IPV6:
        return False
    return address.is_global and not address.is_multicast and not any(address in network for network in _NOT_PUBLIC)


@lru_cache(maxsize=1024)
def is_loopback_host(host: str) -> bool:
    """Whether a host means this machine by its spelling alone: `localhost`, `*.localhost` or a loopback literal."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


class AddressRefused(OSError):
    """The guard does not permit this address. An OSError, so that the other addresses of a name are still tried."""


class AddressGuard:
    """Opens sockets for permitted addresses only: the `socket_factory` of a connector.

    It sees the address that is about to be connected to, whether it was looked up or written in the URL. A name that
    resolves differently from one lookup to the next therefore gains nothing.
    """

    def __init__(self, permits: Callable[[Address], bool]) -> None:
        self._permits = permits

    def __call__(self, target: "AddrInfoType") -> socket.socket:
        """Raises AddressRefused."""
        family, kind, protocol, _, (host, *_) = target
        try:
            permitted = self._permits(ip_address(host))
        except ValueError:
            permitted = False
        if not permitted:
            raise AddressRefused("address refused by the guard")
        return socket.socket(family, kind, protocol)
