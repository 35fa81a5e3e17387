"""The only source of time. Tests bring their own clock; nothing else may ask what time it is."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

#: Microseconds since 1970-01-01 UTC. An integer sorts, indexes and subtracts the same way in both databases.
Instant = int

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    def now(self) -> Instant:
        """The current time, in microseconds since the epoch."""

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`; returns early only by cancellation."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> Instant:
        return time.time_ns() // 1000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def to_datetime(instant: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def from_datetime(moment: datetime) -> Instant:
    """A naive datetime is read as UTC (D13)."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def iso(instant: Instant) -> str:
    """`2026-11-20T10:15:30.123456Z` (D42)."""
    return to_datetime(instant).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
