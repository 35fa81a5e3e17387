"""The figures of a merchant's last days: written as people read them, and drawn as charts.

The geometry of a chart is in units of its SVG's view box.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from guichet.clock import HOUR, SECOND, Instant
from guichet.domain.records import Record
from guichet.history.figures import DAYS, hour_from
from guichet.pages.days import midnight, today
from guichet.pages.i18n import ENGLISH
from guichet.pages.views import View

#: As wide as the text column of a telephone, so that text in a chart has about the size of text beside it.
WIDTH: Final = 320
_COLUMNS_HEIGHT: Final = 96
_BAR_WIDTH: Final = 12
#: What is not zero can be seen.
_LEAST: Final = 2


class Days(Record, frozen=True):
    """The last DAYS days, today as the last one. `bounds`: the first hour of each, and of tomorrow, from 1970. An hour
    belongs to the day in which it begins: `exact` is False where a day begins within an hour of UTC."""

    dates: Sequence[date]
    bounds: Sequence[int]
    exact: bool

    @classmethod
    def until(cls, now: Instant, time_zone: ZoneInfo) -> "Days":
        return _days(today(now, time_zone), time_zone)


@lru_cache(maxsize=64)
def _days(last: date, time_zone: ZoneInfo) -> Days:
    dates = [last + timedelta(days=day) for day in range(1 - DAYS, 2)]
    starts = [midnight(day, time_zone) for day in dates]
    return Days(dates[:-1], [hour_from(start) for start in starts], all(start % HOUR == 0 for start in starts))


def count_text(count: int, language: str) -> str:
    """`12 345` for a French reader, `12,345` for an English one. Babel would take a tenth of the page's time."""
    digits = f"{count:,}"
    return digits if language == ENGLISH else digits.replace(",", "\u00a0")


def rate_text(rate: float | None, language: str) -> str:
    """`97,5 %`; a rate that is not quite whole never reads as 0 % or 100 %."""
    if rate is None:
        return "–"
    tenths = int(rate) * 1000 if rate in (0, 1) else min(max(round(rate * 1000), 1), 999)
    whole, rest = divmod(tenths, 10)
    if language == ENGLISH:
        return f"{whole}.{rest}%" if rest else f"{whole}%"
    return f"{whole},{rest}\u00a0%" if rest else f"{whole}\u00a0%"


def time_text(duration: int | None) -> str:
    """`0,4 s` would be no help: seconds below a minute, then minutes, then hours."""
    if duration is None:
        return "–"
    seconds = (duration + SECOND // 2) // SECOND
    if seconds < 60:
        return f"{max(seconds, 1)}\u00a0s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}\u00a0min\u00a0{seconds:02d}\u00a0s"
    return f"{minutes // 60}\u00a0h\u00a0{minutes % 60:02d}\u00a0min"


class Bar(View, frozen=True):
    """A rectangle; `title` is what it stands for."""

    x: int
    y: int
    width: int
    height: int
    title: str


def columns(values: Sequence[tuple[str, int]]) -> list[Bar]:
    """Upright bars side by side, for pairs of a title and a value (not negative). The highest is 96 units high."""
    most = max((value for _, value in values), default=0)
    step = WIDTH // len(values) if values else WIDTH
    bars = []
    for place, (title, value) in enumerate(values):
        height = _length(value, most, _COLUMNS_HEIGHT)
        bars.append(Bar(place * step + 1, _COLUMNS_HEIGHT - height, step - 2, height, title))
    return bars


def lines(values: Sequence[tuple[str, int]], line_height: int = 36) -> list[Bar]:
    """Lying bars below each other, each with room for a line of text above it. The longest is 320 units long."""
    most = max((value for _, value in values), default=0)
    return [
        Bar(0, place * line_height + 18, _length(value, most, WIDTH), _BAR_WIDTH, title)
        for place, (title, value) in enumerate(values)
    ]


def _length(value: int, most: int, longest: int) -> int:
    return max(_LEAST, value * longest // most) if value else 0
