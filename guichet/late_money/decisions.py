"""What a person decides about late money (`guichet late-money resolve`).

Each decision is one transaction: the row's next stage, the postings, the end of the incident, the audit log's entry.
Before it, the provider is asked about every request whose end nobody knows: its final answer is applied first, and the
person decides about what is true then.
"""

from typing import Final, Literal

from sqlalchemy import bindparam, select

from guichet.audit_log import entries as audit_log
from guichet.clock import DAY, Instant, earlier, later
from guichet.context import AppContext
from guichet.db.engine import Database, Reader, Transaction, require
from guichet.db.references import new_reference
from guichet.db.sql_functions import equal
from guichet.db.tables import payments
from guichet.domain import posting_rules
from guichet.domain.audit_log import Act, Actor, ActRefused
from guichet.domain.late_results import SECOND_RETURN_AFTER, LateResult, LateStage
from guichet.domain.money import Hundredths, round_to_currency
from guichet.domain.payments import Payment, Refund, SubjectType
from guichet.domain.phone_numbers import payee_number, payer_number
from guichet.domain.posting_rules import Posting
from guichet.domain.refusals import Refusal
from guichet.incidents import repository as incidents
from guichet.late_money import made_good, return_repository, returns
from guichet.late_money import repository as store
from guichet.late_money.returns import Return
from guichet.ledger import postings
from guichet.ledger.wallets import require_wallet
from guichet.payments import repository
from guichet.payments.outcomes import Mismatch
from guichet.providers.base import Accepted
from guichet.refunds import repository as refund_repository

#: `wallet`: to the merchant, and our fees. `payer`: back by the account that took it; what was credited, and what makes
#: a failed refund good, is taken from the wallet and our fees. `returned`: the payer has it back, by that account or
#: otherwise. `not-returned`: no longer wait for a return that the provider does not end; it is still polled.
#: `paid-from-wallet`, `paid-elsewhere`: how the merchant pays what it owes us.
Decision = Literal["wallet", "payer", "returned", "not-returned", "paid-from-wallet", "paid-elsewhere"]

