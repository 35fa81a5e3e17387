"""Fifty live payments a second through HAProxy, and what a fault did to them."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from reliability.journal import Acknowledged
from reliability.orders import Order
from reliability.traffic import Traffic

#: Orders a second; about every second one is such that the trial makes it: 50 payments a second.
RATE: Final = 105.0
#: Whose provider finds a payment again by our reference, and whose simulator finds it by an index.
_OPERATORS: Final = frozenset({"mtn", "mtn_ci", "moov", "moov_bf", "orange_bf", "wave_ci", "wave_sn", "free_sn"})
#: Scenarios of the simulator that end within seconds; the others are for `make chaos`.
_QUICK: Final = frozenset({"9001", "9003", "9004", "9006", "9007", "9008", "9023", "9025", "9101", "9103", "9107"})


@dataclass
class SteadyTraffic(Traffic):
    """`acknowledged_at`: when each payment was answered 201, in monotonic seconds."""

    acknowledged_at: list[float] = field(default_factory=list)

    @property
    def acknowledged(self) -> int:
        """Payments answered 201 so far."""
        return len(self.acknowledged_at)

    async def _shop(self, wanted: Order) -> None:
        if wanted.scenario in _QUICK and wanted.body["operator"] in _OPERATORS:
            await super()._shop(wanted)

    async def create(self, wanted: Order) -> Acknowledged | None:
        acknowledged = await super().create(wanted)
        if acknowledged is not None and acknowledged.reference is not None:
            self.acknowledged_at.append(time.monotonic())
        return acknowledged


def outage(created: Sequence[float], began: float, ended: float) -> float:
    """The longest time in which no payment was stored, in seconds. When answers came says less: what was stored before
    a fault may be answered in the middle of it."""
    return max(later - earlier for earlier, later in pairwise([began, *created, ended]))


def statuses_between(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """Answers other than those that are expected of a healthy service, and requests without an answer."""
    expected = {"200", "201", "402", "409"}
    return {status: count for status, count in (after - before).items() if status not in expected}
