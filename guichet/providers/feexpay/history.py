"""FeexPay's history of transactions: to find a lost reference, and to compare with our books.

Source: docs/providers/feexpay.md, "Other calls". A response has at most 500 rows and 31 days, and is not paged.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, TypeVar

from guichet.clock import DAY, MINUTE, SECOND, Clock, Instant, earlier, from_datetime, later
from guichet.domain.messages import Day
from guichet.domain.reconciliation import PAYMENT, REFUND, Line
from guichet.providers.base import Unknown
from guichet.providers.feexpay.responses import STATUSES
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import ProviderStatus, hundredths, parse_status_word, text_or_none
from guichet.providers.shared.listings import as_lines, days, line_status

Kind = Literal["PAYIN", "PAYOUT"]
#: One call to the history with this body.
Ask = Callable[[Mapping[str, str]], Awaitable[ProviderResponse]]
Rows = TypeVar("Rows")
#: What a caller keeps of one answer, and how many rows that had.
Read = Callable[[Mapping[str, str]], Awaitable[tuple[Rows, int] | Unknown]]

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
#: Microseconds for which one answer serves all searches that ask the same. Responses are lost in numbers, and a search
#: may read thousands of rows: a gateway in trouble must not be asked for all of them by every payment.
_SHARED_FOR: Final = 10 * SECOND
#: The same for an answer that was cut off. There will not be fewer rows a minute later, and each answer is the longest
#: there is: of a busy day they are most of what the gateway would have to do.
_FULL_SHARED_FOR: Final = 5 * MINUTE
_REFERENCES: Final = ("callback_info", "reference", "financial_transaction_id", "custom_id")
_KINDS: Final[tuple[Kind, ...]] = ("PAYIN", "PAYOUT")
_STATUSES: Final = ("SUCCESSFUL", "FAILED", "PENDING")
#: Of a kind or a status.
_ALL: Final = "ALL"


#: FeexPay's references of the rows under one of ours, and how conclusive each row is: 0 for a success.
_Listed = dict[str, int]
_CONCLUSIVE: Final[dict[ProviderStatus | None, int]] = {ProviderStatus.SUCCEEDED: 0, None: 1, ProviderStatus.FAILED: 2}


@dataclass
class _Search:
    """The last answer to one request: what it lists by our references, and how many rows it had. Who asks holds
    `lock`."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    answered: tuple[dict[str, _Listed], int] = field(default_factory=lambda: ({}, 0))
    asked_at: Instant | None = None

    def knows(self, sent_at: Instant, now: Instant) -> bool:
        """Whether other calls may reuse this answer: a complete one if it may list what was sent at `sent_at`; one that
        was cut off always, since it says that a narrower request is needed, or that there is none."""
        if self.asked_at is None or now < self.asked_at:
            return False
        if self.answered[1] >= _MAX_ROWS:
            return now < later(self.asked_at, _FULL_SHARED_FOR)
        return sent_at <= self.asked_at and now < later(self.asked_at, _SHARED_FOR)


