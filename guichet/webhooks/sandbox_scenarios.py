"""Webhooks that go wrong on request: one that comes twice, and one that newer ones overtake (docs/contract.md, "The
test environment"). Both are what a lost answer causes in live, so a receiver sees the real thing.
"""

from typing import Final

from msgspec import structs
from sqlalchemy import bindparam, select

from guichet.clock import SECOND, later
from guichet.db.engine import Reader, require
from guichet.db.tables import payments
from guichet.domain.events import PAYMENT_SUCCEEDED, REFUND_SUCCEEDED, RETRY_DELAYS, Delivery
from guichet.domain.payments import Payment
from guichet.domain.sandbox_scenarios import scenario_in, scenario_of

#: The events that come late, and the attempts that they have behind them: the next one is a minute later.
_OVERTAKEN: Final = (PAYMENT_SUCCEEDED, REFUND_SUCCEEDED)
_LOST_ATTEMPTS: Final = 2

_PROVIDER_DATA: Final = select(payments.c.provider_data).where(payments.c.id == bindparam("payment_id"))


def as_the_scenario_wants(delivery: Delivery, payment: Payment) -> Delivery:
    """The new delivery of a test payment; one that is to be overtaken waits as if two attempts had been lost, so that
    the payment's later events do not wait for it (D35)."""
    if delivery.event not in _OVERTAKEN or scenario_of(payment) != "webhook_out_of_order":
        return delivery
    now = delivery.created_at
    due = later(now, RETRY_DELAYS[_LOST_ATTEMPTS - 1] * SECOND)
    return structs.replace(delivery, attempts=_LOST_ATTEMPTS, last_attempt_at=now, next_attempt_at=due)


async def comes_twice(db: Reader, delivery: Delivery) -> bool:
    """Whether this test delivery, which was just acknowledged, is sent once more as if the answer had been lost. One
    look-up by primary key for the first attempt at each event of a payment."""
    if delivery.payment_id is None or delivery.attempts > 1:
        return False
    (provider_data,) = require(await db.one(_PROVIDER_DATA, payment_id=delivery.payment_id))
    return scenario_in(provider_data) == "webhook_twice"
