"""Whether a host could be connected to, by what its name leads to at present."""

import asyncio
import socket
from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

from guichet.http_client.address_guard import Address

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver

#: Seconds that the lookup of a name may take.
LOOKUP_LIMIT: Final = 2.0


class Unreachable(NamedTuple):
    """`is_refused`: the guard permits none of its addresses. Otherwise no address was found."""

    host: str
    is_refused: bool


async def why_unreachable(
    host: str, permits: Callable[[Address], bool], resolver: "AbstractResolver"
) -> Unreachable | None:
    """None if one of the addresses of `host` may be connected to. Raises nothing."""
    addresses = await _addresses(host, resolver)
    if any(permits(address) for address in addresses):
        return None
    return Unreachable(host, is_refused=bool(addresses))


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
