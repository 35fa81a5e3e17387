"""The second demo merchant: a month of test payments, so that the console has something to show.

Everything goes the way that real payments go, with a clock that is set to the time of each sale: `create_payment`,
`settle_payments`, `request_refund`. So the books, the chain, the counts of lists and the figures are right by
themselves. Only the webhooks are written as they ended: the address does not exist, and nothing is sent.

It is done once. What is made last marks the end, a key that expires; a start that was interrupted before is taken up by
the next one, as no `external_id` makes two payments.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec
from msgspec import structs
from sqlalchemy import bindparam, select

from guichet.back_office.merchants import create_merchant
from guichet.clock import DAY, SECOND, Clock, Instant, earlier, later
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.tables import events, webhook_deliveries
from guichet.domain.events import (
    MAX_ATTEMPTS,
    PAYMENT_FAILED,
    PAYMENT_SUCCEEDED,
    RETRY_DELAYS,
    Delivery,
    StoredEvent,
)
from guichet.domain.ids import PaymentId
from guichet.domain.merchants import Caller, Environment, Merchant, random_text
from guichet.domain.money import Hundredths
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import CONFIRMED, REFUSED, Payment, Settlement
from guichet.links.links import create_link, requested_link
from guichet.merchants import api_keys
from guichet.payments import repository
from guichet.payments.create import TOKEN_LENGTH, CreatedPayment, LinkUse, create_payment
from guichet.payments.settlement import settle_payments
from guichet.refunds.automatic import after_link_payments
from guichet.refunds.request import request_refund
from guichet.schemas.payment import Customer, PaymentBody
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
_RESULTS: Final = (PAYMENT_SUCCEEDED, PAYMENT_FAILED)
_STORED: Final = StoredEvent.__struct_fields__
#: Those without a webhook: nobody listened when they happened.
_EVENTS: Final = (
    select(*(events.c[name] for name in _STORED))
    .outerjoin(webhook_deliveries, webhook_deliveries.c.id == events.c.id)
    .where(events.c.merchant_id == bindparam("merchant_id"), events.c.env == _ENV, webhook_deliveries.c.id.is_(None))
    .order_by(events.c.id)
)


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
    return structs.replace(ctx, clock=_ClockInThePast(instant, ctx.clock, ctx.clock.monotonic()))


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
    refused = {sale.external_id for sale in [sale for sales in days for sale in sales][_OUTAGE]}
    unheard: set[PaymentId] = set()
    for sales in days:
        results = await asyncio.gather(*(_create(ctx, caller, link, sale) for sale in sales))
        unheard |= {created.payment.id for sale, created in results if sale.external_id in refused}
        new = [(sale, created.payment) for sale, created in results if created.created]
        await _settle(ctx, merchant, new)
        for sale, payment in new:
            await _refund(ctx, sale, payment)
    await _tell(ctx, merchant, unheard)
    await endpoints.configure(ctx.db, ctx.vault, merchant.id, _ENV, _WEBHOOK_URL, now, rotate=False)
    async with ctx.db.transaction() as tx:
        await api_keys.add(tx, merchant.id, _ENV, api_keys.new_key(_ENV), later(now, _KEY_ENDS_IN), now)


async def _create(ctx: AppContext, caller: Caller, link: PaymentLink, sale: Sale) -> tuple[Sale, CreatedPayment]:
    """The pending payment, or the one that was there already."""
    link_use = LinkUse(link, random_text(TOKEN_LENGTH)) if sale.by_link else None
    return sale, await create_payment(_at(ctx, sale.at), caller, _request(sale, link), link_use)


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


async def _settle(ctx: AppContext, merchant: Merchant, new_payments: Sequence[tuple[Sale, Payment]]) -> None:
    """Settles what has a result, in one transaction."""
    catalogue = await ctx.catalogues.of(merchant.id)
    final = [(sale, payment, sale.settled_at) for sale, payment in new_payments if sale.settled_at is not None]
    batch = [
        Settlement(
            payment=payment,
            transition=REFUSED if sale.failure else CONFIRMED,
            catalogue=catalogue,
            now=settled_at,
            account=ctx.registry.float_account(payment, payment),
            failure_reason=sale.failure,
        )
        for sale, payment, settled_at in sorted(final, key=lambda row: row[2])
    ]
    follow = partial(after_link_payments, f"{ctx.settings.public_url}/pay")
    for settled in await settle_payments(ctx.db, ctx.hand_over, follow, batch):
        assert isinstance(settled, Payment)


async def _refund(ctx: AppContext, sale: Sale, payment: Payment) -> None:
    if sale.refunded_at is not None:
        settled = require(await repository.by_id(ctx.db, payment.id))
        await request_refund(_at(ctx, sale.refunded_at), settled, _REASON)


async def _tell(ctx: AppContext, merchant: Merchant, unheard: set[PaymentId]) -> None:
    """The webhooks of all events, as they ended: the receiver refused those about the results of `unheard`."""
    rows = await ctx.db.scan(_EVENTS, merchant_id=merchant.id)
    events = [StoredEvent(*row) for row in rows]
    ended = [_ended(event, heard=event.payment_id not in unheard or event.event not in _RESULTS) for event in events]
    async with ctx.db.transaction() as tx:
        await deliveries.insert_new(tx, ended)


def _ended(event: StoredEvent, *, heard: bool) -> Delivery:
    """A webhook that was delivered a second later, or given up after five attempts."""
    queued = require(outbox.delivery_of(event, event.id, _WEBHOOK_URL))
    ended = later(event.created_at, SECOND if heard else sum(RETRY_DELAYS) * SECOND)
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
