"""FeexPay's history as lines of a statement (docs/providers/feexpay.md, "Other calls").

An answer holds at most 500 rows and 31 days.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final

from guichet.clock import DAY, Instant, from_datetime, iso
from guichet.domain.reconciliation import PAYMENT, REFUND, Line
from guichet.providers.base import NotProcessed, Unknown
from guichet.providers.client import ProviderResponse, hundredths, text, unclear

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

Ask = Callable[[Mapping[str, object]], Awaitable[ProviderResponse | NotProcessed | Unknown]]


async def read_history(ask: Ask, shop: str, since: Instant, until: Instant) -> list[Line] | Unknown:
    """Asks by month, then by ever fewer days, then by kind and state, until no answer is full."""
    days = [_day(at) for at in range(since, until, DAY)]
    days += [_day(until)] if not days or days[-1] != _day(until) else []
    waiting = [days[at : at + _MOST_DAYS] for at in range(0, len(days), _MOST_DAYS)]
    rows: dict[str, dict[str, Any]] = {}
    while waiting:
        span = waiting.pop()
        found = await _rows(ask, shop, span)
        if not isinstance(found, Unknown) and len(found) >= _FULL:
            if len(span) > 1:
                waiting += [span[: len(span) // 2], span[len(span) // 2 :]]
                continue
            found = await _full_day(ask, shop, span)
        if isinstance(found, Unknown):
            return found
        rows.update({str(row.get("reference")): row for row in found})
    ordered = sorted(rows.values(), key=lambda row: str(row.get("date")))
    return [_line(number, row) for number, row in enumerate(ordered, 1)]


async def _full_day(ask: Ask, shop: str, day: list[str]) -> list[dict[str, Any]] | Unknown:
    rows: list[dict[str, Any]] = []
    for kind in ("PAYIN", "PAYOUT"):
        for status in ("SUCCESSFUL", "FAILED", "PENDING"):
            found = await _rows(ask, shop, day, kind, status)
            if isinstance(found, Unknown):
                return found
            if len(found) >= _FULL:
                return Unknown(f"FeexPay lists only {_FULL} movements: {day[0]} has more; use its export")
            rows += found
    return rows


async def _rows(
    ask: Ask, shop: str, days: list[str], kind: str = "ALL", status: str = "ALL"
) -> list[dict[str, Any]] | Unknown:
    body = {"shop": shop, "start_date": days[0], "end_date": days[-1], "type": kind, "status": status}
    reply = await ask(body)
    if not isinstance(reply, ProviderResponse):
        return unclear(reply)
    rows = (reply.object() or {}).get("data") if reply.ok else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return Unknown(reply.raw)
    return rows


def _line(number: int, row: Mapping[str, Any]) -> Line:
    """Rows carry no currency: it is not compared."""
    return Line(
        number=number,
        kind=REFUND if "PAYOUT" in str(row.get("type", "")).upper() else PAYMENT,
        references=tuple(found for name in _REFERENCES if (found := text(row.get(name)))),
        amount=hundredths(row.get("amount")),
        currency=None,
        status=_STATUSES.get(str(row.get("status", "")).upper(), "pending"),
        at=_instant(str(row.get("date", ""))),
    )


def _instant(date: str) -> Instant | None:
    try:
        return from_datetime(datetime.fromisoformat(date))
    except ValueError:
        return None


def _day(at: Instant) -> str:
    return iso(at)[:10]
