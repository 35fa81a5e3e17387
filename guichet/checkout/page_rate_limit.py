"""How often one address may ask for pages. Separate from the API's limit (D40).

Tokens hold 131 bits or more and cannot be guessed; this keeps anybody from trying, and from firing forms in bursts.
Whole towns share one address behind a mobile operator's network, so what is counted strictly is what an honest customer
does not do: asking for pages that do not exist. Past that limit the address is refused before anything is looked up.
"""

from collections.abc import Sequence
from typing import Final

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter, SlidingWindowCounterRateLimiter
from starlette.requests import Request

from guichet import metrics
from guichet.server.rate_limit import client_address
from guichet.settings import Network

#: Known pages may be asked for this many times as often as unknown ones: a waiting page asks by itself.
KNOWN: Final = 20


class PageLimiter:
    """`per_minute` unknown pages an address may ask for; 0 switches the limit off."""

    def __init__(self, per_minute: int, trusted_proxies: Sequence[Network]) -> None:
        self._trusted = trusted_proxies
        # Exact where it counts; an estimate that keeps two numbers an address for the large limit.
        self._misses = MovingWindowRateLimiter(MemoryStorage())
        self._requests = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._missed = RateLimitItemPerMinute(per_minute, namespace="missed") if per_minute else None
        self._asked = RateLimitItemPerMinute(per_minute * KNOWN, namespace="asked") if per_minute else None

    def address(self, request: Request) -> str:
        """The client's, which is the peer's unless the peer is a trusted proxy."""
        return client_address(request.scope, self._trusted)

    def allows(self, address: str) -> bool:
        """Counts a request; False when it must be refused."""
        if self._missed is None or self._asked is None:
            return True
        allowed = self._misses.test(self._missed, address) and self._requests.hit(self._asked, address)
        if not allowed:
            metrics.RATE_LIMITED.labels("checkout").inc()
        return allowed

    def missed(self, address: str) -> None:
        """The request named a page that does not exist."""
        if self._missed is not None:
            self._misses.hit(self._missed, address)
