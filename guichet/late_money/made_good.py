"""A refund that failed through a fault of ours is made good: the payer is paid after all, because people decided so
(docs/decisions.md, "Late money").

A payment has one refund, and its failure was told: both statuses stay, and no event follows. The wallet gives `amount`,
the service the fee, into `suspense:late`; from there the money goes to the payer as late money does (`returns.py`),
under a new reference.
"""

from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import Reader, Transaction, require
from guichet.domain.audit_log import ActRefused
from guichet.domain.ids import LateResultId
from guichet.domain.late_results import SECOND_RETURN_AFTER, LateResult
from guichet.domain.money import round_to_currency
from guichet.domain.payments import Payment, Refund
from guichet.domain.refusals import Refusal
from guichet.late_money import repository as store
from guichet.late_money import return_repository
from guichet.payments import follow_up
from guichet.payments.outcomes import Mismatch, check_and_report_amount, refund_status
from guichet.providers.base import Accepted, AlreadyRefunded, FloatEmpty, NotFound, Refused, Succeeded


async def late_result(db: Reader, refund: Refund) -> LateResult | None:
    """The row by which a failed refund is asked about, or one that is not stored where it no longer is; None for a
    refund that cannot be made good, because it did not fail at a provider or something was found about it."""
    if refund.status != "failed" or not refund.held or refund.env != "live" or refund.provider_account is None:
        return None
    late = await store.about(db, refund)
    if late is None:
        row = follow_up.row(refund, require(refund.processed_at), refused=True)
        return LateResult(id=LateResultId(0), **row)
    return late if late.stage == "asking" else None


async def poll_failure(ctx: AppContext, late: LateResult, refund: Refund, payment: Payment) -> bool:
    """Whether the provider's answer about the failed refund is final: nothing was paid and nothing will be. Raises
    ActRefused when it was paid, may be paid, or failed less than a day ago and nobody knows."""
    now = ctx.clock.now()
    match await check_and_report_amount(ctx, refund, await refund_status(ctx, refund, payment, ask_only=True)):
        case Succeeded() | AlreadyRefunded():
            await follow_up.poll_now(ctx.db, refund, now)
            ctx.wakeups.late_results.set()
            raise ActRefused(Refusal.RETURN_ANSWERED(reference=refund.reference, stage="succeeded"))
        case Accepted() | Mismatch():
            raise ActRefused(Refusal.RETURN_UNDER_WAY(reference=refund.reference))
        case Refused() | FloatEmpty():
            return True
        case NotFound() if late.refused_by_provider:  # It refused the request, and kept nothing of it.
            return True
    if now - late.told_at < SECOND_RETURN_AFTER:
        raise ActRefused(Refusal.RETURN_UNKNOWN(reference=refund.reference))
    return False


async def record(
    tx: Transaction, refund: Refund, payment: Payment, now: Instant, *, is_final: bool
) -> LateResult | None:
    """The money of the refund, as found. `is_final`: see `poll_failure`; otherwise its last request is still polled.
    None when somebody decided, or the provider's answer was recorded, meanwhile."""
    await follow_up.schedule(tx, [(refund, require(refund.processed_at), True)])
    late = await store.about(tx, refund)
    if late is None or late.stage != "asking":
        return None
    total = round_to_currency(payment.total_amount, payment.currency)
    result = await store.advance(tx, late, "found", amount=total, now=now)
    if result is not None and not is_final:
        await return_repository.insert_sent(tx, result, refund, now)
    return result
