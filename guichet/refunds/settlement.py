"""Settlement of refunds, as that of payments (`payments/settlement.py`). A success makes its payment `refunded` too."""

from collections.abc import Iterable, Sequence

from guichet import tracing
from guichet.context import AppContext, DeliveryBatch, HandOver
from guichet.db.batching import Result
from guichet.db.engine import Database, Transaction, require
from guichet.domain.audit_log import Act
from guichet.domain.ids import PaymentId, RefundId
from guichet.domain.messages import Amount
from guichet.domain.payments import REFUND_DISBURSED, REFUND_REFUSED, REFUNDED, Payment, Refund, Settlement
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.payments import repository as payment_repository
from guichet.payments.settlement import (
    Change,
    Outcome,
    settle_batch,
    settlement_of,
    traced_outcome,
    write_consequences,
)
from guichet.providers.base import Succeeded
from guichet.refunds import repository


@tracing.traced(
    "settle refund", lambda _, refund, __, outcome, **___: traced_outcome(refund.payment_reference, outcome)
)
async def settle_refund(
    ctx: AppContext,
    refund: Refund,
    payment: Payment,
    outcome: Outcome,
    *,
    act: Act | None = None,
    overrides: bool = False,
) -> Refund:
    """Settles the refund and returns it as it is stored afterwards, even if another process settled it first. `act` and
    `overrides`: see `settle_payment`."""
    transition = REFUND_DISBURSED if isinstance(outcome, Succeeded) else REFUND_REFUSED
    settlement = await settlement_of(ctx, payment, transition, outcome, refund=refund, act=act, overrides=overrides)
    return await ctx.settlements.refunds.add(settlement)


async def settle_refunds(db: Database, hand_over: HandOver, batch: Sequence[Settlement]) -> Sequence[Result[Refund]]:
    """As `payments.settlement.settle_batch`."""
    return await settle_batch(db, hand_over, batch, _settle_together)


async def _settle_together(tx: Transaction, deliveries: DeliveryBatch, batch: Sequence[Settlement]) -> list[Refund]:
    # The first of several settlements of the same refund is the one that is applied.
    settlements = {require(settlement.refund).id: settlement for settlement in reversed(batch)}
    refunds = await repository.finish(tx, settlements)
    # A refund that was just disbursed proves that its payment had succeeded: nothing else can apply to it.
    disbursed = [settlements[refund.id] for refund in refunds.values() if refund.status == "succeeded"]
    refunded = await payment_repository.finish(tx, [(settlement, REFUNDED) for settlement in disbursed])
    changes = _changes(settlements.values(), refunds, refunded)
    await write_consequences(tx, deliveries, changes)
    await _report_automatic(tx, changes)
    return [
        # As changed in this transaction, or else as another transaction stored it.
        refunds.get(require(settlement.refund).id) or require(await repository.by_id(tx, require(settlement.refund).id))
        for settlement in batch
    ]


def _changes(
    settlements: Iterable[Settlement], refunds: dict[RefundId, Refund], refunded: dict[PaymentId, Payment]
) -> list[Change]:
    """The changes of refunds; that of a disbursed one is followed by its payment's."""
    changes = []
    for settlement in settlements:
        if (refund := refunds.get(require(settlement.refund).id)) is None:
            continue
        changes.append(Change(settlement, settlement.transition, settlement.payment, refund))
        if payment := refunded.get(refund.payment_id):
            changes.append(Change(settlement, REFUNDED, payment))
    return changes


async def _report_automatic(tx: Transaction, changes: Iterable[Change]) -> None:
    """One that nobody asked for was refused: the customer's money is still here, and a person must know."""
    for change in changes:
        refund, settlement = change.refund, change.settlement
        if refund is not None and refund.automatic is not None and refund.status == "failed" and settlement.act is None:
            detail = IncidentDetail.AUTOMATIC_REFUND_FAILED(total=Amount(refund.amount, refund.currency))
            await incidents.report_about(tx, change.payment, incidents.AUTOMATIC_REFUND, detail, settlement.now)
