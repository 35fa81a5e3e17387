"""The only source of time. No other module reads the system's clock; tests use a clock of their own."""

import asyncio
import re
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NewType, Protocol

#: Microseconds since 1970-01-01 UTC. An integer sorts, indexes and subtracts the same way in both databases.
#: A difference of two instants is a plain int: a duration in microseconds, like the constants below.
Instant = NewType("Instant", int)

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

_READABLE: Final = re.compile(r"\d{4}-\d{2}-\d{2}([Tt ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?([Zz]|[+-]\d{2}:?\d{2})?)?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def later(instant: Instant, duration: int) -> Instant:
    """`duration`: microseconds."""
    return Instant(instant + duration)


def earlier(instant: Instant, duration: int) -> Instant:
    """`duration`: microseconds."""
    return Instant(instant - duration)


def whole_second(instant: Instant) -> Instant:
    """The second it is in, for messages whose times have no fraction."""
    return Instant(instant // SECOND * SECOND)


class Clock(Protocol):
    def now(self) -> Instant:
        """The current time. It jumps when somebody sets the machine's clock."""

    def monotonic(self) -> int:
        """Microseconds since an unknown moment: it never jumps, and means nothing in another process."""

    async def sleep(self, seconds: float) -> None:
        """Waits for `seconds`."""


class SystemClock:
    def now(self) -> Instant:
        return Instant(time.time_ns() // 1000)

    def monotonic(self) -> int:
        return time.monotonic_ns() // 1000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def to_datetime(instant: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def from_datetime(moment: datetime) -> Instant:
    """A naive datetime is read as UTC (D13)."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Instant((aware - _EPOCH) // timedelta(microseconds=1))


#: The end of the year 9999: of what must have a time and has none, such as the next poll of a payment that nobody
#: polls. No page shows it.
NEVER: Final = from_datetime(datetime(9999, 12, 31, tzinfo=UTC))


def iso(instant: Instant) -> str:
    """`2026-11-20T10:15:30.123456Z` (D42)."""
    seconds, micros = divmod(instant, SECOND)
    return f"{_second(seconds)}.{str(micros).zfill(6)}Z"


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    """Cached: a payment is created in the second of the one before it, or is shown more than once."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]


def read_date(text: str) -> Instant | None:
    """Reads an ISO-8601 date or date-time, in UTC unless it has an offset (D13).

    None if the text is not one, or if the year in UTC is not between 1 and 9999.
    """
    if not _READABLE.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text.upper().replace(",", "."))
        return from_datetime((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC))
    except (ValueError, OverflowError):
        return None
