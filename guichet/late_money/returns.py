"""Late money on its way back to the payer: a person sent it, through the account that took it.

The row is marked as sent before the request leaves, so that a crash in between leads to a question and never to a
second request. A refusal leaves the money in `suspense:late`: the person decides again.
"""

from dataclasses import replace
from typing import Final

from guichet.clock import HOUR, SECOND, Instant, later
from guichet.context import AppContext
from guichet.domain import posting_rules
from guichet.domain.late_results import LateResult
from guichet.domain.messages import Message, shortened
from guichet.domain.payments import INCIDENT_AGE_SECONDS, Payment
from guichet.domain.phone_numbers import payer_number
from guichet.domain.posting_rules import Movement
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.late_money import repository as store
from guichet.ledger import postings
from guichet.logs import log
from guichet.payments.account_identity import AccountMatch
from guichet.payments.outcomes import checked
from guichet.payments.provider_calls import (
    ANOTHER_ACCOUNT,
    LEASE_DURATION,
    account_match,
    call_provider,
    charge_for,
    decode_provider_data,
    encode_provider_data,
    explicit,
)
from guichet.providers.base import (
    Accepted,
    AlreadyRefunded,
    FloatEmpty,
    NotProcessed,
    Provider,
    RefundInitiationResult,
    RefundStatusResult,
    Refused,
    Reversal,
    Succeeded,
)

#: A return is asked about when as much time has passed as since its request, within these bounds.
_SHORTEST: Final = 5 * SECOND
_LONGEST: Final = HOUR


async def work(ctx: AppContext, late: LateResult) -> None:
    """One step of a return: sends it if it was not sent yet, otherwise asks what became of it."""
    _, payment = await store.subject_of(ctx.db, late)
    account = late.provider_account
    provider = ctx.registry.provider(account)
    match = await account_match(ctx, provider, payment)
    if match is AccountMatch.OTHER or (match is AccountMatch.UNSURE and late.return_sent_at is None):
        await _apply(ctx, late, payment, ANOTHER_ACCOUNT)
    elif late.return_sent_at is not None:
        reversal = replace(_reversal(ctx, late, payment), ask_only=match is AccountMatch.UNSURE)
        result = await call_provider(provider, provider.refund_status(reversal), account, "refund_status")
        await _apply(ctx, late, payment, explicit(result, match))
    elif (sent := await _mark_sent(ctx, provider, late, payment)) is not None:
        call = provider.refund(_reversal(ctx, sent, payment))
        await _apply(ctx, sent, payment, await call_provider(provider, call, account, "refund"))


async def _mark_sent(ctx: AppContext, provider: Provider, late: LateResult, payment: Payment) -> LateResult | None:
    data = encode_provider_data(dict(provider.prepare_refund(_reversal(ctx, late, payment))))
    now = ctx.clock.now()
    return await store.mark_return_sent(ctx.db, late, data, now, later(now, LEASE_DURATION))


def _reversal(ctx: AppContext, late: LateResult, payment: Payment) -> Reversal:
    charge = charge_for(ctx, payment)
    return Reversal(
        reference=late.return_reference or "",
        charge=charge,
        amount=charge.amount,
        currency=charge.payment.currency,
        payee_number=payer_number(payment),
        provider_reference=late.provider_reference,
        provider_data=decode_provider_data(late.provider_data),
        sent_at=late.return_sent_at,
    )


async def _apply(
    ctx: AppContext, late: LateResult, payment: Payment, result: RefundInitiationResult | RefundStatusResult
) -> None:
    match await checked(ctx, payment, result):
        case AlreadyRefunded() | Succeeded():
            await _returned(ctx, late, payment)
        case (Refused() | NotProcessed() | FloatEmpty()) as refusal:
            await _refused(ctx, late, payment, refusal)
        case Accepted(provider_reference=reference, provider_data=data) if reference or data:
            stored = encode_provider_data({**decode_provider_data(late.provider_data), **data})
            await store.record_acceptance(ctx.db, late, reference, stored, _next_poll(ctx, late))
        case _:
            await _report_if_stuck(ctx, late, payment)
            await store.record_acceptance(
                ctx.db, late, late.provider_reference, late.provider_data, _next_poll(ctx, late)
            )


async def _report_if_stuck(ctx: AppContext, late: LateResult, payment: Payment) -> None:
    now = ctx.clock.now()
    if now - (late.return_sent_at or now) >= INCIDENT_AGE_SECONDS * SECOND:
        detail = IncidentDetail.RETURN_STUCK()
        await incidents.report_about(ctx.db, payment, incidents.STUCK, detail, now)


def _next_poll(ctx: AppContext, late: LateResult) -> Instant:
    now = ctx.clock.now()
    since_request = now - (late.return_sent_at or now)
    return later(now, min(_LONGEST, max(_SHORTEST, since_request)))


async def _returned(ctx: AppContext, late: LateResult, payment: Payment) -> None:
    """Posts the return; whoever moves the row first does it."""
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        if await store.advance(tx, late, "returned", amount=late.amount, now=now) is None:
            return
        wallet = payment.merchant_id, payment.env, payment.currency
        entries = posting_rules.late_returned(
            posting_rules.operator_account(payment.operator), late.amount or payment.total_amount
        )
        await postings.post(tx, [Movement(*wallet, posting_rules.LATE_RETURNED, late.subject_id, entries, now)])
        await incidents.close_all(tx, late.merchant_id, late.reference, now)


def _why_not_returned(result: Refused | NotProcessed | FloatEmpty) -> Message:
    if isinstance(result, FloatEmpty):
        return IncidentDetail.RETURN_FLOAT_EMPTY()
    return (
        IncidentDetail.RETURN_FAILED(answer=shortened(result.raw, 200))
        if result.raw
        else IncidentDetail.RETURN_REFUSED()
    )


async def _refused(
    ctx: AppContext, late: LateResult, payment: Payment, result: Refused | NotProcessed | FloatEmpty
) -> None:
    """The money stays where it is, and the person who sent it reads why in the incident."""
    now = ctx.clock.now()
    log.error("late_result.return_refused", reference=late.reference, raw=result.raw)
    async with ctx.db.transaction() as tx:
        if await store.advance(tx, late, "found", amount=late.amount, now=now) is None:
            return
        await incidents.report_about(tx, payment, incidents.PAID_AFTER_FAILURE, _why_not_returned(result), now)
