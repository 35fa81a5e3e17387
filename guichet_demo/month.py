"""The second demo merchant: a month of test payments, so that the console has something to show.

Everything goes the way that real payments go, with a clock that is set to the time of each sale: `create_payment`,
`settle_payments`, `request_refund`. So the books, the chain, the counts of lists and the figures are right by
themselves. Only the webhooks are written as they ended: the address does not exist, and nothing is sent.

It is done once. What is made last marks the end, a key that expires; a start that was interrupted before is taken up by
the next one, as no `external_id` makes two payments.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

import msgspec

from guichet.back_office.merchants import create_merchant
from guichet.clock import DAY, SECOND, Clock, Instant, earlier, later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.events import (
    MAX_ATTEMPTS,
    PAYMENT_FAILED,
    PAYMENT_REFUNDED,
    PAYMENT_SUCCEEDED,
    REFUND_SUCCEEDED,
    RETRY_DELAYS,
    Delivery,
    EventName,
)
from guichet.domain.merchants import Caller, Environment, Merchant, random_text
from guichet.domain.money import Hundredths
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import CONFIRMED, REFUSED, Payment, Settlement
from guichet.links.links import create_link, requested_link
from guichet.merchants import api_keys
from guichet.payments import repository
from guichet.payments.create import TOKEN_LENGTH, LinkUse, create_payment
from guichet.refunds.automatic import settle_payments
from guichet.refunds.request import request_refund
from guichet.schemas.payment import Customer, PaymentBody, PaymentObject, payment_object
from guichet.schemas.refund import RefundObject, refund_object
from guichet.webhooks import deliveries, endpoints, outbox
from guichet_demo.sales import DAYS, Sale, days_of_sales

NAME: Final = "Marché Démo"
_ENV: Final[Environment] = "test"
_WEBHOOK_URL: Final = "https://marche-demo.example/guichet"
_LINK: Final = {"amount": 6500, "description": "Panier du samedi", "external_id": "panier-du-samedi"}
_KEY_ENDS_IN: Final = 9 * DAY
#: The last sales but a few: their webhooks were refused.
_OUTAGE: Final = slice(-9, -5)
_REASON: Final = "Article indisponible"


@dataclass(frozen=True, slots=True)
class _ClockInThePast:
    """Was set to `at` when the real clock's `monotonic` was `since`, and goes on from there."""

    at: Instant
    clock: Clock
    since: int

    def now(self) -> Instant:
        return later(self.at, self.clock.monotonic() - self.since)

    def monotonic(self) -> int:
        return self.clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)


def _at(ctx: AppContext, instant: Instant) -> AppContext:
    """The same service at another time."""
    return replace(ctx, clock=_ClockInThePast(instant, ctx.clock, ctx.clock.monotonic()))


async def add_merchant(ctx: AppContext) -> Merchant:
    """The merchant as it is before its first sale, dated accordingly."""
    merchant, _ = await create_merchant(_at(ctx, earlier(ctx.clock.now(), (DAYS + 1) * DAY)), NAME)
    return merchant


async def fill_month(ctx: AppContext, merchant: Merchant) -> None:
    """Makes the month's payments unless they are there. Cost: 500 payments, about a second."""
    if any(key.expires_at is not None for key in await api_keys.list_of(ctx.db, merchant.id)):
        return
    now, caller = ctx.clock.now(), Caller(merchant, _ENV)
    opening = _at(ctx, merchant.created_at)
    link = (
        await create_link(
            opening.db, caller, requested_link(opening.clock, opening.settings, caller, msgspec.json.encode(_LINK))
        )
    ).link
    days = list(days_of_sales(now, ctx.settings.time_zone))
    unheard = {sale.external_id for sale in [sale for sales in days for sale in sales][_OUTAGE]}
    for sales in days:
        made = await asyncio.gather(*(_create(ctx, caller, link, sale) for sale in sales))
        new = [each for each in made if each is not None]
        told = await _settle(ctx, merchant, new, unheard)
        for sale, payment in new:
            told += await _refund(ctx, sale, payment)
        async with ctx.db.transaction() as tx:
            await deliveries.insert_new(tx, sorted(told, key=attrgetter("created_at")))
    await endpoints.configure(ctx.db, ctx.vault, merchant.id, _ENV, _WEBHOOK_URL, now, rotate=False)
    async with ctx.db.transaction() as tx:
        await api_keys.add(tx, merchant.id, _ENV, api_keys.new_key(_ENV), later(now, _KEY_ENDS_IN), now)


