"""What a provider's result means for a payment or a refund, wherever it was asked: at the initiation, by polling, for a
refund, for late money, for a person who decides.

    a success       counts only if it states the amount and the currency that were requested
    a refusal       because of a fault on our side opens an incident about the account
    "not found"     proves that a request never arrived only after several answers
    no end          sets the next poll, and opens an incident once it is 72 hours old
"""

from dataclasses import dataclass
from typing import Final, TypeVar

from msgspec import structs

from guichet.clock import SECOND, Instant, later
from guichet.context import AppContext, NotFoundAnswer
from guichet.domain.failures import OUR_FAULTS
from guichet.domain.messages import Amount
from guichet.domain.money import Hundredths
from guichet.domain.payments import INCIDENT_AGE_SECONDS, Payment, Refund, SubjectType, poll_interval
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.logs import log
from guichet.payments.provider_calls import requested_amount
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Refused, Succeeded
from guichet.providers.sandbox.provider import NEVER

#: Pages and callbacks have a provider asked about one payment or refund at most this often, in microseconds.
MIN_POLL_INTERVAL: Final = 5 * SECOND
#: Answers that a process remembers; when they are more, all are forgotten, which only makes the proof take longer.
_REMEMBERED: Final = 10_000

Subject = TypeVar("Subject", Payment, Refund)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A success that states another amount or currency than `requested` and `currency`, or none."""

    requested: Hundredths
    currency: str
    stated: Succeeded


def check_amount(subject: Payment | Refund, result: Result) -> Result | Mismatch:
    """The result; a Mismatch instead of a success that does not state exactly the amount that was requested."""
    if not isinstance(result, Succeeded):
        return result
    requested = requested_amount(subject)
    if result.amount == requested and result.currency == subject.currency:
        return result
    return Mismatch(requested, subject.currency, result)


async def checked(ctx: AppContext, subject: Payment | Refund, result: Result) -> Result | Mismatch:
    """As `check_amount`; a Mismatch has opened its incident and is logged. Nothing may then be posted."""
    checked_result = check_amount(subject, result)
    if isinstance(checked_result, Mismatch):
        await _report_mismatch(ctx, subject, checked_result)
    return checked_result


async def _report_mismatch(ctx: AppContext, subject: Payment | Refund, mismatch: Mismatch) -> None:
    stated = mismatch.stated
    asked = Amount(mismatch.requested, mismatch.currency)
    detail = IncidentDetail.NO_AMOUNT(asked=asked)
    if stated.amount is not None:
        same = stated.currency in (mismatch.currency, None)
        other = IncidentDetail.OTHER_AMOUNT if same else IncidentDetail.OTHER_CURRENCY
        detail = other(asked=asked, stated=Amount(stated.amount, stated.currency))
    facts = {"reference": subject.reference, "provider_account": subject.provider_account, "detail": detail}
    if subject.env == "live":
        log.error("provider.mismatch", **facts)
    else:  # A merchant's developer wanted it (`test_scenario`): it must not wake the staff.
        log.info("provider.mismatch", **facts)
    await incidents.report_about(ctx.db, subject, incidents.MISMATCH, detail, ctx.clock.now())


async def refuse_payment(
    ctx: AppContext, payment: Payment, refusal: Refused, *, at_initiation: bool = False
) -> Payment:
    """Settles the payment as failed (see `settle_payment`). If a route of ours is at fault, and not the customer, the
    staff get an incident: one for each account, however many payments fail."""
    settled = await settle_payment(ctx, payment, refusal, at_initiation=at_initiation)
    account = settled.provider_account
    if account is None or settled.status != "failed" or settled.failure_reason not in OUR_FAULTS:
        return settled
    log.error("route.misconfigured", reference=settled.reference, provider_account=account, raw=refusal.raw)
    provider = ctx.registry.provider(account)
    if provider.names_merchants and await ctx.provider_merchants.id_of(account, settled.merchant_id) is None:
        return settled  # That has an incident of its own (`provider_calls.name_merchant`).
    detail = IncidentDetail.NOT_SERVED(operator=settled.operator)
    if refusal.raw:
        detail = IncidentDetail.MISCONFIGURED(operator=settled.operator, answer=refusal.raw)
    await incidents.report_once_for_account(ctx.db, settled, incidents.MISCONFIGURED_ROUTE, detail, ctx.clock.now())
    return settled


def count_not_found(ctx: AppContext, subject: Subject) -> Subject:
    """The payment or refund with one more answer "not found" counted; the caller stores it.

    One such answer proves nothing, since the request may still be on its way. The gaps between the answers must cover a
    time, and a gap counts only between two answers that one process got one after the other, because only its monotonic
    clock measures it: a restart, or a jump of the machine's clock, adds nothing.
    """
    now, key = ctx.clock.monotonic(), _key(subject)
    last = ctx.not_found_answers.get(key)
    # If the row is not as this process left it, another process got an answer in between, and has counted that time.
    ours = last is not None and (last.count, last.duration) == (subject.not_found_count, subject.not_found_duration)
    gap = now - last.at if last is not None and ours else 0
    count, duration = subject.not_found_count + 1, subject.not_found_duration + gap
    if len(ctx.not_found_answers) >= _REMEMBERED:
        ctx.not_found_answers.clear()
    ctx.not_found_answers[key] = NotFoundAnswer(now, count, duration)
    return structs.replace(subject, not_found_count=count, not_found_duration=duration)


def reset_not_found(ctx: AppContext, subject: Subject) -> Subject:
    """The payment or refund after any other answer: the count begins again."""
    if subject.not_found_count == 0:
        return subject
    ctx.not_found_answers.pop(_key(subject), None)
    return structs.replace(subject, not_found_count=0, not_found_duration=0)


def _key(subject: Payment | Refund) -> tuple[SubjectType, int]:
    return "payment" if isinstance(subject, Payment) else "refund", subject.id


def next_poll(subject: Payment | Refund, now: Instant) -> Instant:
    """When a pending payment or refund is polled next. Each pending one always has a next poll.

    In the test environment what is still pending after two polls stays so: only its readers poll it again.
    """
    if subject.env == "test" and subject.poll_count > 0:
        return NEVER
    return later(now, poll_interval(subject.poll_count, (now - subject.created_at) / SECOND) * SECOND)


def may_poll_at(subject: Payment | Refund, now: Instant) -> Instant:
    """When a page or a callback may cause a poll: now, or MIN_POLL_INTERVAL after the last one."""
    if subject.asked_at is None or subject.asked_at > now:  # The clock was set back since.
        return now
    return max(now, later(subject.asked_at, MIN_POLL_INTERVAL))


async def report_if_stuck(ctx: AppContext, subject: Payment | Refund) -> None:
    """After an answer that brought no end: opens an incident if it is live and has been pending for 72 hours."""
    now = ctx.clock.now()
    if subject.env == "live" and now - subject.created_at >= INCIDENT_AGE_SECONDS * SECOND:
        await incidents.report_about(ctx.db, subject, incidents.STUCK, IncidentDetail.STUCK(), now)
