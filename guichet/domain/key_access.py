"""What an API key may do, and from where: its scopes and its networks (docs/contract.md, "Authentication").

A key's scopes are the bits of one number, so that a request is checked by one `&`. `FULL_ACCESS` has every bit, also
those of scopes that do not exist yet: a full key may what the API will learn, a key with every scope of today may not.
"""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, Literal, get_args

from guichet.domain.records import Record

#: The place of a scope is its bit in the database: new ones are added at the end.
KeyScope = Literal["payments:read", "payments:write", "refunds", "links", "webhooks", "refunds:propose"]
KEY_SCOPES: Final[tuple[KeyScope, ...]] = get_args(KeyScope)

FULL_ACCESS: Final = -1
_BITS: Final[dict[KeyScope, int]] = {scope: 1 << place for place, scope in enumerate(KEY_SCOPES)}

Network = IPv4Network | IPv6Network
#: Networks of one key.
MOST_NETWORKS: Final = 20
_MAPPED: Final = IPv6Network("::ffff:0:0/96")


class KeyAccess(Record, frozen=True):
    """`scopes`: bits, or `FULL_ACCESS`. `networks`: where alone the key is accepted from, as they are stored, with
    spaces between them; None for everywhere."""

    scopes: int = FULL_ACCESS
    networks: str | None = None


UNRESTRICTED: Final = KeyAccess()


def scope_bits(scopes: Iterable[KeyScope]) -> int:
    return sum(_BITS[scope] for scope in set(scopes))


def scopes_of(bits: int) -> list[KeyScope] | None:
    """None for a full key."""
    return None if bits == FULL_ACCESS else [scope for scope, bit in _BITS.items() if bits & bit]


def read_network(text: str) -> str:
    """An address or a network, such as `203.0.113.7` or `2001:db8::/48`, in its shortest form. Raises ValueError, also
    for a network with bits of an address behind its prefix: it would not say which of both is meant."""
    if "%" in text:  # The zone of a link-local address means nothing on another machine.
        raise ValueError
    network = ip_network(text)
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        mapped = int(network.network_address) & 0xFFFFFFFF
        network = IPv4Network((mapped, network.prefixlen - 96))
    return str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)


def stored_networks(networks: Iterable[str]) -> str | None:
    """What `read_network` gave, as a key keeps it: each one once."""
    return " ".join(dict.fromkeys(networks)) or None


@lru_cache(maxsize=4096)
def networks_of(stored: str | None) -> tuple[Network, ...]:
    return () if stored is None else tuple(ip_network(text) for text in stored.split())
