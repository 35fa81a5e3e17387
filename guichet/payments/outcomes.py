"""What a provider is asked about a payment or a refund, and what its result means, wherever it was asked: at the
initiation, by polling, for a refund, for late money, for a person who decides.

    a success       counts only if it states the amount and the currency that were requested
    a refusal       because of a fault on our side opens an incident about the account
    "not found"     proves that a request never arrived only after several answers
    no end          sets the next poll, and opens an incident once it is 72 hours old
"""

from typing import Final, TypeVar

from msgspec import structs

from guichet.clock import NEVER, SECOND, Instant, later
from guichet.context import AppContext, NotFoundAnswer
from guichet.db.engine import require
from guichet.domain.failures import OUR_FAULTS
from guichet.domain.messages import Amount
from guichet.domain.money import Hundredths
from guichet.domain.payments import (
    INCIDENT_AGE,
    Payment,
    Refund,
    SubjectType,
    never_arrived,
    poll_interval,
)
from guichet.domain.phone_numbers import payee_number
from guichet.domain.records import Record
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.logs import log
from guichet.payments import account_identity, repository
from guichet.payments.account_identity import AccountMatch
from guichet.payments.settlement import settle_payment
from guichet.providers.base import (
    Charge,
    NotFound,
    Provider,
    RefundRequest,
    RefundStatusResult,
    Refused,
    StatusResult,
    Succeeded,
    Unknown,
)
from guichet.providers.registry import call_provider, charge_for, decode_provider_data, notify_url, requested_amount
from guichet.providers.shared.answers import ProviderAnswer

#: Pages and callbacks have a provider asked about one payment or refund at most this often, in microseconds.
MIN_POLL_INTERVAL: Final = 5 * SECOND
#: What is known of what another account has: an old and a new account of a provider must stand side by side.
ANOTHER_ACCOUNT: Final = Unknown(ProviderAnswer.ANOTHER_ACCOUNT())
UNSURE_ACCOUNT: Final = Unknown(ProviderAnswer.UNSURE_ACCOUNT())
#: Answers that a process remembers; when they are more, all are forgotten, which only makes the proof take longer.
_REMEMBERED: Final = 10_000

Subject = TypeVar("Subject", Payment, Refund)
Result = TypeVar("Result")
T = TypeVar("T")


async def account_match(ctx: AppContext, provider: Provider, subject: Payment | Refund) -> AccountMatch:
    """Whether the account is the one that the payment or refund was sent to; see `AccountMatch`."""
    if subject.account_fingerprint == provider.fingerprint and not provider.identified_by_key:
        return AccountMatch.SAME
    return await account_identity.compare(ctx, provider, subject)


async def payment_status(ctx: AppContext, payment: Payment, *, ask_only: bool = False) -> StatusResult:
    """What the provider says about the payment. `ask_only`: see `Charge`."""
    account = require(payment.provider_account)
    provider = ctx.registry.provider(account)
    match = await account_match(ctx, provider, payment)
    if match is AccountMatch.OTHER:
        return ANOTHER_ACCOUNT
    charge = charge_for(payment, ctx.settings.public_url, ask_only=ask_only or match is AccountMatch.UNSURE)
    if provider.remote and payment.provider_reference is None:  # The answer to the initiation was lost.
        named = await repository.reference_from_callback(ctx.db, payment)
        charge = structs.replace(charge, callback_reference=named)
    return without_unsure_not_found(await call_provider(provider, provider.status(charge), account, "status"), match)


async def refund_status(
    ctx: AppContext, refund: Refund, payment: Payment, *, ask_only: bool = False
) -> RefundStatusResult:
    """What the provider says about the refund. `ask_only`: see `Charge`; otherwise a request that never arrived may be
    sent again."""
    account = require(refund.provider_account)
    provider = ctx.registry.provider(account)
    match = await account_match(ctx, provider, refund)
    if match is AccountMatch.OTHER:
        return ANOTHER_ACCOUNT
    if ask_only or match is AccountMatch.UNSURE:
        refund_request = structs.replace(refund_request_for(ctx, refund, payment), ask_only=True)
    else:
        refund_request = await named_refund_request(ctx, provider, refund, payment)
    return without_unsure_not_found(
        await call_provider(provider, provider.refund_status(refund_request), account, "refund_status"), match
    )


def without_unsure_not_found(result: T, match: AccountMatch) -> T | Unknown:
    """The result; without "not found" from an account that may be another one."""
    return UNSURE_ACCOUNT if match is AccountMatch.UNSURE and isinstance(result, NotFound) else result


