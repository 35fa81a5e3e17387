"""What the checks of `guichet doctor` share: their result, and how an age is said."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from guichet.clock import DAY, HOUR, MINUTE, Instant


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. `problems`: one sentence each; `rows`: the details, for `--json`."""

    name: str
    problems: Sequence[str]
    rows: list[dict[str, object]] = field(default_factory=list)


def age(since: Instant, now: Instant) -> str:
    """The time between two instants in its largest whole unit: days, hours or minutes."""
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if (count := (now - since) // unit) >= 1:
            return f"{count} {name}{'s' if count > 1 else ''}"
    return "a moment"
