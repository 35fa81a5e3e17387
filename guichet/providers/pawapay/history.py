"""pawaPay's statements: asked for by wallet, ready after a while, then downloaded as CSV.

Source: docs/providers/pawapay.md, "Statements".
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

from guichet.clock import DAY, Clock, Instant, iso, later, read_date
from guichet.domain.messages import Answer
from guichet.domain.money import Hundredths
from guichet.domain.payments import SubjectType
from guichet.domain.reconciliation import PAYMENT, REFUND, Line
from guichet.domain.records import Record
from guichet.providers.base import Unknown
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.client import ProviderResponse
from guichet.providers.shared.fields import clean_text, hundredths, text_or_none, value_at
from guichet.providers.shared.listings import as_lines

_MAX_PERIOD: Final = 31 * DAY
#: How often, and at intervals of how many seconds, a statement that is being made is asked for.
_ATTEMPTS: Final = 120
_PAUSE: Final = 5.0
#: The columns that the file must have, by the letters of their names in lower case.
_COLUMNS: Final = ("transactionid", "type", "amount")
_DATE: Final = "creationdate"
#: The words of the column `Type` for our deposits, refunds and payouts. A word that contains FEE is what pawaPay
#: charged for the transaction of the same id; every other one (top-up, withdrawal, adjustment, …) is none of ours.
_KINDS: Final[dict[str, SubjectType]] = {"DEPOSIT": PAYMENT, "REFUND": REFUND, "PAYOUT": REFUND}
_FEE: Final = "FEE"
_NOT_LETTERS: Final = re.compile(r"[^a-z]+")


class UnreadableStatement(Exception):
    """The file is not a statement; `answer` says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self.answer = answer


class _Movement(Record, frozen=True, gc=False):
    reference: str
    kind: SubjectType
    amount: Hundredths | None
    currency: str | None
    at: Instant | None


class PawaPayStatements:
    """The statements of one account. `get`, `post` and `download` call its API."""

    def __init__(
        self,
        get: Callable[[str], Awaitable[ProviderResponse]],
        post: Callable[[str, dict[str, object]], Awaitable[ProviderResponse]],
        download: Callable[[str], Awaitable[ProviderResponse]],
        countries: frozenset[str],
        clock: Clock,
    ) -> None:
        """`countries`: those whose wallets are ours to compare, as `BEN`."""
        self._get = get
        self._post = post
        self._download = download
        self._countries = countries
        self._clock = clock

    async def lines(self, since: Instant, until: Instant, notify_url: str) -> list[Line] | Unknown:
        """Every deposit, refund and payout between these times in every wallet; Unknown if one file is missing."""
        wallets = await self._wallets()
        if isinstance(wallets, Unknown):
            return wallets
        movements: list[_Movement] = []
        fees: Counter[str] = Counter()
        for wallet in wallets:
            for start in range(since, max(until, since + 1), _MAX_PERIOD):
                end = min(until, later(Instant(start), _MAX_PERIOD))
                file = await self._file(wallet, Instant(start), end, notify_url)
                if isinstance(file, Unknown):
                    return file
                try:
                    await _read(file, movements, fees)
                except UnreadableStatement as error:
                    return Unknown(ProviderAnswer.STATEMENT_UNREADABLE(wallet=str(wallet), answer=error.answer))
        return await as_lines(movements, lambda number, movement: _line(number, movement, fees.get(movement.reference)))

    async def _wallets(self) -> list[dict[str, str]] | Unknown:
        """The wallets of our countries, each as a statement's request names it."""
        result = await self._get("/v2/wallet-balances")
        rows = result.ok_object().get("balances")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return Unknown(result.raw)
        names = ("country", "currency", "provider")
        wallets = ({name: str(row[name]) for name in names if row.get(name)} for row in rows)
        return [wallet for wallet in wallets if wallet.get("country") in self._countries]

    async def _file(
        self, wallet: dict[str, str], since: Instant, until: Instant, notify_url: str
    ) -> ProviderResponse | Unknown:
        """The CSV file of one wallet, once pawaPay has made it."""
        body: dict[str, object] = {
            "wallet": wallet,
            "callbackUrl": notify_url,
            "startDate": iso(since)[:19],
            "endDate": iso(until)[:19],
            "compressed": False,
        }
        result = await self._post("statements", body)
        accepted = result.ok_object()
        statement_id = text_or_none(accepted.get("statementId"))
        if accepted.get("status") != "ACCEPTED" or statement_id is None:
            return Unknown(result.raw)
        for _ in range(_ATTEMPTS):
            await self._clock.sleep(_PAUSE)
            result = await self._get(f"/v2/statements/{statement_id}")
            statement = result.ok_object()
            state = value_at(statement, "data", "status")
            if state == "FAILED":
                return Unknown(result.raw)
            if state == "COMPLETED":
                file = await self._download(str(value_at(statement, "data", "downloadUrl")))
                return file if file.ok and file.complete else Unknown(file.raw)
        return Unknown(ProviderAnswer.STATEMENT_NOT_READY(statement=statement_id, answer=result.raw))


async def _read(file: ProviderResponse, movements: list[_Movement], fees: Counter[str]) -> None:
    """Adds the movements of a file and what was charged for them, by transaction. Raises UnreadableStatement."""
    rows = _rows(file.body)
    header = [_NOT_LETTERS.sub("", cell.lower()) for cell in next(rows, [])]
    if missing := [name for name in _COLUMNS if name not in header]:
        raise UnreadableStatement(ProviderAnswer.COLUMN_MISSING(column=missing[0]))

    def take(_: int, row: list[str]) -> None:
        if not any(row):
            return
        if len(row) != len(header):
            raise UnreadableStatement(ProviderAnswer.COLUMNS_DIFFER(found=len(row), wanted=len(header)))
        _take(dict(zip(header, (clean_text(cell.strip()) for cell in row), strict=True)), movements, fees)

    await as_lines(rows, take)


def _rows(body: bytes) -> Iterator[list[str]]:
    """The rows of a CSV file, read as they are needed. Raises UnreadableStatement."""
    first = body.partition(b"\n")[0]
    text = io.TextIOWrapper(io.BytesIO(body), encoding="utf-8-sig", newline="")
    rows = csv.reader(text, delimiter=max(",;\t", key=lambda mark: first.count(mark.encode())))
    try:
        yield from rows
    except (csv.Error, UnicodeDecodeError) as error:
        raise UnreadableStatement(str(error)) from None


def _take(row: Mapping[str, Any], movements: list[_Movement], fees: Counter[str]) -> None:
    word = str(row["type"]).upper().replace(" ", "_")
    amount = hundredths(row["amount"])
    if _FEE in word:
        fees[row["transactionid"]] += abs(amount or 0)
    elif kind := _KINDS.get(word):
        moved = None if amount is None else Hundredths(abs(amount))
        movements.append(
            _Movement(row["transactionid"], kind, moved, row.get("currency") or None, _date(row.get(_DATE, "")))
        )


def _line(number: int, move: _Movement, fee: int | None) -> Line:
    """Statements list only what changed the wallet."""
    charged = None if fee is None else Hundredths(fee)
    return Line(number, move.kind, (move.reference,), move.amount, move.currency, "succeeded", move.at, charged)


def _date(text: str) -> Instant | None:
    return read_date(text.replace(" UTC", "Z"))
