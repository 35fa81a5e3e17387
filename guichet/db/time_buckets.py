"""The stretches of time that lists are counted by, and how few of them make up a range. Pure arithmetic.

Buckets of each level nest in those of the next: a range is covered by whole coarse buckets in the middle and, towards
each end, by finer ones, never more of them than fit in one bucket of the next level.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from guichet.clock import DAY, HOUR, Instant


@dataclass(frozen=True, slots=True)
class Level:
    """Buckets of `width` microseconds each, numbered from 1970."""

    name: str
    width: int


#: From the finest to the coarsest.
LEVELS: Final = (Level("hour", HOUR), Level("day", DAY))
FINEST: Final = LEVELS[0]
COARSEST: Final = LEVELS[-1]
#: No row was created before or after: whole buckets of every level, and small enough as the number of any.
_BEGINNING: Final = 0
_END: Final = 1_200_000 * DAY


@dataclass(frozen=True, slots=True)
class Run:
    """The buckets `first` to `last` of one level, both included; none when `last` comes before `first`."""

    level: Level
    first: int
    last: int

    def holds(self, instant: Instant) -> bool:
        return self.first <= instant // self.level.width <= self.last


@dataclass(frozen=True, slots=True)
class Cover:
    """`since <= t < start` and `end <= t < before` are cut buckets, whose rows are counted one by one. `runs` make up
    what lies between: an older and a newer run of each level, then one of the coarsest."""

    runs: Sequence[Run]
    since: Instant
    start: Instant
    end: Instant
    before: Instant


def cover(since: Instant | None, before: Instant | None) -> Cover:
    """Covers `since <= t < before`; None: without a bound."""
    since = _BEGINNING if since is None else max(since, _BEGINNING)
    before = _END if before is None else min(before, _END)
    low, high = _up(since, FINEST.width), before // FINEST.width
    if low > high:  # Both bounds cut the same bucket.
        return Cover(_runs(0, 0), since, before, before, before)
    return Cover(_runs(low, high), since, low * FINEST.width, high * FINEST.width, before)


def _runs(low: int, high: int) -> list[Run]:
    """Runs of the buckets `low <= bucket < high` of the finest level."""
    runs = []
    for level, coarser in pairwise(LEVELS):
        within = coarser.width // level.width
        up, down = _up(low, within), high // within
        if up < down:
            runs += [Run(level, low, up * within - 1), Run(level, down * within, high - 1)]
            low, high = up, down
        else:  # No whole bucket of a coarser level is left.
            runs += [Run(level, low, high - 1), Run(level, 0, -1)]
            low = high = 0
    return [*runs, Run(COARSEST, low, high - 1)]


def _up(number: int, step: int) -> int:
    return -(-number // step)
