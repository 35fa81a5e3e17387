"""`--from` and `--to`, the same in every command: inclusive, UTC without an offset; a date alone is the whole day."""

import re
from typing import Annotated, Final

import typer

from guichet.clock import DAY, Instant, read_date

_DATE_ALONE: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}")
_HINT: Final = "an ISO-8601 date is expected, such as 2026-11-30 or 2026-11-30T12:00:00Z."


def _since(text: str) -> Instant:
    instant = read_date(text)
    if instant is None:
        raise typer.BadParameter(_HINT)
    return instant


def _until(text: str) -> Instant:
    return _since(text) + (DAY - 1 if _DATE_ALONE.fullmatch(text) else 0)


Since = Annotated[
    Instant | None,
    typer.Option("--from", parser=_since, metavar="DATE", help="From this date or instant on (UTC without an offset)."),
]
Until = Annotated[
    Instant | None,
    typer.Option("--to", parser=_until, metavar="DATE", help="Up to this instant, or to the end of this day."),
]
