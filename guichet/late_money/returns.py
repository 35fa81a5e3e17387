"""Late money on its way back to the payer: a person sent it, through the account that took it. A refund that is made
good (`made_good.py`) goes the same way, through the account that it was sent to.

A request is marked as sent before it leaves, so that a crash in between leads to a poll and never to a second
request. A refusal leaves the money in `suspense:late`: the person decides again. A request whose end nobody knows is
asked about until it is known, also after a person gave it up: then nothing is sent again for it.
"""

from typing import Final

from msgspec import structs

from guichet.clock import DAY, HOUR, SECOND, Instant, later
from guichet.context import AppContext
from guichet.db.engine import Transaction, require
from guichet.db.queues.work_queue import LEASE_DURATION
from guichet.domain import posting_rules
from guichet.domain.late_results import LateResult, LateReturn, ReturnStatus
from guichet.domain.messages import Amount, Message, shortened
from guichet.domain.money import Hundredths, round_to_currency
from guichet.domain.payments import INCIDENT_AGE, Payment, Refund
from guichet.domain.phone_numbers import payer_number
from guichet.domain.records import Record
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.late_money import repository as store
from guichet.late_money import return_repository
from guichet.ledger import postings
from guichet.logs import log
from guichet.payments import outcomes
from guichet.payments.account_identity import AccountMatch
from guichet.providers.base import (
    Accepted,
    AlreadyRefunded,
    FloatEmpty,
    NotProcessed,
    Provider,
    RefundInitiationResult,
    RefundRequest,
    RefundStatusResult,
    Refused,
    Succeeded,
)
from guichet.providers.registry import call_provider, charge_for, decode_provider_data, encode_provider_data

#: A return is asked about when as much time has passed as since its request, within these bounds; daily after three
#: days.
_SHORTEST: Final = 5 * SECOND
_LONGEST: Final = HOUR

Result = RefundInitiationResult | RefundStatusResult


class Return(Record, frozen=True):
    """A request, and what it gives back: the late payment, or the refund that is made good, and its payment."""

    request: LateReturn
    subject: Payment | Refund
    payment: Payment

    @property
    def account(self) -> str:
        return self.request.provider_account

    @property
    def taken_by(self) -> Payment | Refund:
        """What says which account the request's name stood for: the payment that it took, or the refund that it
        paid."""
        return self.payment if self.account == self.payment.provider_account else self.subject

    @property
    def total(self) -> Hundredths:
        return round_to_currency(self.payment.total_amount, self.payment.currency)


async def work(ctx: AppContext, request: LateReturn) -> None:
    """One step of a request: sends it if it was not sent yet, otherwise asks what became of it."""
    late = require(await store.by_id(ctx.db, request.late_result_id))
    back = Return(request, *await store.subject_of(ctx.db, late))
    provider = ctx.registry.provider(back.account)
    if request.sent_at is not None:
        await poll(ctx, back, ask_only=not _is_awaited(late, request))
    elif await outcomes.account_match(ctx, provider, back.taken_by) is not AccountMatch.SAME:
        await _apply(ctx, back, outcomes.ANOTHER_ACCOUNT)
    elif (sent := await _mark_sent(ctx, provider, back)) is not None:
        call = provider.refund(await _refund_request(ctx, provider, sent))
        await _apply(ctx, sent, await call_provider(provider, call, back.account, "refund"))


async def poll(ctx: AppContext, back: Return, *, ask_only: bool) -> Result | outcomes.Mismatch:
    """Asks what became of a request that was sent, and applies a final answer. `ask_only`: see `RefundRequest`."""
    provider = ctx.registry.provider(back.account)
    match = await outcomes.account_match(ctx, provider, back.taken_by)
    if match is AccountMatch.OTHER:
        return await _apply(ctx, back, outcomes.ANOTHER_ACCOUNT)
    ask_only = ask_only or match is AccountMatch.UNSURE
    call = provider.refund_status(await _refund_request(ctx, provider, back, ask_only=ask_only))
    answer = await call_provider(provider, call, back.account, "refund_status")
    return await _apply(ctx, back, outcomes.without_unsure_not_found(answer, match))


def _is_awaited(late: LateResult, request: LateReturn) -> bool:
    """Whether nobody gave the request up: the money is on its way under its reference."""
    return late.stage == "returning" and late.return_reference == request.reference


async def _mark_sent(ctx: AppContext, provider: Provider, back: Return) -> Return | None:
    data = encode_provider_data(dict(provider.prepare_refund(await _refund_request(ctx, provider, back))))
    now = ctx.clock.now()
    sent = await return_repository.mark_sent(ctx.db, back.request, data, now, later(now, LEASE_DURATION))
    return None if sent is None else structs.replace(back, request=sent)


async def _refund_request(
    ctx: AppContext, provider: Provider, back: Return, *, ask_only: bool = False
) -> RefundRequest:
    request, payment = back.request, back.payment
    if isinstance(back.subject, Refund):
        refund_request = await outcomes.named_refund_request(ctx, provider, back.subject, payment)
    else:
        charge = charge_for(payment, ctx.settings.public_url)
        number = payer_number(payment)
        refund_request = RefundRequest("", charge, charge.amount, charge.payment.currency, payee_number=number)
    return structs.replace(
        refund_request,
        reference=request.reference,
        provider_reference=request.provider_reference,
        provider_data=decode_provider_data(request.provider_data),
        sent_at=request.sent_at,
        never_arrived=False,
        ask_only=ask_only,
    )


