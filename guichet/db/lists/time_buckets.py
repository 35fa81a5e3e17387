"""Buckets of time in which the rows of lists are counted, and how few of them make up a range. Pure arithmetic.

Each level's buckets lie inside those of the next level. A range is covered by whole coarse buckets in the middle and by
finer ones towards each end, never more of them than one bucket of the next level holds.
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

    def start(self, bucket: int) -> Instant:
        return Instant(bucket * self.width)


#: From the finest to the coarsest.
LEVELS: Final = (Level("hour", HOUR), Level("day", DAY))
FINEST: Final = LEVELS[0]
COARSEST: Final = LEVELS[-1]
#: No row was created earlier or later. Both are bounds of whole buckets of every level.
_BEGINNING: Final = Instant(0)
_END: Final = Instant(1_200_000 * DAY)


@dataclass(frozen=True, slots=True)
class Run:
    """The buckets `first` to `last` of one level, both included; none when `last` is less than `first`."""

    level: Level
    first: int
    last: int

    def holds(self, instant: Instant) -> bool:
        return self.first <= instant // self.level.width <= self.last


@dataclass(frozen=True, slots=True)
class Cover:
    """What a range consists of: a partial bucket `since <= t < start`, whole buckets, and a partial bucket
    `end <= t < before`. The rows of partial buckets must be counted one by one. `runs` are the whole buckets: an older
    and a newer run of each level, then one run of the coarsest level."""

    runs: Sequence[Run]
    since: Instant
    start: Instant
    end: Instant
    before: Instant


def cover(since: Instant | None, before: Instant | None) -> Cover:
    """Covers `since <= t < before`; None: without a bound."""
    since = _BEGINNING if since is None else max(since, _BEGINNING)
    before = _END if before is None else min(before, _END)
    low, high = _divide_up(since, FINEST.width), before // FINEST.width
    if low > high:  # Both bounds lie in the same bucket.
        return Cover(_runs(0, 0), since, before, before, before)
    return Cover(_runs(low, high), since, FINEST.start(low), FINEST.start(high), before)


def _runs(low: int, high: int) -> list[Run]:
    """Runs that make up the buckets `low <= bucket < high` of the finest level."""
    runs = []
    for level, coarser in pairwise(LEVELS):
        per_coarser = coarser.width // level.width
        up, down = _divide_up(low, per_coarser), high // per_coarser
        if up < down:
            runs += [Run(level, low, up * per_coarser - 1), Run(level, down * per_coarser, high - 1)]
            low, high = up, down
        else:  # The rest holds no whole bucket of a coarser level.
            runs += [Run(level, low, high - 1), Run(level, 0, -1)]
            low = high = 0
    return [*runs, Run(COARSEST, low, high - 1)]


def _divide_up(number: int, divisor: int) -> int:
    return -(-number // divisor)
