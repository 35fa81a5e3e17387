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
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.late_money import repository as store
from guichet.late_money import return_repository
from guichet.ledger import postings
from guichet.logs import log
from guichet.payments.account_identity import AccountMatch
from guichet.payments.outcomes import (
    ANOTHER_ACCOUNT,
    Mismatch,
    account_match,
    check_and_report_amount,
    named_refund_request,
    without_unsure_not_found,
)
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


async def work(ctx: AppContext, request: LateReturn) -> None:
    """One step of a request: sends it if it was not sent yet, otherwise asks what became of it."""
    late = require(await store.by_id(ctx.db, request.late_result_id))
    subject, payment = await store.subject_of(ctx.db, late)
    provider = ctx.registry.provider(request.provider_account)
    if request.sent_at is not None:
        await poll(ctx, request, subject, payment, ask_only=not _is_awaited(late, request))
    elif await account_match(ctx, provider, _taken_by(request, subject, payment)) is not AccountMatch.SAME:
        await _apply(ctx, request, subject, payment, ANOTHER_ACCOUNT)
    elif (sent := await _mark_sent(ctx, provider, request, subject, payment)) is not None:
        call = provider.refund(await _refund_request(ctx, provider, sent, subject, payment))
        answer = await call_provider(provider, call, request.provider_account, "refund")
        await _apply(ctx, sent, subject, payment, answer)


async def poll(
    ctx: AppContext, request: LateReturn, subject: Payment | Refund, payment: Payment, *, ask_only: bool
) -> Result | Mismatch:
    """Asks what became of a request that was sent, and applies a final answer. `ask_only`: see `RefundRequest`."""
    provider = ctx.registry.provider(request.provider_account)
    match = await account_match(ctx, provider, _taken_by(request, subject, payment))
    if match is AccountMatch.OTHER:
        return await _apply(ctx, request, subject, payment, ANOTHER_ACCOUNT)
    ask_only = ask_only or match is AccountMatch.UNSURE
    call = provider.refund_status(await _refund_request(ctx, provider, request, subject, payment, ask_only=ask_only))
    answer = await call_provider(provider, call, request.provider_account, "refund_status")
    return await _apply(ctx, request, subject, payment, without_unsure_not_found(answer, match))


def _taken_by(request: LateReturn, subject: Payment | Refund, payment: Payment) -> Payment | Refund:
    """What says which account the request's name stood for: the payment that it took, or the refund that it paid."""
    return payment if request.provider_account == payment.provider_account else subject


def _is_awaited(late: LateResult, request: LateReturn) -> bool:
    """Whether nobody gave the request up: the money is on its way under its reference."""
    return late.stage == "returning" and late.return_reference == request.reference


async def _mark_sent(
    ctx: AppContext, provider: Provider, request: LateReturn, subject: Payment | Refund, payment: Payment
) -> LateReturn | None:
    refund_request = await _refund_request(ctx, provider, request, subject, payment)
    data = encode_provider_data(dict(provider.prepare_refund(refund_request)))
    now = ctx.clock.now()
    return await return_repository.mark_sent(ctx.db, request, data, now, later(now, LEASE_DURATION))


async def _refund_request(
    ctx: AppContext,
    provider: Provider,
    request: LateReturn,
    subject: Payment | Refund,
    payment: Payment,
    *,
    ask_only: bool = False,
) -> RefundRequest:
    if isinstance(subject, Refund):
        refund_request = await named_refund_request(ctx, provider, subject, payment)
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


async def _apply(
    ctx: AppContext, request: LateReturn, subject: Payment | Refund, payment: Payment, result: Result
) -> Result | Mismatch:
    answer = await check_and_report_amount(ctx, subject, result)
    match answer:
        case Succeeded(provider_reference=movement):
            await _returned(ctx, request, subject, payment, "succeeded", movement)
        case AlreadyRefunded():  # The payer has the money, but not by this request.
            await _returned(ctx, request, subject, payment, "failed")
        case Refused() | NotProcessed() | FloatEmpty():
            await _refused(ctx, request, subject, answer)
        case Accepted(provider_reference=reference, provider_data=data) if reference or data:
            stored = encode_provider_data({**decode_provider_data(request.provider_data), **data})
            await return_repository.schedule(ctx.db, request.id, reference, stored, _next_poll(ctx, request))
        case _:
            await _report_if_stuck(ctx, request, subject)
            known = request.provider_reference, request.provider_data
            await return_repository.schedule(ctx.db, request.id, *known, _next_poll(ctx, request))
    return answer


