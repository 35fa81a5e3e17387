"""CSV that a French spreadsheet opens without a question: UTF-8 with a byte order mark, semicolons, decimal commas."""

import csv
from collections.abc import Sequence
from typing import IO, Any, Final

from guichet.clock import Instant, to_datetime

BOM: Final = "\ufeff"
#: A cell that begins like this is a formula to a spreadsheet.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def writer(file: IO[str], columns: Sequence[str]) -> Any:
    """A csv writer whose header row is written. `file` must not translate line ends."""
    file.write(BOM)
    rows = csv.writer(file, delimiter=";", lineterminator="\r\n")
    rows.writerow(columns)
    return rows


def figure(hundredths: int) -> str:
    """Exact, always two decimals, no thousands separator: `-5000,00`."""
    units, rest = divmod(abs(hundredths), 100)
    return f"{'-' if hundredths < 0 else ''}{units},{rest:02d}"


def moment(instant: Instant | None) -> str:
    """`2026-11-20 10:15:30`, UTC: a date to a spreadsheet, and in order when sorted as text."""
    return "" if instant is None else f"{to_datetime(instant):%Y-%m-%d %H:%M:%S}"


def text(value: str | None) -> str:
    """What a merchant or an operator wrote; an apostrophe before what would otherwise be a formula."""
    if value is None:
        return ""
    return "'" + value if value.startswith(_FORMULA) else value
