"""What a person decides about late money (`guichet late-money resolve`).

Each decision is one transaction: the row's next stage, the postings, the end of the incident, the audit log's entry.
"""

from typing import Final, Literal

from sqlalchemy import bindparam, select

from guichet.audit_log import entries as audit_log
from guichet.clock import DAY, Instant, earlier, later
from guichet.context import AppContext
from guichet.db.engine import Database, Reader, Transaction, require
from guichet.db.references import new_reference
from guichet.db.tables import payments
from guichet.domain import posting_rules
from guichet.domain.audit_log import Act, Actor, ActRefused
from guichet.domain.late_results import LateResult, LateStage
from guichet.domain.money import Hundredths
from guichet.domain.payments import Payment, SubjectType
from guichet.domain.phone_numbers import payer_number
from guichet.domain.posting_rules import Movement, Posting
from guichet.domain.refusals import Refusal
from guichet.incidents import repository as incidents
from guichet.late_money import repository as store
from guichet.ledger import postings
from guichet.ledger.wallets import require_wallet
from guichet.payments import repository
from guichet.refunds import repository as refund_repository

#: `wallet`: to the merchant, and our fees. `payer`: back by the account that took it. `returned`: the payer has it
#: back, by that account or otherwise. `not-returned`: the provider will never execute a return that it does not end.
#: `paid-from-wallet`, `paid-elsewhere`: how the merchant pays what it owes us.
Decision = Literal["wallet", "payer", "returned", "not-returned", "paid-from-wallet", "paid-elsewhere"]

#: What may be decided about a payment or a refund at each stage.
_FITTING: Final[dict[tuple[SubjectType, LateStage], tuple[Decision, ...]]] = {
    ("payment", "found"): ("wallet", "payer", "returned"),
    ("payment", "returning"): ("returned", "not-returned"),
    ("refund", "found"): ("wallet",),
    ("refund", "receivable"): ("paid-from-wallet", "paid-elsewhere"),
}
_NEXT_STAGES: Final[dict[Decision, LateStage]] = {
    "wallet": "credited",
    "returned": "returned",
    "not-returned": "found",
    "paid-from-wallet": "paid",
    "paid-elsewhere": "paid",
}
#: How long before and after a late payment the same customer may have paid again.
_AROUND: Final = 3 * DAY
_PAID_AGAIN: Final = (
    select(payments)
    .where(
        payments.c.merchant_id == bindparam("merchant_id"),
        payments.c.env == bindparam("env"),
        payments.c.status == "succeeded",
        payments.c.created_at.between(bindparam("since"), bindparam("until")),
        payments.c.phone_number == bindparam("phone_number"),
        payments.c.id != bindparam("payment_id"),
    )
    .order_by(payments.c.created_at, payments.c.id)
    .limit(20)
)


async def paid_again(db: Database, payment: Payment) -> list[Payment]:
    """Payments of the same number to the same merchant around a late one that succeeded: the customer may have paid
    twice. At most 20. Cost: the merchant's successes of six days."""
    if payment.phone_number is None:
        return []
    rows = await db.scan(
        _PAID_AGAIN,
        merchant_id=payment.merchant_id,
        env=payment.env,
        since=earlier(payment.created_at, _AROUND),
        until=later(payment.created_at, _AROUND),
        phone_number=payment.phone_number,
        payment_id=payment.id,
    )
    return [Payment(*row) for row in rows]


