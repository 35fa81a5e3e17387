"""What every page needs, built once, and the questions pages ask the operators through it."""

import asyncio
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from starlette.requests import Request

from guichet.checkout.otp_codes import CodeLimiter
from guichet.checkout.page_rate_limit import PageLimiter
from guichet.checkout.page_request import Visit
from guichet.checkout.render import Renderer
from guichet.checkout.tokens import FormTokens
from guichet.clock import SECOND, Clock, Instant
from guichet.context import AppContext
from guichet.domain.payments import Payment
from guichet.logs import log
from guichet.payments.polling import poll_payment

#: A waiting page asks its operator at most this often, whoever looks at it and however often.
_ASK_EVERY: Final = 5 * SECOND
#: A customer sees the page after this many seconds even if the operator has not answered; the answer still counts.
_PATIENCE: Final = 1.5
#: Payments remembered as just asked about; forgetting one costs one question.
_REMEMBERED: Final = 10_000


class Asker:
    """Asks about pending payments for the pages, without making a customer wait for a slow operator."""

    def __init__(self, ctx: AppContext) -> None:
        self._core = ctx
        self._asked: dict[int, Instant] = {}
        self._running: set[asyncio.Task[Payment]] = set()

    async def ask(self, payment: Payment) -> Payment:
        """The payment as known after at most `_PATIENCE` seconds."""
        now = self._core.clock.now()
        if payment.status != "pending" or now - self._asked.get(payment.id, 0) < _ASK_EVERY:
            return payment
        if len(self._asked) >= _REMEMBERED:
            self._asked.clear()
        self._asked[payment.id] = now
        task = asyncio.create_task(poll_payment(self._core, payment))
        self._running.add(task)
        task.add_done_callback(self._finished)
        await asyncio.wait({task}, timeout=_PATIENCE)
        answered = task.done() and not task.cancelled() and task.exception() is None
        return task.result() if answered else payment

    def _finished(self, task: "asyncio.Task[Payment]") -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("page.ask_failed", error=repr(error))


@dataclass(frozen=True, slots=True)
class Desk:
    """`public_url` without a slash at the end; `simulator` is the phone simulator's path in development."""

    ctx: AppContext
    public_url: str
    base: str
    tokens: FormTokens
    limiter: PageLimiter
    codes: CodeLimiter
    asker: Asker
    simulator: str | None = None
    #: The same one for the whole process: reading the texts and compiling the templates takes 50 ms.
    renderer: Renderer = field(default_factory=cache(Renderer))

    def visit(self, request: Request) -> Visit:
        return Visit(request, self.renderer, self.base)

    @property
    def clock(self) -> Clock:
        return self.ctx.clock
