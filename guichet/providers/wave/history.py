"""Wave's list of transactions, by day and in pages (docs/providers/wave.md, "Statement").

`amount` is what a transaction changed in our wallet, and `fee` what Wave kept of it: a customer who paid 3 400 makes
`amount` 3366 and `fee` 34. So what the customer moved is the sum of both, whatever the direction.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from guichet.clock import DAY, Instant, earlier, later, read_date
from guichet.domain.messages import Day
from guichet.domain.money import Hundredths
from guichet.domain.reconciliation import PAYMENT, REFUND, Line
from guichet.providers.base import Unknown
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import hundredths, text_or_none
from guichet.providers.shared.listings import days
from guichet.providers.wave.responses import page_in

#: One call to the list of transactions with this query.
Ask = Callable[[dict[str, str]], Awaitable[ProviderResponse]]

_PER_PAGE: Final = 100
#: A day with more pages than this is not read to its end, in case the cursors never end.
_MAX_PAGES: Final = 5_000
#: A refund of a session names the session and its reference, not ours for the refund.
_REFERENCES: Final = ("client_reference", "checkout_api_session_id", "transaction_id")


async def read_history(ask: Ask, since: Instant, until: Instant) -> list[Line] | Unknown:
    """Every transaction of the days from `since` to `until`; Unknown when one page of them cannot be read."""
    lines: dict[str, Line] = {}
    for day in days(since, until):
        if problem := await _read_day(ask, day, lines):
            return problem
    return list(lines.values())


async def find_session_refund(ask: Ask, session_id: str, sent_at: Instant, now: Instant) -> Line | Unknown | None:
    """The refund of a session among the transactions of the days on which it is likely: those after its request, and
    the latest ones. None when it is not there; Unknown when one page cannot be read."""
    lines: dict[str, Line] = {}
    likely = [*days(sent_at, min(now, later(sent_at, DAY))), *days(max(sent_at, earlier(now, DAY)), now)]
    for day in dict.fromkeys(likely):
        if problem := await _read_day(ask, day, lines):
            return problem
    return next((line for line in lines.values() if line.kind == REFUND and session_id in line.references), None)


async def _read_day(ask: Ask, day: str, lines: dict[str, Line]) -> Unknown | None:
    """Adds the transactions of one day by their id: a page may repeat what another one had."""
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        result = await ask({"date": day, "first": str(_PER_PAGE), **({"after": cursor} if cursor else {})})
        page = page_in(result.ok_object(), "transaction_id")
        if page is None:
            return Unknown(result.raw)
        items, following = page
        for item in items:
            lines[str(item["transaction_id"])] = _line(len(lines) + 1, item)
        if following is None:
            return None
        if following == cursor:
            return Unknown(ProviderAnswer.CURSOR_STAYS(day=Day.of(day), cursor=cursor))
        cursor = following
    return Unknown(ProviderAnswer.TOO_MANY_PAGES(day=Day.of(day), count=_MAX_PAGES))


def _line(number: int, item: Mapping[str, Any]) -> Line:
    """A listed transaction was executed. An amount that cannot be read is not compared."""
    change, fee = hundredths(item.get("amount")), hundredths(item.get("fee"))
    moved = None if change is None else change + (fee or 0)
    return Line(
        number=number,
        kind=REFUND if (moved or 0) < 0 else PAYMENT,
        references=tuple(reference for name in _REFERENCES if (reference := text_or_none(item.get(name)))),
        amount=None if moved is None else Hundredths(abs(moved)),
        currency=text_or_none(item.get("currency")),
        status="succeeded",
        at=read_date(str(item.get("timestamp", ""))),
        fee=fee,
    )