async def _report_if_stuck(ctx: AppContext, request: LateReturn, subject: Payment | Refund) -> None:
    now = ctx.clock.now()
    if now - (request.sent_at or request.requested_at) >= INCIDENT_AGE:
        await incidents.report_about(ctx.db, subject, incidents.STUCK, IncidentDetail.RETURN_STUCK(), now)


def _next_poll(ctx: AppContext, request: LateReturn) -> Instant:
    now = ctx.clock.now()
    age = now - (request.sent_at or now)
    return later(now, DAY if age > INCIDENT_AGE else min(_LONGEST, max(_SHORTEST, age)))


async def _returned(
    ctx: AppContext,
    request: LateReturn,
    subject: Payment | Refund,
    payment: Payment,
    status: ReturnStatus,
    movement: str | None = None,
) -> None:
    """The payer has the money back. `status`: how the request itself ended. `movement`: the provider's reference of
    what it moved."""
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        if not await return_repository.end(tx, request.id, status, movement):
            return
        late = require(await store.by_id(tx, request.late_result_id))
        if late.stage in ("found", "returning"):
            moved = await store.advance(tx, late, "returned", amount=late.amount, now=now)
            if moved is not None:
                entries = posting_rules.late_returned(_float(ctx, request, payment), _total(payment))
                cause = posting_rules.RETURNED_CAUSES[late.subject_type]
                await store.post(tx, late, payment, cause, entries, now)
                await incidents.close_all(tx, late.merchant_id, late.reference, now)
                for other in await return_repository.of(tx, late):
                    await return_repository.cancel_unsent(tx, other.id)
                return
            late = require(await store.by_id(tx, request.late_result_id))
        if status == "failed":
            if late.stage == "credited":
                detail = IncidentDetail.RETURNED_ALL_THE_SAME()
                await incidents.report_about(tx, subject, incidents.ALREADY_REFUNDED, detail, now)
        elif await _is_second(tx, late, request, movement):
            await _returned_twice(tx, late, request, subject, payment, _float(ctx, request, payment), now)


def _float(ctx: AppContext, request: LateReturn, payment: Payment) -> str:
    return ctx.registry.payout_float(request.provider_account, payment)


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


async def _returned_twice(
    tx: Transaction,
    late: LateResult,
    request: LateReturn,
    subject: Payment | Refund,
    payment: Payment,
    account: str,
    now: Instant,
) -> None:
    total = _total(payment)
    log.error("late_result.returned_twice", reference=subject.reference, request=request.reference)
    entries = [posting_rules.returned_again(account, total, request.id)]
    cause = posting_rules.RETURNED_AGAIN_CAUSES[late.subject_type]
    await store.post(tx, late, payment, cause, entries, now)
    detail = IncidentDetail.RETURNED_TWICE(total=Amount(total, payment.currency), request=request.reference)
    await incidents.report_about(tx, subject, incidents.RETURNED_TWICE, detail, now)


async def _refused(
    ctx: AppContext, request: LateReturn, subject: Payment | Refund, result: Refused | NotProcessed | FloatEmpty
) -> None:
    """Nothing went back under this reference. If no person gave it up before, the money waits again, and the person who
    sent it reads why in the incident."""
    now = ctx.clock.now()
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
    return (
        IncidentDetail.RETURN_FAILED(answer=shortened(result.raw, 200))
        if result.raw
        else IncidentDetail.RETURN_REFUSED()
    )


def _total(payment: Payment) -> Hundredths:
    return round_to_currency(payment.total_amount, payment.currency)
