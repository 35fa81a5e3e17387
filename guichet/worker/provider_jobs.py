"""Asks operators what became of payments, and sends and follows refunds."""

from collections.abc import Sequence
from typing import Final

from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.work_queue import Claim
from guichet.domain.payments import Payment, Refund
from guichet.payments import refund_repository as refunds
from guichet.payments import repository as payments
from guichet.payments.polling import poll_due_payment
from guichet.payments.refund import disburse

#: Questions to one operator at once, and refunds: a dead one delays no other.
PER_PROVIDER_ACCOUNT: Final = 128


class Questions:
    """Asks operators about payments whose next question is due."""

    def __init__(self, ctx: AppContext) -> None:
        self._core = ctx

    async def claim(
        self, now: Instant, until: Instant, most: int, saturated: Sequence[Sequence[str]]
    ) -> Claim[Payment]:
        return await payments.claim_due(self._core.db, now, until, most, saturated)

    def partition_key(self, job: Payment) -> tuple[str, ...]:
        return (job.provider_account or "",)

    async def work(self, job: Payment) -> None:
        await poll_due_payment(self._core, job)


class Disbursements:
    """Sends refunds, and asks what became of those that were sent."""

    def __init__(self, ctx: AppContext) -> None:
        self._core = ctx

    async def claim(self, now: Instant, until: Instant, most: int, saturated: Sequence[Sequence[str]]) -> Claim[Refund]:
        return await refunds.claim_due(self._core.db, now, until, most, saturated)

    def partition_key(self, job: Refund) -> tuple[str, ...]:
        return (job.provider_account or "",)

    async def work(self, job: Refund) -> None:
        await disburse(self._core, job)