async def resolve(ctx: AppContext, late: LateResult, decision: Decision, actor: Actor, evidence: str) -> LateResult:
    """Carries out a person's decision. Raises ActRefused when it does not fit the row or the wallet.

    `payer`: the money is sent by the worker (`returns.py`); a refusal of the provider opens the question again.
    """
    _, payment = await store.subject_of(ctx.db, late)
    check(late, decision)
    now = ctx.clock.now()
    act = Act(
        actor=actor,
        action="late_money.resolved",
        subject_type=late.subject_type,
        subject=late.reference,
        merchant_id=late.merchant_id,
        reason=evidence,
        before={"stage": late.stage},
        after={"decision": decision, "amount": late.amount},
    )
    async with ctx.db.transaction() as tx:
        if decision == "payer":
            _refuse_unknown_payee(ctx, payment)
            moved = await store.start_return(tx, late, new_reference(now), now)
        else:
            moved = await _post(tx, late, payment, decision, now)
        if moved is None:
            raise ActRefused(Refusal.JUST_DECIDED())
        await audit_log.record(tx, act, now)
    ctx.wakeups.late_results.set()
    return moved


async def find(db: Reader, reference: str) -> LateResult:
    """The late result about a payment or refund. Raises ActRefused when there is none that a person may look into."""
    subject = await repository.find(db, reference) or await refund_repository.find(db, reference)
    late = subject and await store.about(db, subject)
    if not late or late.stage == "asking":
        raise ActRefused(Refusal.NO_LATE_MONEY(reference=reference))
    return late


def fitting(late: LateResult) -> tuple[Decision, ...]:
    """What may be decided about it now."""
    return _FITTING.get((late.subject_type, late.stage), ())


def check(late: LateResult, decision: Decision) -> None:
    """Raises ActRefused when this cannot be decided about it now."""
    possible = fitting(late)
    if not possible:
        raise ActRefused(Refusal.NOTHING_TO_DECIDE(reference=late.reference, stage=late.stage))
    if decision not in possible:
        choices = ", ".join(possible)
        raise ActRefused(Refusal.OTHER_CHOICES(reference=late.reference, stage=late.stage, decisions=choices))


def _refuse_unknown_payee(ctx: AppContext, payment: Payment) -> None:
    """Where only a payout to a number gives money back, the number that paid must be known."""
    provider = ctx.registry.provider(payment.provider_account or "")
    if not provider.can_refund(payment.operator, collected_here=True):
        raise ActRefused(Refusal.CANNOT_GIVE_BACK(account=payment.provider_account or ""))
    if provider.pays_out(payment.operator, collected_here=True) and payer_number(payment) is None:
        raise ActRefused(Refusal.PAYER_UNKNOWN())


async def _post(
    tx: Transaction, late: LateResult, payment: Payment, decision: Decision, now: Instant
) -> LateResult | None:
    """The postings of a decision that sends nothing to a provider. None when somebody decided before."""
    if decision in ("wallet", "paid-from-wallet"):
        covers = payment.amount if decision == "paid-from-wallet" else Hundredths(0)
        await require_wallet(tx, payment, covers, now)
    moved = await store.advance(tx, late, _NEXT_STAGES[decision], amount=late.amount, now=now)
    if moved is None or decision == "not-returned":
        return moved
    wallet = payment.merchant_id, payment.env, payment.currency
    cause, entries = _postings(late, payment, decision)
    await postings.post(tx, [Movement(*wallet, cause, late.subject_id, entries, now)])
    await incidents.close_all(tx, late.merchant_id, late.reference, now)
    return moved


def _postings(late: LateResult, payment: Payment, decision: Decision) -> tuple[str, list[Posting]]:
    if decision == "wallet":
        cause = posting_rules.LATE_CREDITED if late.subject_type == "payment" else posting_rules.REFUND_LATE_CREDITED
        money = payment.amount, payment.fee_amount, payment.currency
        return cause, posting_rules.collection(posting_rules.LATE_SUSPENSE, *money)
    if decision == "returned":
        by_provider = late.stage == "returning"
        operator = posting_rules.operator_account(payment.operator)
        account = operator if by_provider else posting_rules.MANUAL_SETTLEMENT
        return posting_rules.LATE_RETURNED, posting_rules.late_returned(account, require(late.amount))
    account = posting_rules.WALLET if decision == "paid-from-wallet" else posting_rules.MANUAL_SETTLEMENT
    return posting_rules.RECEIVABLE_PAID, posting_rules.receivable_paid(account, payment.amount)
