"""CSV that a spreadsheet in French opens correctly: UTF-8 with a byte order mark, semicolons, decimal commas."""

import csv
from collections.abc import Sequence
from typing import IO, Any, Final

from guichet.clock import Instant, to_datetime
from guichet.printable import printable

BOM: Final = "\ufeff"
#: A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA: Final = ("=", "+", "-", "@")


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


def moment(instant: Instant | None) -> str:
    """`2026-11-20 10:15:30`, UTC: spreadsheets read it as a date, and its text order is its time order."""
    return "" if instant is None else f"{to_datetime(instant):%Y-%m-%d %H:%M:%S}"


def text(value: str | None) -> str:
    """Text from outside, on one line without control characters, and with an apostrophe in front if a spreadsheet would
    run it as a formula."""
    shown = printable(value or "")
    return "'" + shown if shown.startswith(_FORMULA) else shown
