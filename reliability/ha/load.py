"""Fifty live payments a second through HAProxy, and when each one was acknowledged."""

import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from reliability.journal import Acknowledged
from reliability.orders import Order
from reliability.traffic import Traffic

#: Payments a second.
RATE: Final = 50.0
#: Scenarios of the simulator that end within seconds; the others are for `make chaos`.
_QUICK: Final = frozenset({"9001", "9003", "9004", "9006", "9007", "9008", "9023", "9025", "9101", "9103", "9107"})


@dataclass
class SteadyTraffic(Traffic):
    """`acknowledged_at`: when each 201 came, by the monotonic clock."""

    acknowledged_at: list[float] = field(default_factory=list)

    async def _shop(self, wanted: Order) -> None:
        if wanted.scenario in _QUICK:
            await super()._shop(wanted)

    async def create(self, wanted: Order) -> Acknowledged | None:
        acknowledged = await super().create(wanted)
        if acknowledged is not None and acknowledged.reference is not None:
            self.acknowledged_at.append(time.monotonic())
        return acknowledged

    def outage(self, since: float, until: float) -> float:
        """The longest time without a 201 between two instants, in seconds."""
        instants = [since, *(at for at in self.acknowledged_at if since < at < until), until]
        return max(later - earlier for earlier, later in pairwise(instants))

    def acknowledged_since(self, since: float) -> int:
        return sum(at > since for at in reversed(self.acknowledged_at[-2000:]))


def statuses_between(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """Answers other than those that are expected of a healthy service, and requests without an answer."""
    expected = {"200", "201", "402", "409"}
    return {status: count for status, count in (after - before).items() if status not in expected}
