"""The result of a check of `guichet doctor`, and how it tells how long something has lasted."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from guichet.clock import DAY, HOUR, MINUTE, Instant


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. `name` is stable; `problems`: one sentence each; `rows`: the details, for `--json`;
    `note`: what was checked, for people."""

    name: str
    problems: Sequence[str]
    rows: list[dict[str, object]] = field(default_factory=list)
    note: str = ""

    @property
    def key(self) -> str:
        """The name as a part of other names: `balances_with_providers`."""
        return self.name.lower().replace(" ", "_")


def age(since: Instant, now: Instant) -> str:
    """The time between two instants in its largest whole unit: days, hours or minutes."""
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if (count := (now - since) // unit) >= 1:
            return f"{count} {name}{'s' if count > 1 else ''}"
    return "a moment"
