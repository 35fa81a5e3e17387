"""Settlement: applies the outcome of a payment once and as a whole. `refunds/settlement.py` does it for refunds, and
`refunds/automatic.py` says what follows for a payment through a link.

Everything that follows from an outcome is written in one transaction: the new status, the postings, the use of a
payment link, the webhook rows, the end of an incident, the audit log's entry when a person decided it. The conditional
UPDATE of the status decides who applies an outcome: a second success, a late failure or a repeated callback finds
another status and changes nothing.

Outcomes that arrive at the same time share one transaction. Rows are always written in one order (refunds by id,
payments by id, daily totals, links by id), so that two transactions cannot deadlock.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from guichet import tracing
from guichet.audit_log import entries as audit_log
from guichet.clock import Instant
from guichet.context import AppContext, DeliveryBatch, HandOver
from guichet.db.batching import Result
from guichet.db.engine import Database, Transaction, require
from guichet.db.errors import StorageError
from guichet.db.lost_answers import repeat_when_lost
from guichet.domain import posting_rules
from guichet.domain.audit_log import Act, ActRefused
from guichet.domain.ids import LinkId
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import (
    CONFIRMED,
    INCIDENT_AGE,
    REFUND_DISBURSED,
    REFUND_REFUSED,
    REFUND_RETRY,
    REFUSED,
    REFUSED_AT_INITIATION,
    Payment,
    Refund,
    Settlement,
    Transition,
)
from guichet.domain.posting_rules import Movement, Posting
from guichet.domain.records import Record
from guichet.incidents import repository as incidents
from guichet.ledger import postings
from guichet.links import repository as links
from guichet.merchants import limits as merchant_limits
from guichet.payments import follow_up, repository
from guichet.providers.base import Refused, Succeeded
from guichet.schemas.payment import payment_object
from guichet.schemas.refund import refund_object
from guichet.webhooks import outbox
from guichet.webhooks.outbox import Event

Outcome = Succeeded | Refused
S = TypeVar("S", Payment, Refund)


class Change(Record, frozen=True):
    """A transition that was applied; `payment` and `refund` as they are stored now."""

    settlement: Settlement
    transition: Transition
    payment: Payment
    refund: Refund | None = None


#: Gets the payments that succeeded in this transaction, and their links as they are now, which stay locked.
AfterLinkPayments = Callable[
    [Transaction, DeliveryBatch, Sequence[Change], Mapping[LinkId, PaymentLink]], Awaitable[None]
]


def traced_outcome(payment_reference: str, outcome: Outcome) -> tracing.Attributes:
    return {tracing.PAYMENT: payment_reference, "guichet.outcome": type(outcome).__name__.lower()}


@tracing.traced("settle payment", lambda _, payment, outcome, **__: traced_outcome(payment.reference, outcome))
async def settle_payment(
    ctx: AppContext,
    payment: Payment,
    outcome: Outcome,
    *,
    at_initiation: bool = False,
    act: Act | None = None,
    overrides: bool = False,
) -> Payment:
    """Settles the payment and returns it as it is stored afterwards, even if another process settled it first. It is
    written by `settle_payments` below, to which `bootstrap.settlement_batches` gives those that come together.

    `at_initiation`: the response 402 reports the refusal, so no webhook is sent, unless a repeated request was answered
    meanwhile (D20). `act`: see `Settlement`. `overrides`: against the provider's answer.
    """
    refusal = REFUSED_AT_INITIATION if at_initiation else REFUSED
    transition = CONFIRMED if isinstance(outcome, Succeeded) else refusal
    settlement = await settlement_of(ctx, payment, transition, outcome, act=act, overrides=overrides)
    settled = await ctx.settlements.payments.add(settlement)
    if settled.link_id is not None:  # Its link may have had no use for it.
        ctx.wakeups.refunds.set()
    return settled


async def settlement_of(
    ctx: AppContext,
    payment: Payment,
    transition: Transition,
    outcome: Outcome,
    *,
    refund: Refund | None = None,
    act: Act | None,
    overrides: bool,
) -> Settlement:
    """The settlement of `refund` if it is given, otherwise of `payment`."""
    account = posting_rules.MANUAL_SETTLEMENT if overrides else ctx.registry.float_account(payment, refund or payment)
    return Settlement(
        payment=payment,
        refund=refund,
        transition=transition,
        catalogue=await ctx.catalogues.of(payment.merchant_id),
        now=ctx.clock.now(),
        account=account,
        failure_reason=outcome.reason if isinstance(outcome, Refused) else None,
        provider_reference=outcome.provider_reference if isinstance(outcome, Succeeded) else None,
        act=act,
        was_sent=_was_sent(ctx, refund or payment),
        refused_by_provider=isinstance(outcome, Refused) and outcome.stated,
        payer_number=outcome.payer_number if isinstance(outcome, Succeeded) else None,
    )


def _was_sent(ctx: AppContext, subject: Payment | Refund) -> bool:
    """Whether a provider has been asked to move money for it, so that it may still do so after a failure."""
    unsent = isinstance(subject, Refund) and subject.sent_at is None
    return (
        subject.provider_account is not None and not unsent and ctx.registry.provider(subject.provider_account).remote
    )


async def settle_payments(
    db: Database, hand_over: HandOver, after_link_payments: AfterLinkPayments, batch: Sequence[Settlement]
) -> Sequence[Result[Payment]]:
    """As `settle_batch`. `after_link_payments`: what follows where payments through links succeeded."""
    return await settle_batch(db, hand_over, batch, partial(_settle_together, after_link_payments))


async def settle_batch(
    db: Database,
    hand_over: HandOver,
    batch: Sequence[Settlement],
    settle_together: Callable[[Transaction, DeliveryBatch, Sequence[Settlement]], Awaitable[list[S]]],
) -> Sequence[Result[S]]:
    """Applies settlements in one transaction. Returns for each its payment or refund as it is stored afterwards, or the
    error that concerns it alone: if the transaction fails, each settlement is tried again in its own. Their webhooks
    leave after the commit."""

    async def in_transaction() -> list[S]:
        with hand_over.after_commit() as deliveries:
            async with db.transaction() as tx:
                return await settle_together(tx, deliveries, batch)

    try:
        return await repeat_when_lost(db, in_transaction)
    except (StorageError, ActRefused) as error:
        if len(batch) == 1:
            return [error]
    return [
        result for settlement in batch for result in await settle_batch(db, hand_over, [settlement], settle_together)
    ]


async def _settle_together(
    after_link_payments: AfterLinkPayments, tx: Transaction, deliveries: DeliveryBatch, batch: Sequence[Settlement]
) -> list[Payment]:
    """The payments as they are stored now."""
    # The first of several settlements of the same payment is the one that is applied.
    settlements = {settlement.payment.id: settlement for settlement in reversed(batch)}
    payments = await repository.finish(tx, [(settlement, settlement.transition) for settlement in settlements.values()])
    changes = [
        Change(settlement, settlement.transition, payments[payment_id])
        for payment_id, settlement in settlements.items()
        if payment_id in payments
    ]
    links_now = await write_consequences(tx, deliveries, changes)
    paid = [change for change in changes if change.transition is CONFIRMED and change.payment.link_id is not None]
    if paid:
        await after_link_payments(tx, deliveries, paid, links_now)
    return [
        # As changed in this transaction, or else as another transaction stored it.
        payments.get(settlement.payment.id) or require(await repository.by_id(tx, settlement.payment.id))
        for settlement in batch
    ]


async def write_consequences(
    tx: Transaction, deliveries: DeliveryBatch, changes: Sequence[Change]
) -> dict[LinkId, PaymentLink]:
    """Everything that follows from transitions which were applied in this transaction, of payments or of refunds.
    Returns the links whose uses ended."""
    failed = [change.payment for change in changes if change.transition.target == "failed" and change.refund is None]
    if failed:
        await merchant_limits.give_back(tx, failed)
    await postings.post(tx, await _movements(tx, changes))
    links_now = await _end_link_uses(tx, changes)
    await outbox.emit(tx, [event for change in changes if (event := _event(change))], deliveries)
    await _close_incidents(tx, changes)
    await _follow_up_failures(tx, changes)
    await _record_acts(tx, changes)
    return links_now


async def _movements(tx: Transaction, changes: Sequence[Change]) -> list[Movement]:
    """The postings of all changes. Frozen wallets are looked up only for payments that succeeded (D24)."""
    collecting = {change.payment.merchant_id for change in changes if change.transition is CONFIRMED}
    live = {change.payment.merchant_id for change in changes if change.payment.env == "live"}
    frozen = await postings.frozen_wallets(tx, collecting & live) if collecting & live else set()
    movements = []
    for change in changes:
        payment = change.payment
        wallet = payment.merchant_id, payment.env, payment.currency
        cause, entries = _postings(change, wallet_is_frozen=wallet in frozen)
        if entries:
            subject_id = payment.id if change.refund is None else change.refund.id
            movements.append(Movement(*wallet, cause, subject_id, entries, change.settlement.now))
    return movements


def _postings(change: Change, *, wallet_is_frozen: bool) -> tuple[str, list[Posting]]:
    """The cause and the postings of a transition; no postings if it moves no money."""
    payment = change.payment
    money = change.settlement.account, payment.amount, payment.fee_amount, payment.currency
    if change.transition is CONFIRMED:
        return posting_rules.COLLECTED, posting_rules.collection(*money, to_suspense=wallet_is_frozen)
    if change.transition is REFUND_DISBURSED:
        return posting_rules.DISBURSED, posting_rules.refund_disbursed(*money)
    if change.transition is REFUND_REFUSED and require(change.refund).held:
        return posting_rules.RELEASED, posting_rules.refund_release(payment.amount)
    return "", []


def _event(change: Change) -> Event | None:
    """The webhook event of a transition; None if it has none."""
    transition, settlement = change.transition, change.settlement
    if transition is REFUSED_AT_INITIATION and change.payment.answered_pending:
        transition = REFUSED  # Somebody was told "pending" and does not see the 402.
    if transition.event is None:
        return None
    payment, refund = change.payment, change.refund
    if refund is not None:
        return Event(transition.event, payment, refund_object(refund), settlement.now)
    mode = settlement.catalogue.by_operator(payment.operator)
    return Event(transition.event, payment, payment_object(payment, mode), settlement.now)


async def _end_link_uses(tx: Transaction, changes: Iterable[Change]) -> dict[LinkId, PaymentLink]:
    """A success completes the use of a payment link, a failure gives it back (D30). A payment that has lost its use to
    another one has nothing to give back; its success is counted all the same."""
    ended = [
        links.EndedPayment(link_id, change.payment.link_reserved_until is not None, change.settlement.succeeds)
        for change in changes
        if change.settlement.refund is None and (link_id := change.payment.link_id) is not None
    ]
    return await links.end_uses(tx, ended) if ended else {}


async def _close_incidents(tx: Transaction, changes: Iterable[Change]) -> None:
    """Closes incidents about payments and refunds that are final now, and all about what a person decided."""
    for change in changes:
        subject, now = change.refund or change.payment, change.settlement.now
        if change.settlement.act is not None:
            await incidents.close_all(tx, subject.merchant_id, subject.reference, now)
        if _may_have_incident(subject, now):
            await incidents.close_settled(tx, subject.merchant_id, subject.reference, now)


def _may_have_incident(subject: Payment | Refund, now: Instant) -> bool:
    """One is opened when a payment or refund has been pending for too long, or waited for a person or for our balance
    with a provider. Others settle without a statement for it."""
    longest = REFUND_RETRY if isinstance(subject, Refund) else INCIDENT_AGE
    waited = isinstance(subject, Refund) and (subject.request_number > 0 or subject.ambiguous_code is not None)
    return waited or now - subject.created_at >= longest


async def _follow_up_failures(tx: Transaction, changes: Iterable[Change]) -> None:
    """A provider may still move the money of what failed: it is asked again later (`late_money/results.py`)."""
    failed = [
        (change.refund or change.payment, change.settlement.now, change.settlement.refused_by_provider)
        for change in changes
        if change.transition.target == "failed" and change.settlement.was_sent
    ]
    if failed:
        await follow_up.schedule(tx, failed)


async def _record_acts(tx: Transaction, changes: Iterable[Change]) -> None:
    for change in changes:
        settlement = change.settlement
        if settlement.act is not None and (change.refund is not None or settlement.refund is None):
            await audit_log.record(tx, settlement.act, settlement.now)