async def _create(ctx: AppContext, caller: Caller, link: PaymentLink, sale: Sale) -> tuple[Sale, Payment] | None:
    """The pending payment; None when it was there already."""
    link_use = LinkUse(link, random_text(TOKEN_LENGTH)) if sale.by_link else None
    created = await create_payment(_at(ctx, sale.at), caller, _request(sale, link), link_use)
    return (sale, created.payment) if created.created else None


def _request(sale: Sale, link: PaymentLink) -> PaymentBody:
    return PaymentBody.model_construct(
        amount=link.amount if sale.by_link else Hundredths(sale.amount * 100),
        currency="XOF",
        operator=sale.operator,
        phone_number=sale.phone_number,
        otp="123456",
        description=link.description if sale.by_link else sale.description,
        external_id=sale.external_id,
        return_url="https://marche-demo.example/merci",
        customer=Customer.model_construct(firstname=sale.firstname, lastname=sale.lastname),
    )


async def _settle(
    ctx: AppContext, merchant: Merchant, made: Sequence[tuple[Sale, Payment]], unheard: set[str]
) -> list[Delivery]:
    """Settles what has a result, in one transaction. The webhooks as they ended: `unheard` are the sales whose webhooks
    the receiver refused."""
    catalogue = await ctx.catalogues.of(merchant.id)
    final = [(sale, payment, sale.settled_at) for sale, payment in made if sale.settled_at is not None]
    batch = [
        Settlement(
            payment=payment,
            transition=REFUSED if sale.failure else CONFIRMED,
            catalogue=catalogue,
            now=settled_at,
            account=ctx.registry.float_account(payment, payment),
            failure_reason=sale.failure,
        )
        for sale, payment, settled_at in sorted(final, key=lambda each: each[2])
    ]
    told = []
    for payment in await settle_payments(ctx.db, batch):
        assert isinstance(payment, Payment)
        event: EventName = PAYMENT_SUCCEEDED if payment.status == "succeeded" else PAYMENT_FAILED
        data = payment_object(payment, catalogue.by_operator(payment.operator))
        told.append(_ended(payment, event, data, payment.updated_at, heard=payment.external_id not in unheard))
    return told


async def _refund(ctx: AppContext, sale: Sale, payment: Payment) -> list[Delivery]:
    """Refunds the payment if it was refunded; the webhooks as they ended."""
    if sale.refunded_at is None:
        return []
    settled = require(await repository.by_id(ctx.db, payment.id))
    refund = await request_refund(_at(ctx, sale.refunded_at), settled, _REASON)
    refunded = require(await repository.by_id(ctx.db, payment.id))
    mode = (await ctx.catalogues.of(payment.merchant_id)).by_operator(payment.operator)
    return [
        _ended(refunded, REFUND_SUCCEEDED, refund_object(refund), refunded.updated_at),
        _ended(refunded, PAYMENT_REFUNDED, payment_object(refunded, mode), refunded.updated_at),
    ]


def _ended(
    payment: Payment, event: EventName, data: PaymentObject | RefundObject, at: Instant, *, heard: bool = True
) -> Delivery:
    """A webhook that was delivered a second later, or given up after five attempts."""
    queued = outbox.new_delivery(
        payment.merchant_id, _ENV, event, outbox.ACCOUNT, _WEBHOOK_URL, data, at, payment_id=payment.id
    )
    ended = later(at, SECOND if heard else sum(RETRY_DELAYS) * SECOND)
    return msgspec.structs.replace(
        queued,
        status="success" if heard else "failed",
        attempts=1 if heard else MAX_ATTEMPTS,
        response_code=200 if heard else 503,
        delivered_at=ended if heard else None,
        last_attempt_at=ended,
        next_attempt_at=None,
        error=None if heard else "bad_status",
    )
