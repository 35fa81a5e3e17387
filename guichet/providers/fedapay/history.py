"""FedaPay's transactions and payouts, page by page (docs/providers/fedapay.md, "Other calls").

The order of the search is not documented. Reading ends early only where the rows came newest first all the way.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from guichet.clock import DAY, Instant, earlier, iso, later, read_date
from guichet.domain.messages import Day
from guichet.domain.reconciliation import PAYMENT, REFUND, Line
from guichet.providers.base import Unknown
from guichet.providers.fedapay.client import Kind
from guichet.providers.fedapay.responses import PAYOUT_STATUSES, STATUSES, currency_of, our_reference
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import hundredths, parse_status_word, text_or_none
from guichet.providers.shared.listings import as_lines, line_status

#: One page of the search.
Ask = Callable[[Kind, int, int], Awaitable[ProviderResponse]]
Row = Mapping[str, Any]

_PER_PAGE: Final = 100
#: Beyond half a million rows the period is not read to its end.
_MOST_PAGES: Final = 5_000


async def read_history(ask: Ask, since: Instant, until: Instant) -> list[Line] | Unknown:
    """The transactions and payouts of the days from `since` to `until`; Unknown when the list may be incomplete."""
    lines: list[Line] = []
    first, last = earlier(since, since % DAY), later(until, DAY - until % DAY)
    kinds: tuple[Kind, ...] = ("transaction", "payout")
    for kind in kinds:
        rows = await _rows(ask, kind, first)
        if isinstance(rows, Unknown):
            return rows
        within = (row for row in rows if first <= (_created_at(row) or first) < last)
        lines += await as_lines(within, partial(_line, kind, len(lines)))
    return lines


async def _rows(ask: Ask, kind: Kind, since: Instant) -> list[Row] | Unknown:
    """All rows, or all from `since` on."""
    by_id: dict[str, Row] = {}
    order = _Order()
    for page in range(1, _MOST_PAGES + 1):
        result = await ask(kind, page, _PER_PAGE)
        read = _page(result, kind)
        if read is None:
            return Unknown(result.raw)
        rows, meta = read
        by_id |= {str(row["id"]): row for row in rows}
        order.add(rows)
        if meta.get("next_page") is None:
            total = meta.get("total_count")
            # Rows that moved from one page to another while they were read.
            return Unknown(result.raw) if isinstance(total, int) and len(by_id) < total else list(by_id.values())
        if not rows:
            return Unknown(result.raw)
        if order.is_newest_first and all((_created_at(row) or since) < since for row in rows):
            return list(by_id.values())
    return Unknown(ProviderAnswer.TOO_MANY_PAGES(day=Day.of(iso(since)[:10]), count=_MOST_PAGES))


def _page(result: ProviderResponse, kind: Kind) -> tuple[list[Row], Row] | None:
    """The rows and what stands about their list; None when the answer is no page."""
    body = result.ok_object()
    rows, meta = body.get(f"v1/{kind}s"), body.get("meta")
    if not isinstance(rows, list) or not isinstance(meta, dict):
        return None
    return (rows, meta) if all(isinstance(row, dict) and row.get("id") for row in rows) else None


class _Order:
    """Whether all rows so far came newest first; a few of one moment show no order."""

    def __init__(self) -> None:
        self._descends = True
        self._last: Instant | None = None
        self._first: Instant | None = None

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            at = _created_at(row)
            self._descends &= at is not None and (self._last is None or at <= self._last)
            self._last, self._first = at, self._first or at

    @property
    def is_newest_first(self) -> bool:
        return self._descends and self._first != self._last


def _created_at(row: Row) -> Instant | None:
    return read_date(str(row.get("created_at", "")))


def _line(kind: Kind, before: int, number: int, row: Row) -> Line:
    """`before`: lines before these."""
    statuses = STATUSES if kind == "transaction" else PAYOUT_STATUSES
    references = (our_reference(row), text_or_none(row.get("id")), text_or_none(row.get("reference")))
    return Line(
        number=before + number,
        kind=PAYMENT if kind == "transaction" else REFUND,
        references=tuple(reference for reference in references if reference),
        amount=hundredths(row.get("amount")),
        currency=currency_of(row),
        status=line_status(parse_status_word(statuses, row.get("status"))),
        at=_created_at(row),
        fee=hundredths(row.get("fees")),
    )
