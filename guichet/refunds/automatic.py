"""Refunds that nobody asks for: of a payment that succeeds though its link has no use for it (docs/decisions.md,
"Automatic refunds").

    link_paid        the link, of one use, was paid before
    sale_cancelled   the sale at the cash desk was cancelled
    attempt_paid     another payment succeeded of those that the customer began in each other's place

They are recorded in the transaction that settles the payment, which holds the lock of its link: of two successes at the
same time one comes second, and each payment has one refund. Nothing of the wallet is held then. The worker does that
before it sends the refund, and where it cannot yet, the refund waits, with its incident open.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from guichet.clock import Instant, later
from guichet.context import AppContext, DeliveryBatch
from guichet.db.engine import Transaction, Writer, require
from guichet.domain.errors import Conflict
from guichet.domain.ids import LinkId
from guichet.domain.messages import Amount
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import REFUND_RETRY, AutomaticReason, Payment, Refund
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.logs import log
from guichet.payments import attempts, checkout_sessions
from guichet.payments.settlement import Change
from guichet.refunds import pending
from guichet.refunds import repository as refund_repository
from guichet.refunds.holds import lock_wallet, post_hold

#: The reason of the refund, which the merchant's program reads, and what the incident says.
_REASONS: Final[Mapping[AutomaticReason, tuple[str, IncidentDetail]]] = {
    "link_paid": (
        "Remboursement automatique : ce lien, d'un seul usage, était déjà payé",
        IncidentDetail.PAID_LINK_PAID_AGAIN,
    ),
    "sale_cancelled": (
        "Remboursement automatique : la vente avait été annulée",
        IncidentDetail.CANCELLED_SALE_PAID,
    ),
    "attempt_paid": (
        "Remboursement automatique : le client avait déjà payé autrement",
        IncidentDetail.SECOND_ATTEMPT_PAID,
    ),
}
#: Why the wallet gives nothing yet.
_OBSTACLES: Final[Mapping[str, IncidentDetail]] = {
    "wallet_not_active": IncidentDetail.REFUND_AWAITS_WALLET,
    "dispute_open": IncidentDetail.REFUND_AWAITS_DISPUTE,
    "dispute_lost": IncidentDetail.REFUND_AWAITS_DISPUTE,
}


async def after_link_payments(
    pages_url: str,
    tx: Transaction,
    deliveries: DeliveryBatch,
    paid: Sequence[Change],
    links: Mapping[LinkId, PaymentLink],
) -> None:
    """What follows where payments through links succeeded (see `payments.settlement.AfterLinkPayments`): refunds, and
    checkout sessions that are paid by them. `pages_url`: the public address of the link pages."""
    for change in paid:
        together = [other.payment for other in paid if other.payment.link_id == change.payment.link_id]
        now = change.settlement.now
        unneeded = await refund_if_unneeded(tx, change.payment, together, links, now)
        if change.payment.session_reference is not None and not unneeded:
            await checkout_sessions.complete(tx, change.payment, now, pages_url)
            deliveries.needs_claim = True


async def refund_if_unneeded(
    tx: Transaction, payment: Payment, together: Sequence[Payment], links: Mapping[LinkId, PaymentLink], now: Instant
) -> bool:
    """Records the refund of a payment that succeeded in this transaction if its link has no use for it, and whether
    that is so. `together`: all that succeeded in it through this link, which this transaction has locked; `links`: as
    they are now."""
    reason = await _reason(tx, payment, links[require(payment.link_id)], together)
    if reason is None:
        return False
    sentence, detail = _REASONS[reason]
    refund = refund_repository.new_refund(payment, sentence, now, reason)
    if await refund_repository.insert_new(tx, refund) is not None:
        log.warning("refund.automatic", reference=refund.reference, payment=payment.reference, reason=reason)
        await _report(tx, payment, detail, now)
    return True


async def _reason(
    tx: Transaction, payment: Payment, link: PaymentLink, together: Sequence[Payment]
) -> AutomaticReason | None:
    if link.cancelled_at is not None:
        return "sale_cancelled"
    later_ones = {other.id for other in together if other.id > payment.id}
    if payment.attempt_of is not None:
        paid = await attempts.paid_attempts(tx, payment)
        if any(paid_id != payment.id and paid_id not in later_ones for paid_id in paid):
            return "attempt_paid"
    paid_before = link.uses_count - 1 - len(later_ones)
    return "link_paid" if link.max_uses == 1 and paid_before > 0 else None


async def hold(ctx: AppContext, refund: Refund, payment: Payment) -> Refund | None:
    """The refund after the merchant's part was taken from the wallet for it; None when that is not possible now, and it
    waits."""
    now = ctx.clock.now()
    try:
        async with ctx.db.transaction() as tx:
            wallet = await lock_wallet(tx, payment, now)
            if wallet.balance >= payment.amount:
                held = await pending.mark_held(tx, refund.id)
                if held is not None:
                    await post_hold(tx, payment, refund.id, now)
                return held
        obstacle = IncidentDetail.REFUND_AWAITS_BALANCE
    except Conflict as conflict:
        obstacle = _OBSTACLES[require(conflict.reason)]
    await wait(ctx, refund, payment, obstacle)
    return None


async def wait(ctx: AppContext, refund: Refund, payment: Payment, obstacle: IncidentDetail) -> None:
    """It was not sent, and is tried again in an hour. Its incident says what it waits for, and opens again."""
    now = ctx.clock.now()
    await _report(ctx.db, payment, obstacle, now)
    await pending.mark_not_sent(ctx.db, refund, later(now, REFUND_RETRY))


async def _report(writer: Writer, payment: Payment, detail: IncidentDetail, now: Instant) -> None:
    total = Amount(payment.total_amount, payment.currency)
    await incidents.report_about(writer, payment, incidents.AUTOMATIC_REFUND, detail(total=total), now)
