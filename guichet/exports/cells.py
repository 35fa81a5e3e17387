"""The cells of a file for a spreadsheet.

CSV is written so that Excel in French opens it with a double click: UTF-8 with a byte order mark, semicolons, decimal
commas.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import IO, Any, Final
from zoneinfo import ZoneInfo

from guichet.clock import Instant, to_datetime
from guichet.printable import printable

BOM: Final = "\ufeff"
#: A spreadsheet takes a cell that begins with one of these for a formula; some read the wide forms too.
SIGNS: Final = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
#: Where a cell begins for a spreadsheet whose separator is another one than ours, and what it drops before a sign.
_BETWEEN: Final = re.compile(r"[,;|\s\"]+")
_SEPARATORS: Final = frozenset(",;|\t\r\n\v\f\x85\u2028\u2029")


def writer(file: IO[str], columns: Sequence[str]) -> Any:
    """A csv writer; the header row is already written. Open `file` with newline=""."""
    file.write(BOM)
    rows = csv.writer(file, delimiter=";", lineterminator="\r\n")
    rows.writerow(columns)
    return rows


def csv_file(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    file = io.StringIO(newline="")
    writer(file, columns).writerows(rows)
    return file.getvalue().encode()


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
    """Text from outside for a cell of CSV, on one line without control characters, with an apostrophe wherever a
    spreadsheet would begin to run it as a formula: in front, and after what may separate cells in its midst. A workbook
    says itself what is text, and needs none."""
    content = value or ""
    return printable(_apostrophe_in_front(content) + _BETWEEN.sub(_with_apostrophe, content))


def _apostrophe_in_front(content: str) -> str:
    before = _BETWEEN.match(content)
    is_sign = _is_sign(content, before.end() if before else 0)
    return "'" if is_sign or content.startswith(("\t", "\r", "\n")) else ""


def _with_apostrophe(between: re.Match[str]) -> str:
    begins_a_cell = not _SEPARATORS.isdisjoint(between[0]) and _is_sign(between.string, between.end())
    return between[0] + "'" if begins_a_cell else between[0]


def _is_sign(content: str, at: int) -> bool:
    return content[at : at + 1] in SIGNS
