"""The cells of a file for a spreadsheet.

CSV is written so that Excel in French opens it with a double click: UTF-8 with a byte order mark, semicolons, decimal
commas.
"""

import csv
from collections.abc import Sequence
from typing import IO, Any, Final
from zoneinfo import ZoneInfo

from guichet.clock import Instant, to_datetime
from guichet.printable import printable

BOM: Final = "\ufeff"
#: A spreadsheet takes a cell that begins with one of these for a formula; some drop a tab or a carriage return first.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def writer(file: IO[str], columns: Sequence[str]) -> Any:
    """A csv writer; the header row is already written. Open `file` with newline=""."""
    file.write(BOM)
    rows = csv.writer(file, delimiter=";", lineterminator="\r\n")
    rows.writerow(columns)
    return rows


def amount(hundredths: int) -> str:
    """Always two decimals, no thousands separator: `-5000,00`."""
    units, rest = divmod(abs(hundredths), 100)
    return f"{'-' if hundredths < 0 else ''}{units},{rest:02d}"


def moment(instant: Instant | None, time_zone: ZoneInfo | None = None) -> str:
    """`2026-11-20 10:15:30`, UTC or in `time_zone`: spreadsheets read it as a date, and its text order is its time
    order."""
    if instant is None:
        return ""
    at = to_datetime(instant)
    return f"{at if time_zone is None else at.astimezone(time_zone):%Y-%m-%d %H:%M:%S}"


def text(value: str | None) -> str:
    """Text from outside, on one line without control characters, and with an apostrophe in front if a spreadsheet would
    run it as a formula."""
    given = value or ""
    shown = printable(given)
    return "'" + shown if given.startswith(_FORMULA) else shown
