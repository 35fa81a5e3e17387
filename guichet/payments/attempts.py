"""Payments through a link that one customer begins in each other's place: another number, while nobody knows what
becomes of the first (docs/decisions.md, "Another attempt").

The next one may begin when none of them succeeded and none can be confirmed any more. A confirmation that comes after
that is believed all the same: then the second success is refunded (`refunds/automatic.py`).
"""

from collections.abc import Iterable
from typing import Final

from sqlalchemy import bindparam, or_, select, update

from guichet.clock import Instant, later
from guichet.context import AppContext
from guichet.db.engine import Reader, Transaction, require
from guichet.db.tables import payments
from guichet.domain.errors import Conflict
from guichet.domain.ids import PaymentId
from guichet.domain.payments import Payment
from guichet.domain.sandbox_scenarios import CLOCK_ADVANCED
from guichet.providers.registry import decode_provider_data

#: In the words of its partial index.
_ATTEMPTS: Final = (payments.c.attempt_of.is_not(None), payments.c.attempt_of == bindparam("first"))
_OF: Final = select(payments).where(*_ATTEMPTS).order_by(payments.c.id)
_PAID: Final = (
    select(payments.c.id)
    .where(*_ATTEMPTS, or_(payments.c.status == "succeeded", payments.c.status == "refunded"))
    .order_by(payments.c.id)
)
_LOCK_FIRST: Final = update(payments).where(payments.c.id == bindparam("first")).values(attempt_of=payments.c.id)
_GIVE_UP: Final = (
    update(payments)
    .where(
        *_ATTEMPTS,
        payments.c.id != bindparam("payment_id"),
        payments.c.status == "pending",
        payments.c.link_reserved_until.is_not(None),
    )
    .values(link_reserved_until=None)
    .returning(payments.c.id)
)


class AttemptOpen(Conflict):
    """The customer has paid already, or can still confirm another attempt."""


def first_of(payment: Payment) -> PaymentId:
    """What `attempt_of` of a payment in its place is."""
    return payment.attempt_of or payment.id


def confirmable_until(ctx: AppContext, payment: Payment) -> Instant:
    """Until when the customer may confirm a pending payment, as far as its provider says (`Provider.prompt_lasts`)."""
    provider = ctx.registry.provider(require(payment.provider_account))
    lasts = provider.prompt_lasts if payment.redirect_url is None else provider.page_lasts
    if payment.env == "test":
        lasts -= int(decode_provider_data(payment.provider_data).get(CLOCK_ADVANCED, 0))
    return later(payment.initiation_ended_at or payment.created_at, lasts)


async def attempts_of(reader: Reader, payment: Payment) -> list[Payment]:
    """The payments begun in each other's place, this one among them, oldest first."""
    if payment.attempt_of is None:
        return [payment]
    return [Payment(*row) for row in await reader.all(_OF, first=payment.attempt_of)]


def current(ctx: AppContext, attempts: Iterable[Payment]) -> Payment | None:
    """The attempt that the customer must look at before there can be another: one that succeeded, or else one that can
    still be confirmed. None when another may begin."""
    now = ctx.clock.now()
    paid, open_ = [], []
    for attempt in attempts:
        if attempt.status in ("succeeded", "refunded"):
            paid.append(attempt)
        elif attempt.status == "pending" and confirmable_until(ctx, attempt) > now:
            open_.append(attempt)
    return next(iter([*paid, *open_]), None)


async def take_place(ctx: AppContext, tx: Transaction, payment: Payment) -> int:
    """The others give up their use of the link for `payment`, which was inserted in this transaction; how many had one.
    Raises AttemptOpen when no other attempt may begin; then roll it back.

    The lock of the first one keeps two from beginning at the same time, and the first one from being settled without
    knowing that there are others. The link is locked afterwards, as everywhere.
    """
    first = require(payment.attempt_of)
    await tx.write(_LOCK_FIRST, first=first)
    others = [attempt for attempt in await attempts_of(tx, payment) if attempt.id != payment.id]
    if current(ctx, others) is not None:
        raise AttemptOpen
    return len(await tx.write_all(_GIVE_UP, first=first, payment_id=payment.id))


async def paid_attempts(reader: Reader, payment: Payment) -> list[PaymentId]:
    """Those of the payments begun in each other's place that succeeded, this one among them, oldest first."""
    return [row[0] for row in await reader.all(_PAID, first=payment.attempt_of)]
