"""Integrity of a provider's answer: it must state the amount and currency that were requested."""

from guichet.context import AppContext
from guichet.domain.messages import Amount
from guichet.domain.money import round_to_currency
from guichet.domain.payments import Payment, Refund
from guichet.incidents import repository as incidents
from guichet.incidents.details import IncidentDetail
from guichet.logs import log
from guichet.providers.base import Succeeded


async def check(ctx: AppContext, subject: Payment | Refund, stated: Succeeded) -> bool:
    """Whether the provider moved exactly the amount that was requested.

    If not, opens an incident and logs `provider.mismatch`; nothing may then be posted.
    """
    total = subject.total_amount if isinstance(subject, Payment) else subject.amount
    requested = round_to_currency(total, subject.currency)
    if stated.amount == requested and stated.currency == subject.currency:
        return True
    asked = Amount(requested, subject.currency)
    detail = IncidentDetail.NO_AMOUNT(asked=asked)
    if stated.amount is not None:
        detail = IncidentDetail.OTHER_AMOUNT(asked=asked, stated=Amount(stated.amount, stated.currency))
    facts = {"reference": subject.reference, "provider_account": subject.provider_account, "detail": detail}
    if subject.env == "live":
        log.error("provider.mismatch", **facts)
    else:  # A merchant's developer wanted it (`test_scenario`): it must not wake the staff.
        log.info("provider.mismatch", **facts)
    await incidents.report_about(ctx.db, subject, incidents.MISMATCH, detail, ctx.clock.now())
    return False
