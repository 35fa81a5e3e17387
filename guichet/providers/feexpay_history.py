"""FeexPay's history of transactions: to find a lost reference, and to compare with our books.

Source: docs/providers/feexpay.md, "Other calls". A response has at most 500 rows and 31 days, and is not paged.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal

from guichet.clock import DAY, Instant, earlier, from_datetime, later
from guichet.domain.reconciliation import PAYMENT, REFUND, Line, LineStatus
from guichet.providers.base import Unknown
from guichet.providers.client import CallResult, ProviderResponse
from guichet.providers.feexpay_responses import STATUSES
from guichet.providers.fields import hundredths, text_or_none
from guichet.providers.history_lines import as_lines, days
from guichet.providers.results import FAILED, SUCCEEDED, ProviderStatus, as_unknown, parse_status_word

Kind = Literal["PAYIN", "PAYOUT"]
Status = Literal["SUCCESSFUL", "FAILED", "PENDING"]
#: One call to the history with this body.
Ask = Callable[[Mapping[str, str]], Awaitable[CallResult]]

_MAX_DAYS: Final = 31
#: A response with this many rows may be cut off.
_MAX_ROWS: Final = 500
_REFERENCES: Final = ("callback_info", "reference", "financial_transaction_id", "custom_id")
_KINDS: Final[tuple[Kind, ...]] = ("PAYIN", "PAYOUT")
_STATUSES: Final[tuple[Status, ...]] = ("SUCCESSFUL", "FAILED", "PENDING")
_LINE_STATUSES: Final[dict[ProviderStatus | None, LineStatus]] = {
    SUCCEEDED: "succeeded",
    FAILED: "failed",
    None: "pending",
}


class FeexPayHistory:
    """The history of one shop."""

    def __init__(self, ask: Ask, shop: str) -> None:
        self._ask = ask
        self._shop = shop

    async def find(self, reference: str, *, sent_at: Instant, kind: Kind) -> str | Unknown:
        """FeexPay's reference of the transaction that was sent with our `reference` at about `sent_at`.

        Unknown when it is not listed, which proves nothing: the history may lag, or be cut off.
        """
        around = days(earlier(sent_at, DAY), later(sent_at, DAY))
        result = await self._ask({"shop": self._shop, "type": kind, "start_date": around[0], "end_date": around[-1]})
        if not isinstance(result, ProviderResponse):
            return as_unknown(result)
        rows = result.ok_object().get("data")
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and row.get("callback_info") == reference and row.get("reference"):
                return str(row["reference"])
        return Unknown(f"not in the history: {result.raw[:80]}")

    async def lines(self, since: Instant, until: Instant) -> list[Line] | Unknown:
        """Every transaction of these days: asked by month, and by halves of a period whose response is full."""
        listed = days(since, until)
        periods = [listed[at : at + _MAX_DAYS] for at in range(0, len(listed), _MAX_DAYS)]
        lines: dict[str, Line] = {}
        while periods:
            period = periods.pop(0)
            found = await self._rows(period)
            if not isinstance(found, Unknown) and len(found) >= _MAX_ROWS:
                if len(period) > 1:
                    periods[:0] = [period[: len(period) // 2], period[len(period) // 2 :]]
                    continue
                found = await self._rows_of_full_day(period)
            if isinstance(found, Unknown):
                return found
            found.sort(key=lambda row: str(row.get("date")))
            rows = {str(row.get("reference")): row for row in found}
            lines.update(zip(rows, await as_lines(rows.values(), partial(_line, len(lines))), strict=True))
        return list(lines.values())

    async def _rows_of_full_day(self, day: list[str]) -> list[dict[str, Any]] | Unknown:
        """A day with more than 500 transactions, asked by kind and by status."""
        rows: list[dict[str, Any]] = []
        for kind in _KINDS:
            for status in _STATUSES:
                found = await self._rows(day, kind=kind, status=status)
                if isinstance(found, Unknown):
                    return found
                if len(found) >= _MAX_ROWS:
                    return Unknown(f"FeexPay lists only {_MAX_ROWS} transactions: {day[0]} has more; use its export")
                rows += found
        return rows

    async def _rows(
        self, period: list[str], *, kind: Kind | Literal["ALL"] = "ALL", status: Status | Literal["ALL"] = "ALL"
    ) -> list[dict[str, Any]] | Unknown:
        result = await self._ask(
            {"shop": self._shop, "start_date": period[0], "end_date": period[-1], "type": kind, "status": status}
        )
        if not isinstance(result, ProviderResponse):
            return as_unknown(result)
        rows = result.ok_object().get("data")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return Unknown(result.raw)
        return rows


def _line(before: int, number: int, row: Mapping[str, Any]) -> Line:
    """Rows have no currency, so it is not compared. `before`: lines of earlier responses."""
    return Line(
        number=before + number,
        kind=REFUND if "PAYOUT" in str(row.get("type", "")).upper() else PAYMENT,
        references=tuple(found for name in _REFERENCES if (found := text_or_none(row.get(name)))),
        amount=hundredths(row.get("amount")),
        currency=None,
        status=_LINE_STATUSES[parse_status_word(STATUSES, row.get("status"))],
        at=_instant(str(row.get("date", ""))),
    )


def _instant(date: str) -> Instant | None:
    try:
        return from_datetime(datetime.fromisoformat(date))
    except ValueError:
        return None
