"""Live traffic of a trial: merchants create payments, read, repeat and refund them, until they are answered."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reliability.api_client import ApiClient
from reliability.customers import LinkCustomers
from reliability.journal import Acknowledged, Journal
from reliability.merchant import Merchant, ReceivedEvent
from reliability.orders import DEBIT_SCENARIOS, Order, order

#: Of a thousand payments: how many are made on a hosted page, read at once, repeated later, and refunded.
BY_LINK: Final = 30
READ: Final = 30
REPEATED: Final = 20
REFUNDED: Final = 100
_LAST_KEPT: Final = 500


@dataclass
class Traffic:
    """`rate`: payments a second; None: as many as `width` customers at a time can make."""

    api: ApiClient
    merchants: list[Merchant]
    journal: Journal
    seed: int
    rate: float | None = None
    width: int = 32
    scenarios: Mapping[str, int] = field(default_factory=lambda: DEBIT_SCENARIOS)
    link_customers: LinkCustomers | None = None
    _next: int = 0
    _recent: deque[Acknowledged] = field(default_factory=lambda: deque(maxlen=_LAST_KEPT))
    _ended: bool = False

    async def run(self, enough: Callable[[], bool]) -> None:
        """Makes payments until `enough()`. Returns when each one was answered or given up."""
        pacer = _Pacer(self.rate)
        async with asyncio.TaskGroup() as group:
            for _ in range(self.width):
                group.create_task(self._customer(enough, pacer))
        self._ended = True

    async def _customer(self, enough: Callable[[], bool], pacer: "_Pacer") -> None:
        while not enough():
            number, self._next = self._next, self._next + 1
            await pacer.wait()
            if self.link_customers is not None and self._drawn("way", number).randrange(1000) < BY_LINK:
                await self.link_customers.pay(number)
            else:
                await self._shop(order(self.seed, number, len(self.merchants), self.scenarios))

    async def _shop(self, wanted: Order) -> None:
        acknowledged = await self.create(wanted)
        drawn = self._drawn("after", wanted.number)
        if acknowledged is not None:
            self._recent.append(acknowledged)
            if drawn.randrange(1000) < READ:
                await self.read(acknowledged)
        if self._recent and drawn.randrange(1000) < REPEATED:
            await self.repeat(drawn.choice(self._recent))

    def _drawn(self, purpose: str, number: object) -> random.Random:
        return random.Random(f"{self.seed}/{purpose}/{number}")

    async def create(self, wanted: Order) -> Acknowledged | None:
        """Posts an order until it is answered, always with the same external_id (docs/contract.md)."""
        key = self.merchants[wanted.merchant].key
        answer = await self.api.call("POST", "/v1/payments", key, json=wanted.body)
        if answer is None or answer.status == 409:  # 409: the wallet is frozen.
            self.journal.unanswered[wanted.external_id] = wanted
            self.journal.counts["unanswered" if answer is None else "wallet frozen"] += 1
            return None
        if answer.status == 201:
            data = answer.data
            if data["external_id"] != wanted.external_id or data["amount"] != wanted.body["amount"]:
                self.journal.faults.append(f"{wanted.external_id} was answered with another payment: {data}")
            acknowledged = Acknowledged(wanted, data["reference"], data["status"])
        elif answer.status in (402, 500):
            acknowledged = Acknowledged(wanted, None, "failed")
        else:
            self.journal.faults.append(f"{wanted.external_id}: {answer.status} {answer.body[:300]!r}")
            return None
        self.journal.acknowledged[wanted.external_id] = acknowledged
        return acknowledged

    async def read(self, acknowledged: Acknowledged) -> None:
        """Reads a payment by the merchant's own identifier, as its status page would."""
        wanted = acknowledged.order
        answer = await self.api.call("GET", f"/v1/payments/{wanted.external_id}", self.merchants[wanted.merchant].key)
        self.journal.counts["reads"] += 1
        if answer is not None and answer.status != 200:
            self.journal.faults.append(f"reading {wanted.external_id}: {answer.status} {answer.body[:300]!r}")
        elif answer is not None and acknowledged.reference not in (None, answer.data["reference"]):
            self.journal.faults.append(f"{wanted.external_id} has two references")

    async def repeat(self, acknowledged: Acknowledged) -> None:
        """The same request once more, much later: the same payment (docs/contract.md, "Requests")."""
        wanted = acknowledged.order
        key = self.merchants[wanted.merchant].key
        answer = await self.api.call("POST", "/v1/payments", key, json=wanted.body)
        self.journal.counts["repeats"] += 1
        if answer is None or answer.status == 409:
            return
        if answer.status != 201:
            self.journal.faults.append(f"repeating {wanted.external_id}: {answer.status} {answer.body[:300]!r}")
        elif acknowledged.reference not in (None, answer.data["reference"]):
            self.journal.faults.append(f"repeating {wanted.external_id} made another payment")

    async def on_event(self, merchant: Merchant, event: ReceivedEvent, data: dict[str, Any]) -> None:
        """A webhook came: some payments are refunded once they succeeded."""
        if event.name != "payment.succeeded" or self._ended:
            return
        number = (data["metadata"] or {}).get("number", event.payment)
        phone = data["customer"]["phone_number"] or ""
        if phone[-4:-2] == "91" or self._drawn("refund", number).randrange(1000) < REFUNDED:
            await self.refund(merchant, event.payment)

    async def refund(self, merchant: Merchant, payment: str) -> None:
        self.journal.refunds_asked.add(payment)
        answer = await self.api.call("POST", f"/v1/payments/{payment}/refund", merchant.key, json={})
        if answer is None:
            self.journal.counts["refunds unanswered"] += 1
        elif answer.status == 201:
            self.journal.refunds[payment] = answer.data["reference"]
        elif answer.status == 409 and answer.retries:
            self.journal.refunds[payment] = ""  # An attempt whose answer was lost, or the wallet is frozen.
            self.journal.counts["refunds after a lost answer"] += 1
        elif answer.status == 409:
            self.journal.counts["refunds refused"] += 1
        else:
            self.journal.faults.append(f"refund of {payment}: {answer.status} {answer.body[:300]!r}")


class _Pacer:
    """Hands out turns at a fixed rate; turns that nobody took in time are not made up for."""

    def __init__(self, rate: float | None) -> None:
        self._gap = 1 / rate if rate else 0.0
        self._due = 0.0

    async def wait(self) -> None:
        if not self._gap:
            return
        now = asyncio.get_running_loop().time()
        self._due = max(now, self._due + self._gap)
        await asyncio.sleep(self._due - now)
