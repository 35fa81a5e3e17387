"""How often one client may ask for pages, and for codes by text message (D40; the limits stand in
`server/rate_limits.py`).
"""

from starlette.requests import Request

from guichet import metrics
from guichet.server.client_address import ClientAddresses
from guichet.server.rate_limiter import RateLimiter
from guichet.server.rate_limits import OTP_CODES_PER_ADDRESS, OTP_CODES_PER_PHONE, pages_limit, unknown_pages_limit
from guichet.settings import Settings


class PageLimits:
    """The limits of the hosted pages, by the address of a request."""

    def __init__(self, settings: Settings, limiter: RateLimiter) -> None:
        self._limiter = limiter
        self._addresses = ClientAddresses.of(settings)
        self._pages = pages_limit(settings)
        self._unknown_pages = unknown_pages_limit(settings)

    async def allows(self, request: Request) -> bool:
        """Counts a request; False when it must be refused, before anything is looked up for it."""
        address = self._address(request)
        allowed = await self._limiter.has_room(self._unknown_pages, address) and await self._limiter.hit(
            self._pages, address
        )
        if not allowed:
            metrics.RATE_LIMITED.labels(self._pages.name).inc()
        return allowed

    async def count_unknown(self, request: Request) -> None:
        """The request named a page that does not exist."""
        await self._limiter.hit(self._unknown_pages, self._address(request))

    async def allows_otp_code(self, request: Request, phone_number: str) -> bool:
        """Counts a code by text message, whether pages are limited or not; False when none may be sent."""
        address = self._address(request)
        return await self._limiter.hit(OTP_CODES_PER_ADDRESS, address) and await self._limiter.hit(
            OTP_CODES_PER_PHONE, phone_number
        )

    def _address(self, request: Request) -> str:
        return self._addresses.counted(request.scope)
