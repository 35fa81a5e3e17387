"""Periods that a person chooses: days and months in the merchant's time zone."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from guichet.clock import Instant, earlier, from_datetime, to_datetime

_FIRST_YEAR: Final = 2000
_LAST_YEAR: Final = 2999


@dataclass(frozen=True, slots=True)
class Period:
    """Both days are included; `since` and `until` are its first and its last instant. A `fault` is the name of what is
    wrong with what was typed (`first` and `last` keep it); the period is then the one that was offered."""

    first: str
    last: str
    since: Instant
    until: Instant
    fault: str | None = None


def midnight(day: date, time_zone: ZoneInfo) -> Instant:
    return from_datetime(datetime.combine(day, time(), time_zone))


def today(now: Instant, time_zone: ZoneInfo) -> date:
    return to_datetime(now).astimezone(time_zone).date()


def read_period(first: str, last: str, time_zone: ZoneInfo, offered: tuple[date, date]) -> Period:
    """The days that were typed (`2026-11-20`); those that are empty are the offered ones."""
    typed = (first.strip(), last.strip())
    read = [_day(text) if text else default for text, default in zip(typed, offered, strict=True)]
    begin, end = read
    fault = None if begin and end else "date"
    if begin and end and begin > end:
        fault = "order"
    if fault or begin is None or end is None:
        whole = _period(offered[0], offered[1], time_zone)
        return Period(typed[0][:20], typed[1][:20], whole.since, whole.until, fault)
    return _period(begin, end, time_zone)


def read_month(text: str) -> date | None:
    """The first day of `2026-10`."""
    return _day(f"{text}-01") if len(text) == 7 else None


def next_month(month: date) -> date:
    return (month.replace(day=1) + timedelta(days=32)).replace(day=1)


def midnights(month: date, time_zone: ZoneInfo) -> list[Instant]:
    """The beginning of each day of a month, and its end."""
    first, end = month.replace(day=1), next_month(month)
    days = [first + timedelta(days=number) for number in range((end - first).days + 1)]
    return [midnight(day, time_zone) for day in days]


def _period(begin: date, end: date, time_zone: ZoneInfo) -> Period:
    until = earlier(midnight(end + timedelta(days=1), time_zone), 1)
    return Period(begin.isoformat(), end.isoformat(), midnight(begin, time_zone), until)


def _day(text: str) -> date | None:
    try:
        day = datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a day, in no time zone yet
    except ValueError:
        return None
    return day if _FIRST_YEAR <= day.year <= _LAST_YEAR and len(text) == 10 else None
