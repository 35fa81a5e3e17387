"""What the histories of all providers share: the days of a period, and rows that become lines a few at a time."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from guichet.clock import DAY, Instant, earlier, iso
from guichet.domain.reconciliation import Line

Row = TypeVar("Row")

#: Rows converted before other tasks run: less than two milliseconds.
_STEP: Final = 100


def days(since: Instant, until: Instant) -> list[str]:
    """The UTC days from that of `since` to that of `until`, both included, as `2026-11-20`."""
    first = earlier(since, since % DAY)
    return [iso(Instant(at))[:10] for at in range(first, until + 1, DAY)] or [iso(first)[:10]]


async def as_lines(rows: Iterable[Row], convert: Callable[[int, Row], Line | None]) -> list[Line]:
    """`convert(number, row)` of each row, numbered from 1; rows for which it returns None are left out.

    A day may have a hundred thousand rows: the event loop is never held for more than a few of them.
    """
    lines: list[Line] = []
    for number, row in enumerate(rows, 1):
        if (line := convert(number, row)) is not None:
            lines.append(line)
        if number % _STEP == 0:
            await asyncio.sleep(0)
    return lines
