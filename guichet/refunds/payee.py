"""The payee of a refund: where no provider states who paid, a person confirms the number that gets the money
(`domain/phone_numbers.py` says when one is needed)."""

from guichet.audit_log import entries as audit_log
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.audit_log import Act, Actor, ActRefused
from guichet.domain.payments import Refund
from guichet.domain.phone_numbers import payer_number
from guichet.domain.refusals import Refusal
from guichet.incidents import repository as incidents
from guichet.logs import log
from guichet.payments import repository
from guichet.providers.shared.fields import full_number
from guichet.refunds import pending


async def confirm(ctx: AppContext, refund: Refund, number: str, actor: Actor, evidence: str) -> Refund:
    """Stores `number` as the payee of a live refund, and makes the refund due at once. `evidence`: how the person knows
    who paid. Raises ActRefused."""
    payee = await check(ctx, refund, number)
    now = ctx.clock.now()
    act = Act(
        actor=actor,
        action="refund.payee_confirmed",
        subject_type="refund",
        subject=refund.reference,
        merchant_id=refund.merchant_id,
        reason=evidence,
        before={"payee_number": refund.payee_number},
        after={"payee_number": payee},
    )
    async with ctx.db.transaction() as tx:
        confirmed = await pending.confirm_payee(tx, refund.id, payee, now)
        if confirmed is None:
            raise ActRefused(Refusal.REFUND_SENT())
        await incidents.close_all(tx, refund.merchant_id, refund.reference, now)
        await audit_log.record(tx, act, now)
    log.info("refund.payee_confirmed", reference=refund.reference)
    ctx.wakeups.refunds.set()
    return confirmed


async def check(ctx: AppContext, refund: Refund, number: str) -> str:
    """The number as digits with the country code. Raises ActRefused when it cannot be the payer's."""
    if refund.env != "live":
        raise ActRefused(Refusal.NO_PAYEE())
    payment = require(await repository.by_id(ctx.db, refund.payment_id))
    if payer_number(payment) is not None:
        raise ActRefused(Refusal.PAYEE_KNOWN())
    mode = (await ctx.catalogues.of(payment.merchant_id)).by_operator(payment.operator)
    country_code = (mode.dial_code if mode else None) or ""
    payee = full_number(number)
    if payee is None:
        raise ActRefused(Refusal.NO_NUMBER(number=number))
    if not payee.startswith(country_code):
        raise ActRefused(Refusal.NUMBER_ELSEWHERE(operator=payment.operator, prefix=country_code))
    return payee
