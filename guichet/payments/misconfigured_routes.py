"""A route of ours that does not work is our fault and no refusal by the customer: the staff get an incident (D121)."""

from guichet.context import AppContext
from guichet.domain.failures import OUR_FAULTS
from guichet.domain.messages import Answer
from guichet.domain.payments import Payment
from guichet.incidents import repository as incidents
from guichet.incidents.details import IncidentDetail
from guichet.logs import log


async def report(ctx: AppContext, payment: Payment, raw: Answer) -> None:
    """Opens an incident about the account if `payment`, as it is stored after its refusal, failed through a fault of
    ours; one for each account, however many payments fail. `raw` is what the provider said, empty without one."""
    account = payment.provider_account
    if account is None or payment.status != "failed" or payment.failure_reason not in OUR_FAULTS:
        return
    log.error("route.misconfigured", reference=payment.reference, provider_account=account, raw=raw)
    provider = ctx.registry.provider(account)
    if provider.names_merchants and await ctx.provider_merchants.id_of(account, payment.merchant_id) is None:
        return  # That has an incident of its own (`provider_calls.name_merchant`).
    detail = IncidentDetail.NOT_SERVED(operator=payment.operator)
    if raw:
        detail = IncidentDetail.MISCONFIGURED(operator=payment.operator, answer=raw)
    await incidents.report_once_for_account(ctx.db, payment, incidents.MISCONFIGURED_ROUTE, detail, ctx.clock.now())
