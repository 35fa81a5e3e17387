"""`PageContext`: what all hosted pages need, built once for the process; and how often one client may ask for pages,
and for codes by text message (D40)."""

from functools import cache
from pathlib import Path
from typing import Final

from msgspec import field
from starlette.requests import Request

from guichet import metrics
from guichet.checkout.tokens import FormTokens, PaymentCookie
from guichet.clock import Clock
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.ids import LinkId, MerchantId
from guichet.domain.merchants import Merchant
from guichet.domain.phone_numbers import written_forms
from guichet.domain.records import Record
from guichet.merchants import repository as merchants
from guichet.pages.page_request import PageRequest
from guichet.pages.render import Renderer
from guichet.server.rate_limit import RateLimiter
from guichet.server.rate_limits import (
    OTP_CODES_PER_ADDRESS,
    OTP_CODES_PER_LINK,
    OTP_CODES_PER_PHONE,
    OTP_CODES_PER_PHONE_A_DAY,
    pages_limit,
    unknown_pages_limit,
)
from guichet.server.request_context import ClientAddresses
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

    async def count_otp_code(self, request: Request, phone_number: str, link_id: LinkId) -> int | None:
        """Counts a code by text message, whether pages are limited or not. None when it may be sent, otherwise the
        seconds after which one may be sent again."""
        number, _ = written_forms(phone_number)
        for limit, key in (
            (OTP_CODES_PER_ADDRESS, self._address(request)),
            (OTP_CODES_PER_PHONE, number),
            (OTP_CODES_PER_PHONE_A_DAY, number),
            (OTP_CODES_PER_LINK, str(link_id)),
        ):
            allowance = await self._limiter.count(limit, key)
            if not allowance.allowed:
                metrics.RATE_LIMITED.labels(limit.name).inc()
                return allowance.retry_after
        return None

    def _address(self, request: Request) -> str:
        return self._addresses.counted(request.scope)


#: Where the script is served.
ASSETS_PATH: Final = "/pay/assets"


@cache
def checkout_renderer() -> Renderer:
    """For the whole process: reading the texts takes a while."""
    return Renderer(Path(__file__).parent, ASSETS_PATH)


class PageContext(Record, frozen=True):
    """`public_url` has no slash at the end; `base_path` is its path. `simulator_path`: path of the simulated phone, in
    development only.
    """

    ctx: AppContext
    public_url: str
    base_path: str
    tokens: FormTokens
    cookie: PaymentCookie
    limits: PageLimits
    simulator_path: str | None = None
    renderer: Renderer = field(default_factory=checkout_renderer)

    def request(self, request: Request) -> PageRequest:
        return PageRequest(request, self.renderer, self.base_path, self.ctx.settings.time_zone)

    async def merchant(self, page: PageRequest, merchant_id: MerchantId) -> Merchant:
        """Whose page it is. From here on its dates are in that merchant's time zone."""
        merchant = require(await merchants.get(self.ctx.db, merchant_id))
        page.belongs_to(merchant)
        return merchant

    @property
    def clock(self) -> Clock:
        return self.ctx.clock
