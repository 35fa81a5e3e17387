"""Polls pending payments for the pages that people look at."""

from typing import Final

from guichet.context import AppContext
from guichet.domain.payments import Payment
from guichet.logs import log
from guichet.payments.awaited_polls import result_within
from guichet.payments.poll_schedule import next_question_at
from guichet.payments.polling import poll_payment_at_most

#: Seconds after which the page is shown even if the provider has not answered yet. Its answer is used when it arrives.
_WAIT: Final = 1.5


class PagePoller:
    """Polls pending payments for the pages, without making anybody wait for a slow provider."""

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
