"""Events on demand in a merchant's test environment (`guichet trigger`): payments, refunds and disputes are made by the
functions of the API and of the hosted pages, so the webhooks that leave are real and signed.
"""

from typing import Final

from guichet.clock import DAY, later
from guichet.context import AppContext
from guichet.db.references import new_reference
from guichet.disputes import disputes
from guichet.domain.audit_log import ActRefused
from guichet.domain.catalogue import MOBILE_MONEY, Catalogue, PaymentMode
from guichet.domain.disputes import DisputeStatus
from guichet.domain.events import (
    DISPUTE_LOST,
    DISPUTE_OPENED,
    DISPUTE_WON,
    PAYMENT_FAILED,
    PAYMENT_REFUNDED,
    PAYMENT_SUCCEEDED,
    REFUND_FAILED,
    WEBHOOK_TEST,
    EventName,
)
from guichet.domain.merchants import Caller, Merchant
from guichet.domain.money import Hundredths
from guichet.domain.payments import Payment
from guichet.domain.refusals import Refusal
from guichet.domain.sandbox_scenarios import TestScenario
from guichet.payments.create import create_payment
from guichet.payments.polling import poll_payment
from guichet.payments.settlement import settle_payment
from guichet.providers.base import Succeeded
from guichet.providers.capabilities import DisputeFacts
from guichet.providers.registry import SANDBOX
from guichet.refunds.disbursement import poll_refund
from guichet.refunds.request import request_refund
from guichet.schemas.payment import Customer, PaymentBody
from guichet.webhooks import endpoints

_AMOUNT: Final = Hundredths(5000_00)
_DISPUTES: Final[dict[EventName, DisputeStatus]] = {
    DISPUTE_OPENED: "open",
    DISPUTE_WON: "won",
    DISPUTE_LOST: "lost",
}


async def cause(ctx: AppContext, merchant: Merchant, event: EventName) -> str:
    """Makes what this event tells of; the reference of the payment or refund, or the id of the test delivery. What an
    event follows from is told too: `refund.succeeded` comes after a `payment.succeeded`.

    Raises ActRefused when the merchant has no payment mode for it, or no endpoint for `webhook.test`.
    """
    if event == WEBHOOK_TEST:
        delivery = await endpoints.queue_test(ctx.db, merchant.id, "test", ctx.clock.now())
        if delivery is None:
            raise ActRefused(Refusal.NO_TEST_ENDPOINT(merchant=merchant.id))
        ctx.wakeups.deliveries.set()
        return delivery.reference
    if event in _DISPUTES:
        return (await _dispute(ctx, merchant, _DISPUTES[event])).reference
    if event == PAYMENT_FAILED:
        return (await _mobile_payment(ctx, merchant, "0003")).reference
    payment = await _mobile_payment(ctx, merchant, "0000", "refund_failed" if event == REFUND_FAILED else None)
    if event == PAYMENT_SUCCEEDED:
        return payment.reference
    refund = await poll_refund(ctx, await request_refund(ctx, payment, None))
    return payment.reference if event == PAYMENT_REFUNDED else refund.reference


async def _mobile_payment(
    ctx: AppContext, merchant: Merchant, digits: str, scenario: TestScenario | None = None
) -> Payment:
    """A payment that has its result: the number ends with `digits`."""
    mode = _mobile_mode(await ctx.catalogues.of(merchant.id))
    body = PaymentBody.model_construct(
        amount=_AMOUNT,
        currency=merchant.currency,
        operator=mode.operator,
        phone_number=f"{mode.dial_code or ''}0197{digits.zfill(6)}",
        test_scenario=scenario,
    )
    created = await create_payment(ctx, Caller(merchant, "test"), body)
    return await poll_payment(ctx, created.payment)


def _mobile_mode(catalogue: Catalogue) -> PaymentMode:
    """MTN if it is active, else the first mode that needs nothing but a number."""
    usable = [
        mode
        for mode in catalogue.active()
        if mode.type == MOBILE_MONEY and not (mode.requires_otp or mode.requires_return_url)
    ]
    if not usable:
        raise ActRefused(Refusal.NO_SIMPLE_MODE())
    return next((mode for mode in usable if mode.operator == "mtn"), usable[0])


async def _dispute(ctx: AppContext, merchant: Merchant, status: DisputeStatus) -> Payment:
    """A card payment that the tester accepted, and what the bank then does."""
    mode = next((mode for mode in (await ctx.catalogues.of(merchant.id)).active() if mode.is_card), None)
    if mode is None:
        raise ActRefused(Refusal.NO_CARD())
    body = PaymentBody.model_construct(
        amount=_AMOUNT,
        currency=merchant.currency,
        operator=mode.operator,
        customer=Customer(firstname="Awa", lastname="Diallo", email="awa@example.com"),
    )
    created = await create_payment(ctx, Caller(merchant, "test"), body)
    approved = Succeeded(created.payment.total_amount, created.payment.currency)
    payment = await settle_payment(ctx, created.payment, approved)
    now = ctx.clock.now()
    facts = DisputeFacts(
        provider_reference=new_reference(now),
        payment_reference=payment.reference,
        status=status,
        amount=payment.total_amount,
        currency=payment.currency,
        reason="fraudulent",
        opened_at=now,
        evidence_due_at=later(now, 7 * DAY),
        is_live=False,
    )
    await disputes.record(ctx, SANDBOX, facts)
    return payment
