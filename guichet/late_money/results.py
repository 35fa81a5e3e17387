"""Late results: what a provider says after the end of a payment or refund was told (docs/decisions.md, "Late money";
docs/operations/runbook.md).

A failure that the provider stated is asked about once more after an hour and after a day; any other one daily, until
its final answer; and both whenever a callback comes. Told statuses and their webhooks stay: the contract has no way
back. The money is posted where a person finds it, with an incident:

    a failed payment that was paid        float → suspense:late, for a person to decide
    a failed refund that was paid         receivable → float: the merchant has its money and the customer too
    a successful refund that came back    float → suspense:late, for a person to decide
"""

from collections.abc import Collection

from msgspec import structs

from guichet.clock import MINUTE, SECOND, Instant, later
from guichet.context import AppContext
from guichet.db.queues.work_queue import Claim
from guichet.domain import posting_rules
from guichet.domain.late_results import POLLS_AT_ONCE, POLLS_PER_SECOND, LateResult, LateReturn, LateStage, next_poll
from guichet.domain.messages import Amount
from guichet.domain.money import Hundredths, round_to_currency
from guichet.domain.payments import Payment, Refund
from guichet.domain.posting_rules import Posting
from guichet.domain.token_buckets import TokenBuckets
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.late_money import repository as store
from guichet.late_money import return_repository
from guichet.late_money import returns as late_returns
from guichet.logs import log
from guichet.payments import follow_up
from guichet.payments.outcomes import check_and_report_amount, payment_status, refund_status
from guichet.providers.base import Accepted, FloatEmpty, RefundStatusResult, Refused, Succeeded, Unknown


async def poll_ended(ctx: AppContext, subject: Payment | Refund) -> None:
    """A callback came about a payment or refund that ended: the worker asks the provider about it. The success of a
    payment is not doubted: what a bank takes back later is a dispute."""
    if isinstance(subject, Payment) and subject.status != "failed":
        return
    if subject.provider_account is None or not ctx.registry.provider(subject.provider_account).remote:
        return
    await follow_up.poll_now(ctx.db, subject, ctx.clock.now())
    ctx.wakeups.late_results.set()


async def poll_late_result(ctx: AppContext, late: LateResult) -> None:
    """Polls the provider once. What contradicts the end that was told is posted; anything else is polled again later,
    or no longer."""
    subject, payment = await store.subject_of(ctx.db, late)
    await store.note_poll(ctx.db, late, ctx.clock.now())
    result: RefundStatusResult
    if isinstance(subject, Payment):
        result = await payment_status(ctx, subject, ask_only=True)
    else:
        result = await refund_status(ctx, subject, payment, ask_only=True)
    if subject.status == "failed":
        contradicted = isinstance(await check_and_report_amount(ctx, subject, result), Succeeded)
    else:
        contradicted = isinstance(subject, Refund) and subject.status == "succeeded" and isinstance(result, Refused)
    if contradicted:
        await _record_contradiction(ctx, late, subject, payment)
    else:
        await _poll_again(ctx, late, result)


async def _poll_again(ctx: AppContext, late: LateResult, result: RefundStatusResult) -> None:
    """A refusal is now the provider's own; "still pending" says that it has refused nothing (any more)."""
    if isinstance(result, Refused | FloatEmpty | Accepted):
        late = structs.replace(late, refused_by_provider=not isinstance(result, Accepted))
    now, answered = ctx.clock.now(), not isinstance(result, Unknown)
    late = structs.replace(late, asked_count=late.asked_count + answered)
    again = next_poll(late, now, answered=answered)
    if again is not None:
        await store.poll_later(ctx.db, late, again)
        return
    if not (answered and late.refused_by_provider):
        log.warning("late_result.not_answered", reference=late.reference, provider_account=late.provider_account)
    await store.stop_polling(ctx.db, late)


async def _record_contradiction(ctx: AppContext, late: LateResult, subject: Payment | Refund, payment: Payment) -> None:
    """Posts what the provider did after the told end, and opens the incident. Whoever moves the row first does it."""
    now = ctx.clock.now()
    total = round_to_currency(payment.total_amount, payment.currency)
    account = ctx.registry.float_account(payment, subject)
    stage, cause, entries = _consequence(subject, payment, total, account)
    log.error("late_result.found", reference=subject.reference, status=subject.status, cause=cause)
    async with ctx.db.transaction() as tx:
        if await store.advance(tx, late, stage, amount=total, now=now) is None:
            return
        await store.post(tx, late, cause, entries, now)
        came_back = cause == posting_rules.REFUND_FAILED_LATE
        kind: incidents.IncidentKind = incidents.FAILED_AFTER_SUCCESS if came_back else incidents.PAID_AFTER_FAILURE
        detail = IncidentDetail.CONTRADICTED(total=Amount(total, payment.currency))
        await incidents.report_about(tx, subject, kind, detail, now)


def _consequence(
    subject: Payment | Refund, payment: Payment, total: Hundredths, account: str
) -> tuple[LateStage, str, list[Posting]]:
    """The next stage, the cause of the postings, and the postings. `account`: the float that was moved."""
    if isinstance(subject, Payment):
        return "found", posting_rules.PAID_LATE, posting_rules.into_late_suspense(account, total)
    if subject.status == "succeeded":
        return "found", posting_rules.REFUND_FAILED_LATE, posting_rules.into_late_suspense(account, total)
    entries = posting_rules.refund_disbursed(
        account, payment.amount, payment.fee_amount, payment.currency, held_in=posting_rules.RECEIVABLE
    )
    return "receivable", posting_rules.REFUND_PAID_LATE, entries


class LateResultJobs:
    """The worker's queues of late results: polls, and money on its way back to the payer.

    Polls have a budget for each provider account, so that a day on which thousands were failed by hand does not
    keep the account busy for three months. What goes beyond it is polled later.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx
        self._budget = TokenBuckets(burst=POLLS_AT_ONCE, per_second=POLLS_PER_SECOND)
        #: The accounts whose budget was spent when it was last looked at.
        self._spent: set[str] = set()

    async def claim(
        self, now: Instant, until: Instant, most: int, saturated: Collection[str]
    ) -> Claim[LateResult | LateReturn]:
        """Requests first: they are few, and money is on its way."""
        requests = await return_repository.QUEUE.claim(self._ctx.db, now, until, most, saturated)
        if len(requests.jobs) == most:
            return Claim(requests.jobs, requests.next_due)
        left = most - len(requests.jobs)
        self._spent = {key for key in self._spent if self._budget.is_empty(key, self._ctx.clock.monotonic())}
        polls = await store.QUEUE.claim(self._ctx.db, now, until, left, {*saturated, *self._spent})
        next_due = polls.next_due
        if self._spent and not polls.jobs and next_due is not None:
            next_due = max(next_due, later(now, SECOND))
        dues = [due for due in (requests.next_due, next_due) if due is not None]
        return Claim([*requests.jobs, *polls.jobs], min(dues, default=None))

    async def work(self, job: LateResult | LateReturn) -> None:
        if isinstance(job, LateReturn):
            await late_returns.work(self._ctx, job)
        elif self._budget.take(job.provider_account, self._ctx.clock.monotonic()):
            await poll_late_result(self._ctx, job)
        else:
            self._spent.add(job.provider_account)
            await store.poll_later(self._ctx.db, job, later(self._ctx.clock.now(), MINUTE))
