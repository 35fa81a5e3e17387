"""What a scenario showed, and the table that `make machines` prints, in the form that docs/reliability.md holds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


def _share(failed: int, asked: int) -> str:
    return f"{failed} of {asked}"


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.1f} s"


@dataclass
class Result:
    """All times in seconds. `outage`: the longest time in which no payment was stored. `first_201`: after the
    beginning of the promotion. `together`: from the stop of the primary, or from the beginning of its rejoining, until
    both hosts are in their places. `payment_statuses`, `read_statuses`: how requests were answered, or why they were
    not."""

    scenario: str
    outage: float = 0.0
    first_201: float | None = None
    together: float | None = None
    payment_statuses: Counter[str] = field(default_factory=Counter)
    read_statuses: Counter[str] = field(default_factory=Counter)
    slowest_read: float = 0.0
    not_ready: float = 0.0
    doctor: float | None = None
    new_server: float | None = None
    faults: list[str] = field(default_factory=list)

    @property
    def failed_payments(self) -> int:
        """Requests that were answered as no healthy service does, or not at all."""
        return sum(self.payment_statuses.values()) - sum(
            self.payment_statuses[each] for each in ("200", "201", "402", "409")
        )

    @property
    def failed_reads(self) -> int:
        return sum(self.read_statuses.values()) - self.read_statuses["200"]

    def line(self) -> str:
        cells = [
            self.scenario,
            _seconds(self.outage),
            _seconds(self.first_201),
            _share(self.failed_payments, sum(self.payment_statuses.values())),
            _share(self.failed_reads, sum(self.read_statuses.values())),
            _seconds(self.slowest_read),
            _seconds(self.not_ready),
            _seconds(self.doctor),
            _seconds(self.new_server),
            _seconds(self.together),
            "yes" if not self.faults else "**no**",
        ]
        return f"| {' | '.join(cells)} |"


_HEAD = (
    "What happened", "longest time without a new payment", "first 201 after the promotion", "requests that failed",
    "reads that failed", "slowest read", "`/readyz` not 200", "`guichet doctor`", "a new server ready after",
    "both hosts in place after", "as it should be",
)  # fmt: skip


def table(results: Sequence[Result]) -> str:
    lines = [f"| {' | '.join(_HEAD)} |", "|" + "---|" * len(_HEAD), *(each.line() for each in results)]
    return "\n".join(lines)
