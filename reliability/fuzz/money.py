"""After hostile answers: every payment and refund is as the simulated providers' books say, or still pending."""

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import select

from guichet.bootstrap import service
from guichet.db.tables import payments, refunds, webhook_deliveries
from guichet.domain.events import Delivery
from guichet.domain.payments import Payment, Refund
from guichet.providers.orange import order_id
from guichet.settings import Settings

_BOOKS: Final = "SELECT client_ref, kind, COUNT(*) FROM books GROUP BY client_ref, kind"


@dataclass
class Agreement:
    """How many live payments and refunds ended how, and what must not be."""

    payments: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    refunds: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    faults: list[str] = field(default_factory=list)


def _moved(simulator_db: Path) -> Mapping[tuple[str, str], int]:
    """How often the providers moved money, by their client's reference and "debit" or "credit"."""
    with closing(sqlite3.connect(simulator_db)) as books:
        return {(reference, kind): count for reference, kind, count in books.execute(_BOOKS) if reference}


async def compare(settings: Settings, simulator_db: Path, acknowledged: set[str]) -> Agreement:
    """`acknowledged`: the ids of webhooks that some answer may have acknowledged. No service may run meanwhile."""
    moved, found = _moved(simulator_db), Agreement()
    async with service(settings) as opened:
        paid = [Payment(*row) for row in await opened.ctx.db.scan(select(payments))]
        returned = [Refund(*row) for row in await opened.ctx.db.scan(select(refunds))]
        sent = [Delivery(*row) for row in await opened.ctx.db.scan(select(webhook_deliveries))]
    for payment in paid:
        if payment.env == "live":
            found.payments[payment.status] += 1
            debits = moved.get((payment.reference, "debit"), 0) + moved.get((order_id(payment.reference), "debit"), 0)
            _judge(found, f"payment {payment.reference}", payment.status, debits, payment.operator)
    by_id = {payment.id: payment for payment in paid}
    for refund in returned:
        if refund.env == "live":
            found.refunds[refund.status] += 1
            payment = by_id[refund.payment_id]
            # Some providers know a refund by the reference of its payment.
            returns = sum(moved.get((each.reference, "credit"), 0) for each in (refund, payment))
            _judge(found, f"refund {refund.reference}", refund.status, returns, payment.operator)
    for delivery in sent:
        if delivery.status == "success" and delivery.reference not in acknowledged:
            found.faults.append(f"delivery {delivery.reference} counts as taken, but no answer had a 2xx")
    return found


def _judge(found: Agreement, name: str, status: str, moves: int, operator: str) -> None:
    if moves > 1:
        found.faults.append(f"{name} ({operator}): the provider moved the money {moves} times")
    if status in ("succeeded", "refunded") and moves == 0:
        found.faults.append(f"{name} ({operator}) is {status}, but the provider moved nothing")
    if status == "failed" and moves:
        found.faults.append(f"{name} ({operator}) is failed, but the provider moved the money")