#: What may be decided about a payment or a refund at each stage.
_FITTING: Final[dict[tuple[SubjectType, LateStage], tuple[Decision, ...]]] = {
    ("payment", "found"): ("wallet", "payer", "returned"),
    ("payment", "returning"): ("returned", "not-returned"),
    ("payment", "credited"): ("payer",),
    ("refund", "found"): ("wallet",),
    ("refund", "receivable"): ("paid-from-wallet", "paid-elsewhere"),
}
#: The same for a failed refund that is, or can be, made good.
_FITTING_MADE_GOOD: Final[dict[LateStage, tuple[Decision, ...]]] = {
    "asking": ("payer",),
    "found": ("wallet", "payer", "returned"),
    "returning": ("returned", "not-returned"),
    "credited": ("payer",),
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
        *equal(payments, "merchant_id", "env"),
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

    `payer`: the money is sent by the worker (`returns.py`); if the provider refuses, a person decides again.
    """
    subject, payment = await store.subject_of(ctx.db, late)
    check(late, decision)
    is_final = True
    if isinstance(subject, Refund) and late.stage == "asking":
        is_final = await made_good.poll_failure(ctx, late, subject, payment)
    else:
        await _poll_returns(ctx, late, decision)
    now, total = ctx.clock.now(), round_to_currency(payment.total_amount, payment.currency)
    act = Act(
        actor=actor,
        action="late_money.resolved",
        subject_type=late.subject_type,
        subject=late.reference,
        merchant_id=late.merchant_id,
        reason=evidence,
        before={"stage": late.stage},
        after={"decision": decision, "amount": late.amount or total},
    )
    async with ctx.db.transaction() as tx:
        if decision == "payer":
            _refuse_unknown_payee(ctx, subject, payment)
            moved = await _start_return(tx, late, subject, payment, now, is_final=is_final)
        else:
            account = ctx.registry.payout_float(late.provider_account, payment)
            moved = await _post(tx, late, payment, decision, account, now)
        if moved is None:
            raise ActRefused(Refusal.JUST_DECIDED())
        await audit_log.record(tx, act, now)
    ctx.wakeups.late_results.set()
    return moved


async def _poll_returns(ctx: AppContext, late: LateResult, decision: Decision) -> None:
    """Asks about every request whose end nobody knows. Raises ActRefused when an answer ends the matter, when the
    provider still works on what the person gives up, or when money would leave again too soon after a request that may
    still be executed."""
    requests = await return_repository.of(ctx.db, late)
    pending = [request for request in requests if request.status == "pending" and request.sent_at]
    if not pending:
        return
    subject, payment = await store.subject_of(ctx.db, late)
    answers = [await returns.poll(ctx, Return(request, subject, payment), ask_only=True) for request in pending]
    now_known = await store.by_id(ctx.db, late.id)
    if now_known is None or now_known.stage != late.stage:
        stage = now_known.stage if now_known else late.stage
        raise ActRefused(Refusal.RETURN_ANSWERED(reference=late.reference, stage=stage))
    if decision == "not-returned" and any(isinstance(answer, Accepted | Mismatch) for answer in answers):
        raise ActRefused(Refusal.RETURN_UNDER_WAY(reference=late.reference))
    if decision in ("payer", "wallet"):
        active = [request for request in await return_repository.of(ctx.db, late) if request.status == "pending"]
        if any(ctx.clock.now() - (request.sent_at or request.requested_at) < SECOND_RETURN_AFTER for request in active):
            raise ActRefused(Refusal.RETURN_UNKNOWN(reference=late.reference))


async def find(db: Reader, reference: str) -> LateResult:
    """The late result about a payment or refund. Raises ActRefused when there is none that a person may look into."""
    subject = await repository.find(db, reference) or await refund_repository.find(db, reference)
    late = subject and await about(db, subject)
    if not late:
        raise ActRefused(Refusal.NO_LATE_MONEY(reference=reference))
    return late


async def about(db: Reader, subject: Payment | Refund) -> LateResult | None:
    """The late result that a person may look into: what was found, or a failed refund that can be made good."""
    late = await store.about(db, subject)
    if late is not None and late.stage != "asking":
        return late
    return await made_good.late_result(db, subject) if isinstance(subject, Refund) else None


def fitting(late: LateResult) -> tuple[Decision, ...]:
    """What may be decided about it now."""
    if late.subject_type == "refund" and (late.stage == "asking" or late.return_reference is not None):
        return _FITTING_MADE_GOOD.get(late.stage, ())
    return _FITTING.get((late.subject_type, late.stage), ())


def check(late: LateResult, decision: Decision) -> None:
    """Raises ActRefused when this cannot be decided about it now."""
    possible = fitting(late)
    if not possible:
        raise ActRefused(Refusal.NOTHING_TO_DECIDE(reference=late.reference, stage=late.stage))
    if decision not in possible:
        choices = ", ".join(possible)
        raise ActRefused(Refusal.OTHER_CHOICES(reference=late.reference, stage=late.stage, decisions=choices))


def _refuse_unknown_payee(ctx: AppContext, subject: Payment | Refund, payment: Payment) -> None:
    """Where only a payout to a number gives money back, the number that paid must be known."""
    account = subject.provider_account or ""
    provider, collected_here = ctx.registry.provider(account), account == payment.provider_account
    payee = payee_number(subject, payment) if isinstance(subject, Refund) else payer_number(payment)
    if not provider.can_refund(payment.operator, collected_here=collected_here):
        raise ActRefused(Refusal.CANNOT_GIVE_BACK(account=account))
    if provider.pays_out(payment.operator, collected_here=collected_here) and payee is None:
        raise ActRefused(Refusal.PAYER_UNKNOWN())


async def _start_return(
    tx: Transaction, late: LateResult, subject: Payment | Refund, payment: Payment, now: Instant, *, is_final: bool
) -> LateResult | None:
    """Records a request that the worker sends. What had been credited, or what makes a refund good, is taken from the
    wallet in the same transaction. `is_final`: see `made_good.poll_failure`."""
    current: LateResult | None = late
    if isinstance(subject, Refund) and late.stage == "asking":
        current = await made_good.record(tx, subject, payment, now, is_final=is_final)
    moved = current and await store.start_return(tx, current, new_reference(now), now)
    if moved is None or late.stage not in ("credited", "asking"):
        return moved
    await require_wallet(tx, payment, payment.amount, now)
    money = payment.amount, payment.fee_amount, payment.currency
    entries = posting_rules.late_taken_back(*money, time=await _times_taken_back(tx, late))
    cause = posting_rules.TAKEN_BACK_CAUSES[late.subject_type]
    await store.post(tx, late, cause, entries, now)
    return moved


async def _times_taken_back(tx: Transaction, late: LateResult) -> int:
    """How often this late money was taken from the wallet before."""
    moved = await postings.about(tx, late.merchant_id, late.subject_type, late.subject_id)
    return sum(
        entry.source == posting_rules.WALLET
        for movement in moved
        if movement.cause == posting_rules.TAKEN_BACK_CAUSES[late.subject_type]
        for entry in movement.entries
    )


async def _post(
    tx: Transaction, late: LateResult, payment: Payment, decision: Decision, account: str, now: Instant
) -> LateResult | None:
    """The postings of a decision that sends nothing to a provider. None when somebody decided before.
    `account`: the float from which the provider gave it back."""
    if decision in ("wallet", "paid-from-wallet"):
        covers = payment.amount if decision == "paid-from-wallet" else Hundredths(0)
        await require_wallet(tx, payment, covers, now)
    if late.stage == "returning":
        await _end_awaited(tx, late, decision)
    moved = await store.advance(tx, late, _NEXT_STAGES[decision], amount=late.amount, now=now)
    if moved is None or decision == "not-returned":
        return moved
    cause, entries = _postings(late, payment, decision, account)
    if decision == "wallet":
        entries = posting_rules.numbered(entries, await _times_taken_back(tx, late))
    await store.post(tx, late, cause, entries, now)
    await incidents.close_all(tx, late.merchant_id, late.reference, now)
    return moved


async def _end_awaited(tx: Transaction, late: LateResult, decision: Decision) -> None:
    """A person says what became of the request that is awaited. Given up, it is still polled, unless it was never
    sent. Raises ActRefused when the worker ended or sent it meanwhile."""
    requests = await return_repository.of(tx, late)
    for request in (request for request in requests if request.reference == late.return_reference):
        if decision == "returned":
            done = await return_repository.end(tx, request.id, "succeeded")
        else:
            done = request.sent_at is not None or await return_repository.cancel_unsent(tx, request.id)
        if not done:
            raise ActRefused(Refusal.JUST_DECIDED())


def _postings(late: LateResult, payment: Payment, decision: Decision, payout_float: str) -> tuple[str, list[Posting]]:
    if decision == "wallet":
        money = payment.amount, payment.fee_amount, payment.currency
        cause = posting_rules.CREDITED_CAUSES[late.subject_type]
        return cause, posting_rules.collection(posting_rules.LATE_SUSPENSE, *money)
    if decision == "returned":
        by_provider = late.stage == "returning"
        account = payout_float if by_provider else posting_rules.MANUAL_SETTLEMENT
        cause = posting_rules.RETURNED_CAUSES[late.subject_type]
        return cause, posting_rules.late_returned(account, require(late.amount))
    account = posting_rules.WALLET if decision == "paid-from-wallet" else posting_rules.MANUAL_SETTLEMENT
    return posting_rules.RECEIVABLE_PAID, posting_rules.receivable_paid(account, payment.amount)
