"""Reads a provider's statement: a CSV file in UTF-8 with a header row.

The folder of each provider says which column holds what (`ProviderType.statement`); whoever brings the file adds to it.
Other tasks run between a few lines and the next, so that a server can read a statement.
"""

import asyncio
import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, cast

from guichet.clock import DAY, Instant, later, read_date
from guichet.domain.money import CURRENCIES, Hundredths
from guichet.domain.payments import SubjectType
from guichet.domain.reconciliation import PAYMENT, REFUND, Line, LineStatus
from guichet.providers.provider_types import PROVIDER_TYPES

FIELDS: Final = ("reference", "type", "amount", "currency", "status", "date")
IGNORED: Final = "ignore"
#: The meaning of words in the columns `type` and `status`; `--word` adds others.
WORDS: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "payment",
            "payin",
            "deposit",
            "collection",
            "charge",
            "encaissement",
            "payment_api",
            "feex_link",
            "feex_page",
        ),
        PAYMENT,
    ),
    **dict.fromkeys(("refund", "payout", "reversal", "remboursement", "payout_api"), REFUND),
    **dict.fromkeys(("succeeded", "successful", "success", "completed", "complete", "paid", "found"), "succeeded"),
    **dict.fromkeys(("failed", "cancelled", "canceled", "rejected", "expired", "unpaid", "reversed"), "failed"),
    **dict.fromkeys(
        ("pending", "processing", "accepted", "enqueued", "in_reconciliation", "initiated", "open", "created"),
        "pending",
    ),
}
MEANINGS: Final = (PAYMENT, REFUND, "succeeded", "failed", "pending", IGNORED)
#: What a word in the column may mean.
MEANINGS_OF: Final = {
    "type": (PAYMENT, REFUND, IGNORED),
    "status": ("succeeded", "failed", "pending", IGNORED),
}


T = TypeVar("T")

_SPACES: Final = re.compile(r"[\s\u00a0\u202f']")
#: Fifteen digits at most: more are no amount, and some thousands of them no number that Python reads.
_AMOUNT: Final = re.compile(r"(-?)(\d{1,15})(?:[.,](\d{1,2}))?")
_GROUPED: Final = re.compile(r"(-?)(\d{1,3}(?:([.,])\d{3}){1,4})(?!\3)[.,](\d{1,2})")
_FRENCH_DATE: Final = re.compile(r"(\d{2})/(\d{2})/(\d{4})(.*)")


#: Why a statement cannot be read. Facts of `no_column`: `field`, `known` (the header's columns); of `width`: `found`,
#: `expected`; of `currency`: `value`, `known`; of `word` and `value`: `field`, `value`; of `csv`: `problem`, in
#: English, of Python's reader; of `too_many`: `most`.
StatementFault = Literal[
    "encoding", "nul", "no_column", "width", "no_reference", "no_amount", "currency", "word", "value", "csv", "too_many"
]
#: Lines that are read before other tasks run: less than a millisecond.
_AT_ONCE: Final = 50
#: Characters of a cell, and of a header, that a fault tells.
_MOST_TOLD: Final = 80
_MOST_COLUMNS: Final = 500


class UnreadableStatement(Exception):
    """The statement cannot be read because of this line of the file, for this reason."""

    def __init__(self, line: int, fault: StatementFault, **facts: str | int) -> None:
        super().__init__(f"line {line}: {fault}")
        self.line = line
        self.fault = fault
        self.facts = facts


@dataclass(frozen=True, slots=True)
class ProviderStatement:
    """`ignored`: number of lines left out on request; `since`, `until`: first and last date, None without dates."""

    lines: list[Line]
    ignored: int
    since: Instant | None
    until: Instant | None


@dataclass(frozen=True, slots=True)
class StatementFormat:
    """`columns` (field → column) and `words` (word in small letters → meaning) override the presets of the provider."""

    provider: str
    columns: Mapping[str, str]
    words: Mapping[str, str]


async def read_statement(content: bytes, file_format: StatementFormat, most: int | None = None) -> ProviderStatement:
    """Reads the content of a file, of at most `most` lines. Raises UnreadableStatement."""
    lines: list[Line] = []
    ignored = 0
    since: Instant | None = None
    until: Instant | None = None
    for number, entry in enumerate(_Reader(_text(content), file_format), 1):
        if most is not None and number > most:
            raise UnreadableStatement(number, "too_many", most=most)
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
        if entry is None:
            continue
        line, end = entry
        if line is None:
            ignored += 1
            continue
        lines.append(line)
        if line.at is not None and end is not None:
            since, until = min(since or line.at, line.at), max(until or end, end)
    return ProviderStatement(lines, ignored, since, until)


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableStatement(content[: error.start].count(b"\n") + 1, "encoding") from None
    if "\0" in text:  # PostgreSQL keeps none, and no statement has one.
        raise UnreadableStatement(text[: text.index("\0")].count("\n") + 1, "nul")
    return text