class FeexPayHistory:
    def __init__(self, ask: Ask, shop: str, clock: Clock) -> None:
        self._ask = ask
        self._shop = shop
        self._clock = clock
        #: By the values of the request.
        self._searches: dict[tuple[str, ...], _Search] = {}

    async def find(self, reference: str, sent_at: Instant, *, operator: str, kind: Kind) -> list[str] | Unknown:
        """FeexPay's references of what was sent with our `reference` at about `sent_at`: of the row that succeeded,
        otherwise of all rows, those that did not fail first. Two rows for one request happen.

        Unknown when none is listed, which proves nothing: the history may lag, or be cut off.
        """
        listed: _Listed = {}
        missing = Unknown(ProviderAnswer.NOT_IN_HISTORY())
        around = days(earlier(sent_at, DAY), later(sent_at, DAY))
        read = partial(self._references, sent_at)
        async for references in self._answers(read, around, (kind,), network_name(operator)):
            if isinstance(references, Unknown):
                missing = references
            else:
                listed |= references.get(reference, {})
            if 0 in listed.values():
                return [next(row_reference for row_reference, conclusive in listed.items() if conclusive == 0)]
        return sorted(listed, key=lambda row_reference: listed[row_reference]) or missing

    async def lines(self, since: Instant, until: Instant) -> list[Line] | Unknown:
        lines: dict[str, Line] = {}
        async for rows in self._answers(self._rows, days(since, until), _KINDS):
            if isinstance(rows, Unknown):
                return rows
            rows.sort(key=lambda row: str(row.get("date")))
            new = {str(row.get("reference")): row for row in rows if str(row.get("reference")) not in lines}
            lines.update(zip(new, await as_lines(new.values(), partial(_line, len(lines))), strict=True))
        return list(lines.values())

    async def _answers(
        self, read: Read[Rows], listed: list[str], kinds: Sequence[Kind], network: str | None = None
    ) -> AsyncIterator[Rows | Unknown]:
        """All rows of these days, in the answers of as many calls as that takes; some rows come twice. Unknown stands
        for rows that may be missing. With a `network`, only its rows.

        Asked by month, then by halves of a period whose answer is full, since the order of the rows is not documented;
        a day with more than 500 transactions by kind and by status.
        """
        kind = kinds[0] if len(kinds) == 1 else _ALL
        periods = [listed[at : at + _MAX_DAYS] for at in range(0, len(listed), _MAX_DAYS)]
        parts = [(period, kind, _ALL) for period in periods]
        while parts:
            period, kind, status = parts.pop(0)
            answer = await read(self._request(period, kind, status, network))
            if isinstance(answer, Unknown):
                yield answer
                continue
            rows, count = answer
            yield rows
            if count < _MAX_ROWS:
                continue
            if len(period) > 1:
                half = len(period) // 2
                parts[:0] = [(period[:half], kind, status), (period[half:], kind, status)]
            elif status == _ALL:
                parts[:0] = [(period, each, word) for each in kinds for word in _STATUSES]
            else:
                yield Unknown(ProviderAnswer.TOO_MANY_TRANSACTIONS(count=_MAX_ROWS, day=Day.of(period[0])))

    def _request(self, period: list[str], kind: str, status: str, network: str | None) -> dict[str, str]:
        body = {"shop": self._shop, "start_date": period[0], "end_date": period[-1], "type": kind, "status": status}
        return body if network is None else {**body, "reseau": network}

    async def _references(
        self, sent_at: Instant, request: Mapping[str, str]
    ) -> tuple[dict[str, _Listed], int] | Unknown:
        """What is listed by our references, from an answer that other searches may have asked for."""
        search = self._searches.setdefault(tuple(request.values()), _Search())
        async with search.lock:
            now = self._clock.now()
            if not search.knows(sent_at, now):
                answer = await self._rows(request)
                if isinstance(answer, Unknown):
                    return answer
                rows, count = answer
                search.answered, search.asked_at = (_listed_by_ours(rows), count), now
                self._forget_old_searches(now)
            return search.answered

    def _forget_old_searches(self, now: Instant) -> None:
        old = [key for key, search in self._searches.items() if not (search.lock.locked() or search.knows(now, now))]
        for key in old:
            del self._searches[key]

    async def _rows(self, request: Mapping[str, str]) -> tuple[list[dict[str, Any]], int] | Unknown:
        result = await self._ask(request)
        rows = result.ok_object().get("data")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return Unknown(result.raw)
        return rows, len(rows)


def _listed_by_ours(rows: Sequence[Mapping[str, Any]]) -> dict[str, _Listed]:
    listed: dict[str, _Listed] = defaultdict(dict)
    for row in rows:
        if row.get("reference"):
            status = parse_status_word(STATUSES, row.get("status"))
            listed[str(row.get("callback_info"))][str(row["reference"])] = _CONCLUSIVE[status]
    return listed


def network_name(operator: str) -> str | None:
    """FeexPay's documented name of an operator's network, such as `MTN CG`; None for cards and a few networks."""
    name = operator.upper().replace("_", " ")
    return name if name in _NETWORKS else None


def _line(before: int, number: int, row: Mapping[str, Any]) -> Line:
    """Rows have no currency, so it is not compared. `before`: lines of earlier responses."""
    return Line(
        number=before + number,
        kind=REFUND if "PAYOUT" in str(row.get("type", "")).upper() else PAYMENT,
        references=tuple(reference for name in _REFERENCES if (reference := text_or_none(row.get(name)))),
        amount=hundredths(row.get("amount")),
        currency=None,
        status=line_status(parse_status_word(STATUSES, row.get("status"))),
        at=_instant(str(row.get("date", ""))),
    )


def _instant(date: str) -> Instant | None:
    try:
        return from_datetime(datetime.fromisoformat(date))
    except ValueError:
        return None
