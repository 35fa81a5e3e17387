"""Buckets of time in which the rows of lists are counted, and how few of them make up a range. Pure arithmetic.

A range is covered by whole days in the middle and by whole hours towards each end, never more than a day has.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from guichet.clock import DAY, HOUR, Instant


class Level(NamedTuple):
    """Buckets of `width` microseconds each, numbered from 1970."""

    name: str
    width: int

    def start(self, bucket: int) -> Instant:
        return Instant(bucket * self.width)


HOURS: Final = Level("hour", HOUR)
DAYS: Final = Level("day", DAY)
LEVELS: Final = (HOURS, DAYS)
#: No row was created earlier or later. Both are bounds of whole days.
_BEGINNING: Final = Instant(0)
_END: Final = Instant(1_200_000 * DAY)


class Run(NamedTuple):
    """The buckets `first` to `last` of one level, both included; none when `last` is less than `first`."""

    level: Level
    first: int
    last: int

    def holds(self, instant: Instant) -> bool:
        return self.first <= instant // self.level.width <= self.last


class Cover(NamedTuple):
    """What a range consists of: a partial hour `since <= t < start`, whole buckets, and a partial hour
    `end <= t < before`. The rows of partial hours must be counted one by one. `runs` are the whole buckets: older
    hours, newer hours, and the days between."""

    runs: Sequence[Run]
    since: Instant
    start: Instant
    end: Instant
    before: Instant


def cover(since: Instant | None, before: Instant | None) -> Cover:
    """Covers `since <= t < before`; None: without a bound."""
    since = _BEGINNING if since is None else max(since, _BEGINNING)
    before = _END if before is None else min(before, _END)
    first, last = _divide_up(since, HOUR), before // HOUR
    if first > last:  # Both bounds lie in the same hour.
        return Cover(_runs(0, 0), since, before, before, before)
    return Cover(_runs(first, last), since, HOURS.start(first), HOURS.start(last), before)


def cover_by_hours(day: Instant) -> Cover:
    """Covers the day that begins then by its hours."""
    first, last = day // HOUR, (day + DAY) // HOUR
    runs = (Run(HOURS, first, last - 1), Run(HOURS, 0, -1), Run(DAYS, 0, -1))
    return Cover(runs, day, day, HOURS.start(last), HOURS.start(last))


def _runs(first: int, last: int) -> Sequence[Run]:
    """Runs that make up the hours `first <= hour < last`."""
    per_day = DAY // HOUR
    day, last_day = _divide_up(first, per_day), last // per_day
    if day >= last_day:
        return Run(HOURS, first, last - 1), Run(HOURS, 0, -1), Run(DAYS, 0, -1)
    return (
        Run(HOURS, first, day * per_day - 1),
        Run(HOURS, last_day * per_day, last - 1),
        Run(DAYS, day, last_day - 1),
    )


def _divide_up(number: int, divisor: int) -> int:
    return -(-number // divisor)