async def name_merchant(ctx: AppContext, subject: Payment | Refund, charge: Charge) -> Charge:
    """The charge with the provider's id of the merchant, for an account that must name it.

    A merchant without an id becomes an incident, once; the account then does not process the charge.
    """
    account = require(subject.provider_account)
    provider_merchant_id = await ctx.provider_merchants.id_of(account, subject.merchant_id)
    if provider_merchant_id is None:
        detail = IncidentDetail.MERCHANT_UNKNOWN(account=account, name=account)
        await incidents.report_once_for_merchant(
            ctx.db, subject, incidents.MISSING_AGGREGATED_MERCHANT, detail, ctx.clock.now()
        )
    return structs.replace(charge, provider_merchant_id=provider_merchant_id)


def refund_request_for(ctx: AppContext, refund: Refund, payment: Payment) -> RefundRequest:
    """The refund to request from the provider that gives the money back."""
    public_url = ctx.settings.public_url
    charge, told_at = charge_for(payment, public_url), notify_url(public_url, refund.provider_account, refund.reference)
    return RefundRequest(
        reference=refund.request_reference,
        charge=structs.replace(charge, notify_url=told_at),
        amount=charge.amount,
        currency=refund.currency,
        collected_here=refund.provider_account == payment.provider_account,
        payee_number=payee_number(refund, payment),
        provider_reference=refund.provider_reference,
        provider_data=decode_provider_data(refund.provider_data),
        sent_at=refund.sent_at,
        never_arrived=never_arrived(refund),
    )


async def named_refund_request(ctx: AppContext, provider: Provider, refund: Refund, payment: Payment) -> RefundRequest:
    """As `refund_request_for`, for a request that may move money. Only a payout names the merchant: a refund names the
    debit that it gives back."""
    refund_request = refund_request_for(ctx, refund, payment)
    if refund_request.collected_here or not provider.needs_merchant_id:
        return refund_request
    return structs.replace(refund_request, charge=await name_merchant(ctx, refund, refund_request.charge))


class Mismatch(Record, frozen=True):
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


async def check_and_report_amount(ctx: AppContext, subject: Payment | Refund, result: Result) -> Result | Mismatch:
    """As `check_amount`; a Mismatch has opened its incident and is logged. Nothing may then be posted."""
    checked_result = check_amount(subject, result)
    if isinstance(checked_result, Mismatch):
        await _report_mismatch(ctx, subject, checked_result)
    return checked_result


async def _report_mismatch(ctx: AppContext, subject: Payment | Refund, mismatch: Mismatch) -> None:
    answer = mismatch.stated
    requested = Amount(mismatch.requested, mismatch.currency)
    detail = IncidentDetail.NO_AMOUNT(asked=requested)
    if answer.amount is not None:
        same = answer.currency in (mismatch.currency, None)
        other = IncidentDetail.OTHER_AMOUNT if same else IncidentDetail.OTHER_CURRENCY
        detail = other(asked=requested, stated=Amount(answer.amount, answer.currency))
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
    if provider.needs_merchant_id and await ctx.provider_merchants.id_of(account, settled.merchant_id) is None:
        return settled  # That has an incident of its own (`name_merchant`).
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
    is_last = last is not None and (last.count, last.duration) == (subject.not_found_count, subject.not_found_duration)
    gap = now - last.at if last is not None and is_last else 0
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
    return subject.subject_type, subject.id


def next_poll(subject: Payment | Refund, now: Instant) -> Instant:
    """When a pending payment or refund is polled next. Each pending one always has a next poll.

    In the test environment what is still pending after two polls stays so: only its readers poll it again.
    """
    if subject.env == "test" and subject.poll_count > 0:
        return NEVER
    return later(now, poll_interval(subject.poll_count, now - subject.created_at))


def may_poll_at(asked_at: Instant | None, now: Instant) -> Instant:
    """When a page or a callback may cause a poll: now, or MIN_POLL_INTERVAL after the last one, at `asked_at`."""
    if asked_at is None or asked_at > now:  # The clock was set back since.
        return now
    return max(now, later(asked_at, MIN_POLL_INTERVAL))


async def report_if_stuck(ctx: AppContext, subject: Payment | Refund) -> None:
    """After an answer that brought no end: opens an incident if it is live and has been pending for 72 hours."""
    now = ctx.clock.now()
    if subject.env == "live" and now - subject.created_at >= INCIDENT_AGE:
        await incidents.report_about(ctx.db, subject, incidents.STUCK, IncidentDetail.STUCK(), now)
