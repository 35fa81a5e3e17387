"""Whether an operator's success is ours: amount and currency that come back are compared with what was asked."""

from guichet.context import AppContext
from guichet.domain.money import plain, round_to_currency
from guichet.domain.payments import Payment
from guichet.logs import log
from guichet.payments import incidents
from guichet.providers.base import Succeeded


async def confirm_amount(ctx: AppContext, payment: Payment, answer: Succeeded, subject: str, reference: str) -> bool:
    """False, with an incident, when the operator moved something else than what was asked: nothing is booked.

    `subject` and `reference` name what was asked for: the payment, or its refund (both move the same total).
    """
    asked = round_to_currency(payment.total_amount, payment.currency)
    if answer.amount == asked and answer.currency == payment.currency:
        return True
    stated = "no amount" if answer.amount is None else f"{plain(answer.amount)} {answer.currency}"
    detail = f"asked {plain(asked)} {payment.currency}, the operator states {stated}"
    log.error("operator.mismatch", reference=reference, provider_account=payment.provider_account, detail=detail)
    await incidents.report(
        ctx.db,
        payment.merchant_id,
        payment.env,
        incidents.MISMATCH,
        subject,
        reference,
        payment.provider_account,
        detail,
        ctx.clock.now(),
    )
    return False
