"""What providers list: our balances with them, and their own transactions of a period.

Source: docs/providers, "Other calls" and "Statement" of each page.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from guichet.clock import DAY, Instant, earlier, iso
from guichet.domain.messages import Answer
from guichet.domain.money import Hundredths
from guichet.domain.reconciliation import Line, LineStatus
from guichet.providers.base import Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.providers.shared.client import HttpProvider, ProviderResponse
from guichet.providers.shared.fields import ProviderStatus, text_or_none
from guichet.providers.shared.results import probe_result

Body = Mapping[str, Any]
Row = TypeVar("Row")

#: Rows converted before other tasks run: less than two milliseconds.
_STEP: Final = 100


class StatesBalances(HttpProvider):
    """One that states all our balances in one answer, by which `probe` tries the credentials too."""

    balance_path: str

    @abstractmethod
    def balances_in(self, body: Body) -> Iterable[FloatBalance | None]:
        """None for each one that is unreadable."""

    async def probe(self) -> Answer:
        return probe_result(await self._http.get(self.balance_path))

    async def balances(self) -> list[FloatBalance] | Unknown:
        return read_balances(await self._http.get(self.balance_path), self.balances_in)


def read_balances(
    result: ProviderResponse, read: Callable[[Body], Iterable[FloatBalance | None]]
) -> list[FloatBalance] | Unknown:
    """The balances in a 2xx response. `read` finds them in its object, None for each one that is unreadable."""
    if not result.ok:
        return Unknown(result.raw)
    balances = list(read(result.ok_object()))
    readable = [balance for balance in balances if balance is not None]
    return readable if len(readable) == len(balances) else Unknown(result.raw)


def balance_of(wallet: str, amount: Hundredths | None, currency: object) -> FloatBalance | None:
    """None when the provider states no amount or no currency that can be read."""
    code = text_or_none(currency)
    return None if amount is None or code is None else FloatBalance(wallet, amount, code.upper())


def rows_of(value: object) -> list[Body]:
    """A list of objects; what is no object counts as an empty one, so that nothing is left out unseen."""
    return [row if isinstance(row, dict) else {} for row in value] if isinstance(value, list) else [{}]


def days(since: Instant, until: Instant) -> list[str]:
    """The UTC days from that of `since` to that of `until`, both included, as `2026-11-20`."""
    first = earlier(since, since % DAY)
    return [iso(Instant(at))[:10] for at in range(first, until + 1, DAY)] or [iso(first)[:10]]


def line_status(meaning: ProviderStatus | None) -> LineStatus:
    """A word that means nothing is pending, as it is everywhere (docs/providers/README.md, "States")."""
    if meaning is ProviderStatus.SUCCEEDED:
        return "succeeded"
    return "failed" if meaning is ProviderStatus.FAILED else "pending"


async def as_lines(rows: Iterable[Row], convert: Callable[[int, Row], Line | None]) -> list[Line]:
    """`convert(number, row)` of each row, numbered from 1; rows for which it returns None are left out.

    A day may have a hundred thousand rows: the event loop is never held for more than a few of them.
    """
    lines: list[Line] = []
    for number, row in enumerate(rows, 1):
        if (line := convert(number, row)) is not None:
            lines.append(line)
        if number % _STEP == 0:
            await asyncio.sleep(0)
    return lines