class _Reader:
    """Each line of the file below the header, with the end of its date; None for an empty one, and None in place of the
    line for one that is to be ignored."""

    def __init__(self, text: str, file_format: StatementFormat) -> None:
        self._words = {**WORDS, **file_format.words}
        first = text.partition("\n")[0]
        delimiter = max(";,\t", key=first.count)
        self._rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        header = [cell.strip().lower() for cell in self._next() or []]
        self._width = len(header)
        self._at: dict[str, list[int]] = {}
        declared = PROVIDER_TYPES.get(file_format.provider)
        preset = declared.statement if declared else {}
        for field in FIELDS:
            names = [file_format.columns[field]] if field in file_format.columns else [field, *preset.get(field, ())]
            self._at[field] = [header.index(name.lower()) for name in names if name.lower() in header]
        for field in ("reference", "amount"):
            if not self._at[field]:
                raise self._fault("no_column", field=field, known=", ".join(header)[:_MOST_COLUMNS])

    def __iter__(self) -> Iterator[tuple[Line | None, Instant | None] | None]:
        while (row := self._next()) is not None:
            if not any(cell.strip() for cell in row):
                yield None
                continue
            if len(row) != self._width:
                raise self._fault("width", found=len(row), expected=self._width)
            yield self._line(row)

    def _line(self, row: Sequence[str]) -> tuple[Line | None, Instant | None]:
        amount = self._read(row, "amount", _amount)
        kind = self._word(row, "type") or (REFUND if (amount or 0) < 0 else PAYMENT)
        status = self._word(row, "status") or "succeeded"
        if IGNORED in (kind, status):
            return None, None
        references = tuple(cell for at in self._at["reference"] if (cell := row[at].strip().lstrip("'")))
        if not references:
            raise self._fault("no_reference")
        if amount is None:
            raise self._fault("no_amount")
        currency = self._cell(row, "currency").upper() or None
        if currency is not None and currency not in CURRENCIES:
            raise self._fault("currency", value=currency[:_MOST_TOLD], known=", ".join(CURRENCIES))
        dated = self._read(row, "date", _date)
        at, end = dated or (None, None)
        # `_word` admits no other words.
        kind, status = cast(SubjectType, kind), cast(LineStatus, status)
        return Line(self._rows.line_num, kind, references, Hundredths(abs(amount)), currency, status, at), end

    def _word(self, row: Sequence[str], field: str) -> str | None:
        word = self._cell(row, field)
        if not word:
            return None
        meaning = self._words.get(word.lower())
        if meaning not in MEANINGS_OF[field]:
            raise self._fault("word", field=field, value=word[:_MOST_TOLD])
        return meaning

    def _read(self, row: Sequence[str], field: str, parse: Callable[[str], T | None]) -> T | None:
        cell = self._cell(row, field)
        if not cell:
            return None
        value = parse(cell)
        if value is None:
            raise self._fault("value", field=field, value=cell[:_MOST_TOLD])
        return value

    def _cell(self, row: Sequence[str], field: str) -> str:
        return next((cell for at in self._at[field] if (cell := row[at].strip())), "")

    def _next(self) -> list[str] | None:
        try:
            return next(self._rows, None)
        except csv.Error as error:
            raise self._fault("csv", problem=str(error)) from None

    def _fault(self, fault: StatementFault, **facts: str | int) -> UnreadableStatement:
        return UnreadableStatement(max(1, self._rows.line_num), fault, **facts)


def _amount(cell: str) -> Hundredths | None:
    """Hundredths from `5 000`, `5000,00`, `1.234,50` or `1,234.50`; None for others and for `5,000`: ambiguous."""
    compact = _SPACES.sub("", cell)
    if match := _AMOUNT.fullmatch(compact):
        sign, units, cents = match[1], match[2], match[3] or ""
    elif match := _GROUPED.fullmatch(compact):
        sign, units, cents = match[1], re.sub(r"\D", "", match[2]), match[4]
    else:
        return None
    hundredths = int(units) * 100 + int(cents.ljust(2, "0") or 0)
    return Hundredths(-hundredths if sign else hundredths)


def _date(cell: str) -> tuple[Instant, Instant] | None:
    """(begin, end) of an ISO date or of day/month/year; a date without a time is the whole day."""
    french = _FRENCH_DATE.fullmatch(cell)
    text = f"{french[3]}-{french[2]}-{french[1]}{french[4]}" if french else cell
    at = read_date(text.replace(" UTC", "Z"))
    if at is None:
        return None
    return at, later(at, DAY - 1 if len(text) == len("2026-11-20") else 0)
