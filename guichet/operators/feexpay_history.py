"""FeexPay's history as lines of a statement (operators.md §1.6). An answer holds at most 500 rows and 31 days."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final

from guichet.clock import DAY, Instant, from_datetime, iso
from guichet.domain.reconciliation import PAYMENT, REFUND, Line
from guichet.operators.base import NotTaken, Unknown
from guichet.operators.calling import Reply, hundredths, text

_MOST_DAYS: Final = 31
#: An answer with this many rows may be cut off.
_FULL: Final = 500
_REFERENCES: Final = ("callback_info", "reference", "financial_transaction_id", "custom_id")
_STATUSES: Final = {
    "SUCCESSFUL": "succeeded",
    "SUCCESS": "succeeded",
    "FAILED": "failed",
    "CANCELLED": "failed",
    "REJECTED": "failed",
    "EXPIRED": "failed",
}

Ask = Callable[[Mapping[str, object]], Awaitable[Reply | NotTaken | Unknown]]


async def read_history(ask: Ask, shop: str, since: Instant, until: Instant) -> list[Line] | Unknown:
    """Asks by month, then by ever shorter periods, then by kind and state, until no answer is full."""
    rows: list[dict[str, Any]] = []
    spans = [(at, min(at + (_MOST_DAYS - 1) * DAY, until)) for at in range(since, until + 1, _MOST_DAYS * DAY)]
    while spans:
        first, last = spans.pop()
        found = await _rows(ask, shop, first, last)
        if isinstance(found, Unknown):
            return found
        if len(found) < _FULL:
            rows += found
        elif _day(first) != _day(last):
            middle = first + (last - first) // 2
            spans += [(first, middle), (min(middle + DAY, last), last)] if _day(middle) != _day(last) else [
                (first, first), (last, last)
            ]
        else:
            fuller = await _full_day(ask, shop, first)
            if isinstance(fuller, Unknown):
                return fuller
            rows += fuller
    unique = {str(row.get("reference")): row for row in rows}
    return [_line(number, row) for number, row in enumerate(unique.values(), 1)]