async def _apply(ctx: AppContext, back: Return, result: Result) -> Result | outcomes.Mismatch:
    answer = await outcomes.check_and_report_amount(ctx, back.subject, result)
    match answer:
        case Succeeded(provider_reference=movement):
            await _returned(ctx, back, "succeeded", movement)
        case AlreadyRefunded():  # The payer has the money, but not by this request.
            await _returned(ctx, back, "failed")
        case Refused() | NotProcessed() | FloatEmpty():
            await _refused(ctx, back, answer)
        case Accepted(provider_reference=reference, provider_data=data) if reference or data:
            stored = encode_provider_data({**decode_provider_data(back.request.provider_data), **data})
            next_poll_at = _next_poll(ctx, back.request)
            await return_repository.record_acceptance(ctx.db, back.request, reference, stored, next_poll_at)
        case _:
            await _report_if_stuck(ctx, back)
            await return_repository.poll_later(ctx.db, back.request.id, _next_poll(ctx, back.request))
    return answer


async def _report_if_stuck(ctx: AppContext, back: Return) -> None:
    if _age(ctx, back.request) >= INCIDENT_AGE:
        detail = IncidentDetail.RETURN_STUCK()
        await incidents.report_about(ctx.db, back.subject, incidents.STUCK, detail, ctx.clock.now())


def _next_poll(ctx: AppContext, request: LateReturn) -> Instant:
    age = _age(ctx, request)
    return later(ctx.clock.now(), DAY if age > INCIDENT_AGE else min(_LONGEST, max(_SHORTEST, age)))


def _age(ctx: AppContext, request: LateReturn) -> int:
    return ctx.clock.now() - (request.sent_at or request.requested_at)


async def _returned(ctx: AppContext, back: Return, status: ReturnStatus, movement: str | None = None) -> None:
    """The payer has the money back. `status`: how the request itself ended. `movement`: the provider's reference of
    what it moved."""
    now, request, payment = ctx.clock.now(), back.request, back.payment
    account = ctx.registry.payout_float(back.account, payment)
    async with ctx.db.transaction() as tx:
        if not await return_repository.end(tx, request.id, status, movement):
            return
        late = require(await store.by_id(tx, request.late_result_id))
        if late.stage in ("found", "returning"):
            moved = await store.advance(tx, late, "returned", amount=late.amount, now=now)
            if moved is not None:
                entries = posting_rules.late_returned(account, back.total)
                cause = posting_rules.RETURNED_CAUSES[late.subject_type]
                await store.post(tx, late, cause, entries, now)
                await incidents.close_all(tx, late.merchant_id, late.reference, now)
                for other in await return_repository.of(tx, late):
                    await return_repository.cancel_unsent(tx, other.id)
                return
            late = require(await store.by_id(tx, request.late_result_id))
        if status == "failed":
            if late.stage == "credited":
                detail = IncidentDetail.RETURNED_ALL_THE_SAME()
                await incidents.report_about(tx, back.subject, incidents.ALREADY_REFUNDED, detail, now)
        elif await _is_second(tx, late, request, movement):
            await _returned_twice(tx, late, back, account, now)


async def _is_second(tx: Transaction, late: LateResult, request: LateReturn, movement: str | None) -> bool:
    """Whether the money that this request gave back is posted already: to the merchant, or as given back in another
    way. Where the provider only said that it was given back, this request may be what gave it back; and some providers
    give a debit back once, whatever the request."""
    if late.stage != "returned":
        return True
    before = [other for other in await return_repository.of(tx, late) if other.id != request.id]
    if succeeded := [other for other in before if other.status == "succeeded"]:
        return movement is None or all(other.provider_reference != movement for other in succeeded)
    moved = await postings.about(tx, late.merchant_id, late.subject_type, late.subject_id)
    cause = posting_rules.RETURNED_CAUSES[late.subject_type]
    legs = [leg for move in moved if move.cause == cause for leg in move.entries]
    return any(leg.destination == posting_rules.MANUAL_SETTLEMENT for leg in legs)


async def _returned_twice(tx: Transaction, late: LateResult, back: Return, account: str, now: Instant) -> None:
    reference = back.request.reference
    log.error("late_result.returned_twice", reference=back.subject.reference, request=reference)
    entries = [posting_rules.returned_again(account, back.total, back.request.id)]
    cause = posting_rules.RETURNED_AGAIN_CAUSES[late.subject_type]
    await store.post(tx, late, cause, entries, now)
    detail = IncidentDetail.RETURNED_TWICE(total=Amount(back.total, back.payment.currency), request=reference)
    await incidents.report_about(tx, back.subject, incidents.RETURNED_TWICE, detail, now)


async def _refused(ctx: AppContext, back: Return, result: Refused | NotProcessed | FloatEmpty) -> None:
    """Nothing went back under this reference. If no person gave it up before, the money waits again, and the person who
    sent it reads why in the incident."""
    now, request, subject = ctx.clock.now(), back.request, back.subject
    log.error("late_result.return_refused", reference=subject.reference, request=request.reference, raw=result.raw)
    async with ctx.db.transaction() as tx:
        if not await return_repository.end(tx, request.id, "failed"):
            return
        late = require(await store.by_id(tx, request.late_result_id))
        if not _is_awaited(late, request):
            return
        if await store.advance(tx, late, "found", amount=late.amount, now=now) is not None:
            await incidents.report_about(tx, subject, incidents.PAID_AFTER_FAILURE, _why_not_returned(result), now)


def _why_not_returned(result: Refused | NotProcessed | FloatEmpty) -> Message:
    if isinstance(result, FloatEmpty):
        return IncidentDetail.RETURN_FLOAT_EMPTY()
    if result.raw:
        return IncidentDetail.RETURN_FAILED(answer=shortened(result.raw, 200))
    return IncidentDetail.RETURN_REFUSED()
