"""Days that a person types."""

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from guichet.clock import Instant, from_datetime


def end_of_day(text: str, zone: ZoneInfo) -> Instant | None:
    """The end of a day (`2026-12-31`) in this zone; None for any other text."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a day, in the zone of the next line
        return from_datetime(datetime.combine(day + timedelta(days=1), time(), zone))
    except (ValueError, OverflowError):
        return None
