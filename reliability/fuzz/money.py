"""After hostile answers: every payment and refund is as the simulated providers' books say, or still pending."""

import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from sqlalchemy import select

from guichet.bootstrap import service
from guichet.db.tables import payments, refunds, webhook_deliveries
from guichet.domain.events import Delivery
from guichet.domain.payments import Payment, Refund
from guichet.providers.orange.provider import order_id
from guichet.settings import Settings

_BOOKS: Final = """
SELECT books.transaction_id, books.kind, books.client_ref, transactions.ref, transactions.provider
FROM books JOIN transactions ON transactions.id = books.transaction_id
"""
_MOVED: Final = ("succeeded", "refunded")
#: The provider, and its only operator.
_CORIS: Final = "coris"


@dataclass
class Agreement:
    """How many live payments and refunds ended how, and what must not be."""

    payments: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    refunds: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    faults: list[str] = field(default_factory=list)


class _Books:
    """What the simulated providers moved, by our reference or by theirs."""

    def __init__(self, simulator_db: Path) -> None:
        self._moves: dict[tuple[str, str], set[int]] = defaultdict(set)
        #: How many debits Coris made. It never learns our references, and its own may be damaged in a hostile answer:
        #: its payments can only be compared in number.
        self.coris_debits = 0
        with closing(sqlite3.connect(simulator_db)) as books:
            for move, kind, ours, theirs, provider in books.execute(_BOOKS):
                self.coris_debits += (provider, kind) == (_CORIS, "debit")
                for reference in filter(None, (ours, theirs)):
                    self._moves[kind, reference].add(move)

    def count(self, kind: Literal["debit", "credit"], *references: str | None) -> int:
        """How often money moved under any of these references."""
        moves: set[int] = set()
        return len(moves.union(*(self._moves.get((kind, reference or ""), moves) for reference in references)))


async def compare(settings: Settings, simulator_db: Path, acknowledged: set[str]) -> Agreement:
    """`acknowledged`: the ids of webhooks that some answer may have acknowledged. No service may run meanwhile."""
    books, found = _Books(simulator_db), Agreement()
    async with service(settings) as opened:
        paid = [Payment(*row) for row in await opened.ctx.db.scan(select(payments))]
        returned = [Refund(*row) for row in await opened.ctx.db.scan(select(refunds))]
        sent = [Delivery(*row) for row in await opened.ctx.db.scan(select(webhook_deliveries))]
    succeeded_at_coris = 0
    for payment in paid:
        if payment.env == "live":
            found.payments[payment.status] += 1
            ours = payment.reference
            debits = books.count("debit", ours, order_id(ours), payment.provider_reference)
            if payment.operator == _CORIS:
                succeeded_at_coris += payment.status in _MOVED
            else:
                _judge(found, f"payment {payment.reference}", payment.status, debits, payment.operator)
    if succeeded_at_coris > books.coris_debits:
        found.faults.append(f"{succeeded_at_coris} payments of Coris succeeded, it made {books.coris_debits} debits")
    by_id = {payment.id: payment for payment in paid}
    for refund in returned:
        if refund.env == "live":
            found.refunds[refund.status] += 1
            payment = by_id[refund.payment_id]
            # Some providers know a refund by the reference of its payment.
            returns = books.count("credit", refund.reference, payment.reference, refund.provider_reference)
            _judge(found, f"refund {refund.reference}", refund.status, returns, payment.operator)
    for delivery in sent:
        if delivery.status == "success" and delivery.reference not in acknowledged:
            found.faults.append(f"delivery {delivery.reference} counts as taken, but no answer had a 2xx")
    return found


def _judge(found: Agreement, name: str, status: str, moves: int, operator: str) -> None:
    if moves > 1:
        found.faults.append(f"{name} ({operator}): the provider moved the money {moves} times")
    if status in _MOVED and moves == 0:
        found.faults.append(f"{name} ({operator}) is {status}, but the provider moved nothing")
    if status == "failed" and moves:
        found.faults.append(f"{name} ({operator}) is failed, but the provider moved the money")
