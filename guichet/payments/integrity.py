"""Integrity of an answer: the amount and currency that a provider states are compared with what it was asked for."""

from guichet.context import AppContext
from guichet.domain.money import plain, round_to_currency
from guichet.domain.payments import Payment, Refund
from guichet.logs import log
from guichet.payments import incidents
from guichet.providers.base import Succeeded


async def check(ctx: AppContext, subject: Payment | Refund, stated: Succeeded) -> bool:
    """Whether the provider moved exactly what was asked. If not: an incident is open and nothing may be booked."""
    total = subject.total_amount if isinstance(subject, Payment) else subject.amount
    asked = round_to_currency(total, subject.currency)
    if stated.amount == asked and stated.currency == subject.currency:
        return True
    amount = "no amount" if stated.amount is None else f"{plain(stated.amount)} {stated.currency}"
    detail = f"asked {plain(asked)} {subject.currency}, the provider states {amount}"
    log.error(
        "provider.mismatch", reference=subject.reference, provider_account=subject.provider_account, detail=detail
    )
    await incidents.report_about(ctx.db, subject, incidents.MISMATCH, detail, ctx.clock.now())
    return False
