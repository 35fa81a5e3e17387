"""`PageContext`: what all hosted pages need, built once for the process."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from starlette.requests import Request

from guichet.checkout.page_limits import PageLimits
from guichet.checkout.tokens import FormTokens
from guichet.clock import Clock
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet.merchants import repository as merchants
from guichet.pages.page_request import PageRequest
from guichet.pages.render import Renderer

#: Where the script is served.
ASSETS_PATH: Final = "/pay/assets"


#: For the whole process: reading the texts and compiling the templates takes 50 ms.
@cache
def _renderer() -> Renderer:
    return Renderer(Path(__file__).parent, ASSETS_PATH)


@dataclass(frozen=True, slots=True)
class PageContext:
    """`public_url` has no slash at the end; `base_path` is its path. `simulator_path`: path of the simulated phone, in
    development only.
    """

    ctx: AppContext
    public_url: str
    base_path: str
    tokens: FormTokens
    limits: PageLimits
    simulator_path: str | None = None
    renderer: Renderer = field(default_factory=_renderer)

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
