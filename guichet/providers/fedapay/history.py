"""FedaPay's transactions and payouts, page by page (docs/providers/fedapay.md, "Other calls").

The order of the search is not documented. Reading ends early only where the rows came newest first all the way.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from guichet.clock import DAY, Instant, earlier, iso, later, read_date
from guichet.domain.messages import Day
from guichet.domain.reconciliation import PAYMENT, REFUND, Line, LineStatus
from guichet.providers.base import Unknown
from guichet.providers.fedapay.client import Kind
from guichet.providers.fedapay.responses import PAYOUT_STATUSES, STATUSES, currency_of, our_reference
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import CallResult, ProviderResponse
from guichet.providers.shared.fields import hundredths, text_or_none
from guichet.providers.shared.results import FAILED, SUCCEEDED, ProviderStatus, as_unknown, parse_status_word

#: One page of the search.
Ask = Callable[[Kind, int, int], Awaitable[CallResult]]
Row = Mapping[str, Any]

_PER_PAGE: Final = 100
#: Beyond half a million rows the period is not read to its end.
_MOST_PAGES: Final = 5_000
_LINE_STATUSES: Final[dict[ProviderStatus | None, LineStatus]] = {SUCCEEDED: "succeeded", FAILED: "failed"}


async def fedapay_history(ask: Ask, since: Instant, until: Instant) -> list[Line] | Unknown:
    """The transactions and payouts of the days from `since` to `until`; Unknown when the list may be incomplete."""
    lines: list[Line] = []
    first, last = earlier(since, since % DAY), later(until, DAY - until % DAY)
    kinds: tuple[Kind, ...] = ("transaction", "payout")
    for kind in kinds:
        rows = await _rows(ask, kind, first)
        if isinstance(rows, Unknown):
            return rows
        for row in rows:
            at = _created_at(row)
            if at is None or first <= at < last:
                lines.append(_line(len(lines) + 1, kind, row, at))
    return lines


async def _rows(ask: Ask, kind: Kind, since: Instant) -> list[Row] | Unknown:
    """All rows, or all from `since` on."""
    found: dict[str, Row] = {}
    for page in range(1, _MOST_PAGES + 1):
        result = await ask(kind, page, _PER_PAGE)
        if not isinstance(result, ProviderResponse):
            return as_unknown(result)
        body = result.ok_object()
        rows, meta = body.get(f"v1/{kind}s"), body.get("meta")
        whole = isinstance(rows, list) and all(isinstance(row, dict) and row.get("id") for row in rows)
        if not whole or not isinstance(meta, dict):
            return Unknown(result.raw)
        found |= {str(row["id"]): row for row in rows or ()}
        if meta.get("next_page") is None:
            total = meta.get("total_count")
            # Rows that moved from one page to another while they were read.
            return Unknown(result.raw) if isinstance(total, int) and len(found) < total else list(found.values())
        if not rows or _is_older(list(found.values()), rows, since):
            return list(found.values()) if rows else Unknown(result.raw)
    return Unknown(ProviderAnswer.TOO_MANY_PAGES(day=Day.of(iso(since)[:10]), count=_MOST_PAGES))


def _is_older(found: list[Row], page: list[Row], since: Instant) -> bool:
    """Whether the list goes back in time, and this page is beyond `since`."""
    dates = [_created_at(row) for row in found]
    known = [at for at in dates if at is not None]
    newest_first = len(known) == len(dates) and known == sorted(known, reverse=True) and known[0] > known[-1]
    return newest_first and all((_created_at(row) or since) < since for row in page)


def _created_at(row: Row) -> Instant | None:
    return read_date(str(row.get("created_at", "")))


def _line(number: int, kind: Kind, row: Row, at: Instant | None) -> Line:
    statuses = STATUSES if kind == "transaction" else PAYOUT_STATUSES
    references = (our_reference(row), text_or_none(row.get("id")), text_or_none(row.get("reference")))
    return Line(
        number=number,
        kind=PAYMENT if kind == "transaction" else REFUND,
        references=tuple(each for each in references if each),
        amount=hundredths(row.get("amount")),
        currency=currency_of(row),
        status=_LINE_STATUSES.get(parse_status_word(statuses, row.get("status")), "pending"),
        at=at,
        fee=hundredths(row.get("fees")),
    )
