"""Webhooks that go wrong on request: one that comes twice, and one that newer ones overtake (docs/contract.md, "The
test environment"). Both are what a lost answer causes in live, so a receiver sees the real thing.
"""

import json
from collections.abc import Sequence
from typing import Final

from msgspec import structs
from sqlalchemy import bindparam, select

from guichet.clock import SECOND, later
from guichet.db.engine import Reader
from guichet.db.sql_functions import json_numbers
from guichet.db.tables import payments
from guichet.domain.events import PAYMENT_SUCCEEDED, REFUND_SUCCEEDED, RETRY_DELAYS, Delivery
from guichet.domain.ids import DeliveryId
from guichet.domain.payments import Payment
from guichet.domain.sandbox_scenarios import scenario_in, scenario_of

#: The events that come late, and the attempts that they have behind them: the next one is a minute later.
_OVERTAKEN: Final = (PAYMENT_SUCCEEDED, REFUND_SUCCEEDED)
_LOST_ATTEMPTS: Final = 2

_PROVIDER_DATA: Final = select(payments.c.id, payments.c.provider_data).where(
    payments.c.id.bool_op("IN")(json_numbers(bindparam("ids")))
)


def as_the_scenario_wants(delivery: Delivery, payment: Payment) -> Delivery:
    """The new delivery of a test payment; one that is to be overtaken waits as if two attempts had been lost, so that
    the payment's later events do not wait for it (D35)."""
    if delivery.event not in _OVERTAKEN or scenario_of(payment) != "webhook_out_of_order":
        return delivery
    now = delivery.created_at
    due = later(now, RETRY_DELAYS[_LOST_ATTEMPTS - 1] * SECOND)
    return structs.replace(delivery, attempts=_LOST_ATTEMPTS, last_attempt_at=now, next_attempt_at=due)


async def comes_twice(db: Reader, delivered: Sequence[Delivery]) -> set[DeliveryId]:
    """Which of these, which were just acknowledged, are sent once more as if the answer had been lost. One look-up by
    primary keys for the first attempts at events of test payments; live deliveries ask nothing."""
    first = {each.id: each.payment_id for each in delivered if each.env == "test" and each.attempts == 1}
    ids = sorted({payment_id for payment_id in first.values() if payment_id is not None})
    if not ids:
        return set()
    rows = await db.all(_PROVIDER_DATA, ids=json.dumps(ids))
    twice = {payment_id for payment_id, data in rows if scenario_in(data) == "webhook_twice"}
    return {delivery_id for delivery_id, payment_id in first.items() if payment_id in twice}
