"""`PageContext`: what all hosted pages need, built once for the process."""

from dataclasses import dataclass, field
from functools import cache
from typing import Final

from starlette.requests import Request

from guichet.checkout.page_limits import PageLimits
from guichet.checkout.page_request import PageRequest
from guichet.checkout.render import Renderer
from guichet.checkout.tokens import FormTokens
from guichet.clock import Clock
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Merchant
from guichet.domain.payments import Payment
from guichet.logs import log
from guichet.merchants import repository as merchants
from guichet.payments.awaited_polls import result_within
from guichet.payments.poll_schedule import next_question_at
from guichet.payments.polling import poll_payment_at_most

#: Seconds after which the page is shown even if the provider has not answered yet. Its answer is used when it arrives.
_WAIT: Final = 1.5


class PagePoller:
    """Polls pending payments for the pages, without making a customer wait for a slow provider."""

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    async def poll(self, payment: Payment) -> Payment:
        """The payment as known after at most `_WAIT` seconds. Its provider is asked at most once in five seconds, no
        matter how often and by which process the page is loaded; that of the test environment always."""
        now = self._ctx.clock.now()
        if payment.status != "pending" or (payment.env == "live" and next_question_at(payment, now) > now):
            return payment
        try:
            return await result_within(self._ctx, _WAIT, poll_payment_at_most(self._ctx, payment)) or payment
        except Exception as error:  # The page is shown all the same.
            log.error("page.poll_failed", error=repr(error))
            return payment


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
    poller: PagePoller
    simulator_path: str | None = None
    #: One for the whole process: reading the texts and compiling the templates takes 50 ms.
    renderer: Renderer = field(default_factory=cache(Renderer))

    def request(self, request: Request) -> PageRequest:
        return PageRequest(request, self.renderer, self.base_path, self.ctx.settings.time_zone)

    async def merchant(self, page: PageRequest, merchant_id: MerchantId) -> Merchant:
        """Whose page it is. From here on its dates are in that merchant's time zone."""
        found = require(await merchants.get(self.ctx.db, merchant_id))
        page.belongs_to(found)
        return found

    @property
    def clock(self) -> Clock:
        return self.ctx.clock
