"""The figures of a merchant's last days: written as people read them, and drawn as charts.

The geometry of a chart is in units of its SVG's view box.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from functools import cache, lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from guichet.clock import HOUR, SECOND, Instant
from guichet.domain.records import Record
from guichet.history.figures import DAYS, hour_from
from guichet.pages.days import midnight, today
from guichet.pages.i18n import ENGLISH
from guichet.pages.views import View

#: Pixels of a chart's lines for its highest amount and for nothing; it is as wide as its card.
_TOP: Final = 26
_BASE: Final = 262
#: What is not zero can be seen.
_LEAST: Final = 2
#: The highest line of a chart is one of these, times a power of ten.
_ROUND: Final = (1, 2, 3, 4, 5, 6, 8, 10)
_MILLION: Final = 1_000_000
#: Tenths of a percent from which a change is not shown.
_MOST_CHANGE: Final = 10_000


class Days(Record, frozen=True):
    """The last DAYS days, today as the last one. `bounds`: the first hour of each of twice as many days, and of
    tomorrow, from 1970. An hour belongs to the day in which it begins: `exact` is False where a day begins within an
    hour of UTC."""

    dates: Sequence[date]
    bounds: Sequence[int]
    exact: bool

    @classmethod
    def until(cls, now: Instant, time_zone: ZoneInfo) -> "Days":
        return _days(today(now, time_zone), time_zone)


@lru_cache(maxsize=64)
def _days(last: date, time_zone: ZoneInfo) -> Days:
    dates = [last + timedelta(days=day) for day in range(1 - 2 * DAYS, 2)]
    starts = [midnight(day, time_zone) for day in dates]
    return Days(dates[DAYS:-1], [hour_from(start) for start in starts], all(start % HOUR == 0 for start in starts))


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


def change_text(now: int, before: int, language: str) -> str:
    """`+12,4 %`, `−3,2 %`, `0 %`; empty when there is nothing to compare with, or so little that it says nothing."""
    tenths = round((now - before) * 1000 / before) if before else _MOST_CHANGE
    if tenths >= _MOST_CHANGE:
        return ""
    sign = "+" if tenths > 0 else "\u2212" if tenths < 0 else ""
    whole, rest = divmod(abs(tenths), 10)
    digits = count_text(whole, language)
    if language == ENGLISH:
        return f"{sign}{digits}.{rest}%" if rest else f"{sign}{digits}%"
    return f"{sign}{digits},{rest}\u202f%" if rest else f"{sign}{digits}\u202f%"


class Bar(View, frozen=True):
    """A day of a chart. In percent of the width: `left` of all that belongs to it, `middle` of its bar; in pixels:
    `top`, `height`. `title`: what it stands for."""

    href: str
    title: str
    left: str
    middle: str
    top: int
    height: int


class Chart(View, frozen=True):
    """`width`: of a bar and of its place, in percent. `lines`: y and the amount of each line across; `dates`: x in
    percent and text; `before`: the points of the line of the days before, in a box 100 wide."""

    bars: list[Bar]
    width: str
    place: str
    lines: list[tuple[int, str]]
    dates: list[tuple[str, str]]
    before: str


def chart(days: Sequence[tuple[str, str, str]], amounts: Sequence[int], before: Sequence[int], language: str) -> Chart:
    """`days`: the address, the title and the name of each, the oldest first; `amounts` (hundredths) of each, and of as
    many days before."""
    top, places = _top_amount(max(*amounts, *before)), _places(len(days))
    bars = [
        Bar(href, title, left, middle, _BASE - height, height)
        for (href, title, _), (left, middle, _), height in zip(days, places, _heights(amounts, top), strict=True)
    ]
    lines = [(_BASE - (_BASE - _TOP) * part // 2, _axis_text(top * part // 200, language)) for part in (0, 1, 2)]
    dates = [(center, name) for (_, _, center), (_, _, name) in list(zip(places, days, strict=True))[::-7]]
    points = [
        f"{center},{_BASE - height}" for (_, _, center), height in zip(places, _heights(before, top), strict=True)
    ]
    share = 100 / len(days)
    return Chart(bars, f"{0.72 * share:.2f}", f"{share:.2f}", lines, dates, " ".join(points))


@cache
def _places(count: int) -> list[tuple[str, str, str]]:
    """Of each day, in percent: where its place begins, where its bar does, and the middle."""
    share = 100 / count
    return [
        (f"{number * share:.2f}", f"{(number + 0.14) * share:.2f}", f"{(number + 0.5) * share:.2f}")
        for number in range(count)
    ]


def _top_amount(most: int) -> int:
    """A round amount (hundredths) that is not less than `most`."""
    most = max(most, 200)
    power = int("1" + "0" * (len(str(most)) - 1))
    return next(step * power for step in _ROUND if step * power >= most)


def _axis_text(units: int, language: str) -> str:
    """`200 000`, `1,5 M`: beside a chart there is room for seven figures."""
    if units < _MILLION:
        return count_text(units, language)
    whole, tenths = divmod(units * 10 // _MILLION, 10)
    point = "." if language == ENGLISH else ","
    return count_text(whole, language) + (f"{point}{tenths}" if tenths else "") + "\u00a0M"


def _heights(amounts: Sequence[int], top: int) -> list[int]:
    return [max(_LEAST, amount * (_BASE - _TOP) // top) if amount else 0 for amount in amounts]


def share_text(amount: int, most: int) -> str:
    """How long a lying bar is, in percent of the longest."""
    return f"{max(1, amount * 100 // most)}" if amount else "0"
