"""FeexPay's history of transactions: to find a lost reference, and to compare with our books.

Source: docs/providers/feexpay.md, "Other calls". A response has at most 500 rows and 31 days, and is not paged.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
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
#: The documented names of networks (`reseau`). A search by another name might find nothing and not say so.
_NETWORKS: Final = frozenset(
    {
        *("MTN", "MOOV", "CELTIIS BJ", "CORIS", "MTN CI", "MOOV CI", "ORANGE CI", "WAVE CI", "MTN CG", "MOOV TG"),
        *("TOGOCOM TG", "ORANGE SN", "FREE SN", "WAVE SN", "MOOV BF", "ORANGE BF"),
    }
)
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

    async def find(self, reference: str, *, operator: str, sent_at: Instant, kind: Kind) -> str | Unknown:
        """FeexPay's reference of the transaction that was sent with our `reference` at about `sent_at`.

        Unknown when it is not listed, which proves nothing: the history may lag, or be cut off.
        """
        missing = Unknown("not in the history")
        around = days(earlier(sent_at, DAY), later(sent_at, DAY))
        async for rows in self._answers(around, (kind,), _network(operator)):
            if isinstance(rows, Unknown):
                missing = rows
                continue
            for row in rows:
                if row.get("callback_info") == reference and row.get("reference"):
                    return str(row["reference"])
        return missing

    async def lines(self, since: Instant, until: Instant) -> list[Line] | Unknown:
        """Every transaction of these days."""
        lines: dict[str, Line] = {}
        async for rows in self._answers(days(since, until), _KINDS):
            if isinstance(rows, Unknown):
                return rows
            rows.sort(key=lambda row: str(row.get("date")))
            new = {str(row.get("reference")): row for row in rows if str(row.get("reference")) not in lines}
            lines.update(zip(new, await as_lines(new.values(), partial(_line, len(lines))), strict=True))
        return list(lines.values())

    async def _answers(
        self, listed: list[str], kinds: Sequence[Kind], network: str | None = None
    ) -> AsyncIterator[list[dict[str, Any]] | Unknown]:
        """All rows of these days, in the answers of as many calls as that takes; some rows come twice. Unknown stands
        for rows that may be missing. With a `network`, only its rows.

        Asked by month, then by halves of a period whose answer is full, since the order of the rows is not documented.
        """
        kind: Kind | Literal["ALL"] = kinds[0] if len(kinds) == 1 else "ALL"
        periods = [listed[at : at + _MAX_DAYS] for at in range(0, len(listed), _MAX_DAYS)]
        while periods:
            period = periods.pop(0)
            rows = await self._rows(period, network, kind=kind)
            yield rows
            if isinstance(rows, Unknown) or len(rows) < _MAX_ROWS:
                continue
            if len(period) > 1:
                periods[:0] = [period[: len(period) // 2], period[len(period) // 2 :]]
                continue
            async for rows_of_status in self._answers_of_full_day(period, kinds, network):
                yield rows_of_status

    async def _answers_of_full_day(
        self, day: list[str], kinds: Sequence[Kind], network: str | None
    ) -> AsyncIterator[list[dict[str, Any]] | Unknown]:
        """A day with more than 500 transactions, asked by kind and by status."""
        for kind in kinds:
            for status in _STATUSES:
                rows = await self._rows(day, network, kind=kind, status=status)
                yield rows
                if not isinstance(rows, Unknown) and len(rows) >= _MAX_ROWS:
                    yield Unknown(f"FeexPay lists only {_MAX_ROWS} transactions: {day[0]} has more; use its export")

    async def _rows(
        self,
        period: list[str],
        network: str | None,
        *,
        kind: Kind | Literal["ALL"] = "ALL",
        status: Status | Literal["ALL"] = "ALL",
    ) -> list[dict[str, Any]] | Unknown:
        body = {"shop": self._shop, "start_date": period[0], "end_date": period[-1], "type": kind, "status": status}
        if network is not None:
            body["reseau"] = network
        result = await self._ask(body)
        if not isinstance(result, ProviderResponse):
            return as_unknown(result)
        rows = result.ok_object().get("data")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return Unknown(result.raw)
        return rows


def _network(operator: str) -> str | None:
    """FeexPay's documented name of an operator's network, such as `MTN CG`; None for cards and a few networks."""
    name = operator.upper().replace("_", " ")
    return name if name in _NETWORKS else None


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
