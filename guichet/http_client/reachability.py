"""Whether a host could be connected to, by what its name leads to at present."""

import asyncio
import socket
from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from guichet.http_client.address_guard import Address

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver

#: Seconds that the lookup of a name may take.
LOOKUP_LIMIT: Final = 2.0


async def is_reachable(host: str, permits: Callable[[Address], bool], resolver: "AbstractResolver") -> bool:
    """Whether one of the addresses of `host` may be connected to. Raises nothing."""
    return any(permits(address) for address in await _addresses(host, resolver))


async def _addresses(host: str, resolver: "AbstractResolver") -> list[Address]:
    """Empty when the name does not exist, or was not found in time."""
    try:
        return [ip_address(host)]
    except ValueError:
        pass
    try:
        async with asyncio.timeout(LOOKUP_LIMIT):
            return [ip_address(each["host"]) for each in await resolver.resolve(host, 0, socket.AF_UNSPEC)]
    except (OSError, ValueError):  # TimeoutError is an OSError.
        return []
