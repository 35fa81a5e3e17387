"""So many requests a minute for one client address, in a sliding window (spec, "Limits"; D40)."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers
from starlette.types import Scope

from guichet.settings import Network

_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Allowance:
    """`remaining` requests are left in the window; `retry_after` (seconds) is 0 unless the request is refused."""

    allowed: bool
    remaining: int
    retry_after: int


class RateLimiter:
    """Counts in this process's memory. `per_minute` 0 switches it off."""

    def __init__(self, per_minute: int, trusted_proxies: Sequence[Network], name: str) -> None:
        self.per_minute: Final = per_minute
        self._name = name
        self._trusted = trusted_proxies
        self._item = RateLimitItemPerMinute(max(1, per_minute))
        self._window = MovingWindowRateLimiter(MemoryStorage())

    async def take(self, scope: Scope) -> Allowance | None:
        """Counts this request; None when the limit is off."""
        if not self.per_minute:
            return None
        address = client_address(scope, self._trusted)
        allowed = await self._window.hit(self._item, self._name, address)
        stats = await self._window.get_window_stats(self._item, self._name, address)
        retry_after = 0 if allowed else max(1, math.ceil(stats.reset_time - time.time()))
        return Allowance(allowed, stats.remaining, retry_after)


def client_address(scope: Scope, trusted: Sequence[Network]) -> str:
    """The peer's address; behind trusted proxies, the nearest address in `X-Forwarded-For` that is not one of them."""
    client = scope.get("client")
    peer = client[0] if client else _UNKNOWN
    if not trusted or not _within(peer, trusted):
        return peer
    forwarded = Headers(scope=scope).getlist("x-forwarded-for")
    for hop in reversed([part.strip() for line in forwarded for part in line.split(",")]):
        if not _is_address(hop):
            return peer
        peer = hop
        if not _within(hop, trusted):
            return hop
    return peer


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _within(text: str, networks: Sequence[Network]) -> bool:
    return _is_address(text) and any(ip_address(text) in network for network in networks)
