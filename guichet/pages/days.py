"""Days, months and periods that a person chooses in a time zone: how they are read, and their instants."""

from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

from pydantic import Field, PlainValidator

from guichet.clock import MINUTE, Instant, earlier, from_datetime, to_datetime
from guichet.domain.records import Record
from guichet.pages.fields import Fields, text

_FIRST_YEAR: Final = 2000
_LAST_YEAR: Final = 2999
#: How many characters of an invalid date a field shows again.
_MOST_TYPED: Final = 20


class Period(Record, frozen=True):
    """Both days are included; `since` and `until` are its first and its last instant. A `fault` is the name of what is
    wrong with what was typed (`first` and `last` keep it); the period is then the one that was offered."""

    first: str
    last: str
    since: Instant
    until: Instant
    fault: str | None = None


def _day(value: Any) -> date:
    day = read_day(str(value).strip())
    if day is None:
        raise ValueError
    return day


#: A day of a query or a form.
Day = Annotated[date, PlainValidator(_day)]


class PeriodFields(Fields):
    """The two days of a query or a form, as they were typed."""

    first: Annotated[str, text(_MOST_TYPED), Field(alias="from")] = ""
    last: Annotated[str, text(_MOST_TYPED), Field(alias="to")] = ""

    def period(self, time_zone: ZoneInfo, offered: tuple[date, date]) -> Period:
        """Days that were not typed are the offered ones."""
        return read_period(self.first, self.last, time_zone, offered)

    @property
    def query_values(self) -> dict[str, str]:
        """For addresses that keep the period."""
        return {"from": self.first, "to": self.last}


def read_day(text: str) -> date | None:
    """`2026-11-20`; None for any other text."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a day, in no time zone yet
    except ValueError:
        return None
    return day if _FIRST_YEAR <= day.year <= _LAST_YEAR and len(text) == 10 else None


def read_month(text: str) -> date | None:
    """The first day of `2026-10`."""
    return read_day(f"{text}-01") if len(text) == 7 else None


def read_period(first: str, last: str, time_zone: ZoneInfo, offered: tuple[date, date]) -> Period:
    """The days that were typed; those that are empty are the offered ones."""
    begin, end = (read_day(value) if value else day for value, day in zip((first, last), offered, strict=True))
    if begin is None or end is None or begin > end:
        since, until = _instants(*offered, time_zone)
        fault = "order" if begin and end else "date"
        return Period(first, last, since, until, fault)
    return Period(begin.isoformat(), end.isoformat(), *_instants(begin, end, time_zone))


def this_month(now: Instant, time_zone: ZoneInfo) -> tuple[date, date]:
    """From its first day until today."""
    day = today(now, time_zone)
    return day.replace(day=1), day


def today(now: Instant, time_zone: ZoneInfo) -> date:
    return _date(now // MINUTE, time_zone)


@lru_cache(maxsize=1024)
def _date(minute: int, time_zone: ZoneInfo) -> date:
    """`minute`: from 1970. No time zone of today is off by a part of one; the payments of a list share theirs."""
    return to_datetime(Instant(minute * MINUTE)).astimezone(time_zone).date()


def midnight(day: date, time_zone: ZoneInfo) -> Instant:
    return from_datetime(datetime.combine(day, time(), time_zone))


def end_of_day(day: date, time_zone: ZoneInfo) -> Instant:
    """The first instant of the day that follows."""
    return midnight(day + timedelta(days=1), time_zone)


def next_month(month: date) -> date:
    return (month.replace(day=1) + timedelta(days=32)).replace(day=1)


def midnights(month: date, time_zone: ZoneInfo) -> list[Instant]:
    """The beginning of each day of a month, and its end."""
    first, end = month.replace(day=1), next_month(month)
    days = [first + timedelta(days=number) for number in range((end - first).days + 1)]
    return [midnight(day, time_zone) for day in days]


def _instants(first: date, last: date, time_zone: ZoneInfo) -> tuple[Instant, Instant]:
    return midnight(first, time_zone), earlier(end_of_day(last, time_zone), 1)
