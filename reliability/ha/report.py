"""The table that `make ha` prints, in the form that docs/reliability.md holds."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """`outage`: longest time in which no payment was stored. `whole`: until every machine was back in its place, all in
    seconds. `others`: answers other than a healthy service gives, and requests without an answer."""

    fault: str
    outage: float
    whole: float
    acknowledged: int
    others: dict[str, int]

    def line(self) -> str:
        others = ", ".join(f"{count} × {status}" for status, count in sorted(self.others.items())) or "–"
        return f"| {self.fault} | {self.outage:.1f} s | {self.whole:.0f} s | {self.acknowledged} | {others} |"


def table(rows: Sequence[Row]) -> str:
    head = "| Fault | longest time without a new payment | all machines back after | 201 meanwhile | other answers |"
    return "\n".join([head, "|---|---|---|---|---|", *(row.line() for row in rows)])
