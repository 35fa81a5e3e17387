"""A person confirms the number that gets a refund, where no provider states who paid (D94)."""

from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.payee import payer_number
from guichet.domain.payments import Refund
from guichet.logs import log
from guichet.payments import incidents, refund_repository, repository
from guichet.providers.fields import full_number


class PayeeNotConfirmed(Exception):
    """Why a confirmation was refused: one English sentence without a full stop. Nothing was changed."""


async def confirm_payee(ctx: AppContext, reference: str, number: str, *, actor: str, evidence: str) -> Refund:
    """Stores `number` as the payee of the live refund `reference`, a UUID, and makes the refund due at once.

    `actor`: who confirms. `evidence`: how that person knows who paid. Both are kept with the incident that is closed.
    Raises PayeeNotConfirmed.
    """
    if not (actor.strip() and evidence.strip()):
        raise PayeeNotConfirmed("Who confirms the number, and the evidence for it, must both be given")
    refund = await refund_repository.live_by_reference(ctx.db, reference)
    if refund is None:
        raise PayeeNotConfirmed(f"There is no live refund {reference}")
    payee = await _checked(ctx, refund, number)
    now = ctx.clock.now()
    detail = f"{actor.strip()} confirmed the number {payee}: {evidence.strip()}"
    async with ctx.db.transaction() as tx:
        confirmed = await refund_repository.confirm_payee(tx, refund.id, payee, now)
        if confirmed is None:
            raise PayeeNotConfirmed("The refund was already sent to a provider, or is final")
        await incidents.close_about(tx, refund, incidents.PAYEE_UNCONFIRMED, detail, now)
    log.info("refund.payee_confirmed", reference=reference, actor=actor)
    ctx.wakeups.refunds.set()
    return confirmed


async def _checked(ctx: AppContext, refund: Refund, number: str) -> str:
    """The number as digits with the country code. Raises PayeeNotConfirmed when it cannot be the payer's."""
    payment = require(await repository.by_id(ctx.db, refund.payment_id))
    if payer_number(payment) is not None:
        raise PayeeNotConfirmed("The number that paid is known: the refund goes there")
    mode = (await ctx.catalogues.of(payment.merchant_id)).by_operator(payment.operator)
    country_code = (mode.dial_code if mode else None) or ""
    payee = full_number(number)
    if payee is None:
        raise PayeeNotConfirmed(f"{number} is not a phone number with its country code, such as 2290197001234")
    if not payee.startswith(country_code):
        raise PayeeNotConfirmed(f"A number of {payment.operator} begins with {country_code}")
    return payee
