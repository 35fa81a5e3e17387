"""Arguments and options that several commands have."""

import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from guichet.clock import DAY, Instant, later, read_date
from guichet.domain import ids, posting_rules

#: Ids are 64-bit integers in both databases.
_MAX_ID: Final = 2**63 - 1
_DATE_ONLY: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}")
_DATE_EXPECTED: Final = "an ISO-8601 date is expected, such as 2026-11-30 or 2026-11-30T12:00:00Z."


def row_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 1 <= int(text) <= _MAX_ID):
        raise typer.BadParameter(f"{text!r} is not an id: a whole number from 1 is expected.")
    return int(text)


def instant(text: str) -> Instant:
    parsed = read_date(text)
    if parsed is None:
        raise typer.BadParameter(_DATE_EXPECTED)
    return parsed


def _end_instant(text: str) -> Instant:
    """A date without a time means the end of that day."""
    return later(instant(text), DAY - 1 if _DATE_ONLY.fullmatch(text) else 0)


if TYPE_CHECKING:
    MerchantIdValue = ids.MerchantId
    WalletStatusValue = posting_rules.WalletStatus
else:
    # The help of a command prints the name of an argument's type.
    MerchantIdValue, WalletStatusValue = int, str

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
MerchantId = Annotated[
    MerchantIdValue, typer.Argument(parser=row_id, metavar="MERCHANT_ID", help="As `guichet merchant list` shows it.")
]
#: Both ends of a period are included; a time without an offset is UTC (D13).
Since = Annotated[
    Instant | None,
    typer.Option("--from", parser=instant, metavar="DATE", help="From this date or time on (UTC without an offset)."),
]
Until = Annotated[
    Instant | None,
    typer.Option("--to", parser=_end_instant, metavar="DATE", help="Up to this time, or to the end of this day."),
]
