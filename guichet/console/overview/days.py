"""The days of the figures, in the merchant's time zone."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from guichet.clock import HOUR, Instant, from_datetime, to_datetime
from guichet.history.figures import DAYS, hour_from


@dataclass(frozen=True, slots=True)
class Days:
    """The last DAYS days, today as the last one. `bounds`: the first hour of each, and of tomorrow, from 1970. An hour
    belongs to the day in which it begins: `exact` is False where a day begins within an hour of UTC."""

    dates: list[date]
    bounds: list[int]
    exact: bool

    @classmethod
    def until(cls, now: Instant, time_zone: ZoneInfo) -> "Days":
        today = to_datetime(now).astimezone(time_zone).date()
        dates = [today + timedelta(days=day) for day in range(1 - DAYS, 2)]
        starts = [from_datetime(datetime.combine(each, time(), time_zone)) for each in dates]
        return cls(dates[:-1], [hour_from(start) for start in starts], all(start % HOUR == 0 for start in starts))
