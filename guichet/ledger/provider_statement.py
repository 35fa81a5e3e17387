"""Reads a provider's statement: a CSV file in UTF-8 with a header row.

A table for each provider says which column holds what; options of the command add to it.
"""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, cast

from guichet.clock import DAY, Instant, later, read_date
from guichet.domain.money import CURRENCIES, Hundredths
from guichet.domain.payments import SubjectType
from guichet.domain.reconciliation import PAYMENT, REFUND, Line, LineStatus

T = TypeVar("T")

FIELDS: Final = ("reference", "type", "amount", "currency", "status", "date")
#: By provider, the columns of each field besides the field's own name (docs/providers/README.md, "Statements"). All
#: reference columns in the file are used; of other fields the first one found.
PRESETS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "feexpay": {"reference": ("callback_info", "financial_transaction_id", "custom_id")},
    "mtn": {
        "reference": ("externalId", "financialTransactionId", "referenceId", "X-Reference-Id"),
    },
    "wave": {
        "reference": ("client_reference", "id", "transaction_id"),
        "amount": ("receive_amount",),
        "status": ("payment_status",),
        "date": ("when_completed", "timestamp"),
    },
    "pawapay": {
        "reference": ("depositId", "refundId", "payoutId", "clientReferenceId", "providerTransactionId"),
        "date": ("created",),
    },
    "orange": {"reference": ("order_id", "txnid", "pay_token")},
    "sonatel": {"reference": ("transactionId", "requestId")},
    "stripe": {
        "reference": ("client_reference_id", "payment_intent", "id", "source"),
        "status": ("payment_status",),
        "date": ("created", "created (utc)"),
    },
}
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

_SPACES: Final = re.compile(r"[\s\u00a0\u202f']")
#: Fifteen digits at most: more are no amount, and some thousands of them no number that Python reads.
_AMOUNT: Final = re.compile(r"(-?)(\d{1,15})(?:[.,](\d{1,2}))?")
_GROUPED: Final = re.compile(r"(-?)(\d{1,3}(?:([.,])\d{3}){1,4})(?!\3)[.,](\d{1,2})")
_FRENCH_DATE: Final = re.compile(r"(\d{2})/(\d{2})/(\d{4})(.*)")


class UnreadableStatement(Exception):
    """The statement cannot be read; the message is one sentence that names the line."""


@dataclass(frozen=True, slots=True)
class ProviderStatement:
    """`ignored`: number of lines left out on request; `since`, `until`: first and last date, None without dates."""

    lines: list[Line]
    ignored: int
    since: Instant | None
    until: Instant | None


def read_statement(
    path: Path, provider: str, columns: Mapping[str, str], words: Mapping[str, str]
) -> ProviderStatement:
    """Reads a file. `columns` (field → column) and `words` (word → meaning) override the presets of the provider.

    Raises UnreadableStatement.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise UnreadableStatement(f"{path.name}, line {line}: this is not UTF-8. Save it as CSV UTF-8.") from None
    if "\0" in text:  # PostgreSQL keeps none, and no statement has one.
        line = text[: text.index("\0")].count("\n") + 1
        raise UnreadableStatement(f"{path.name}, line {line}: it holds a NUL byte. Save it as CSV UTF-8.")
    reader = _Reader(path.name, text, PRESETS.get(provider, {}), columns, {**WORDS, **words})
    return reader.read()


class _Reader:
    def __init__(
        self,
        name: str,
        text: str,
        preset: Mapping[str, Sequence[str]],
        columns: Mapping[str, str],
        words: Mapping[str, str],
    ) -> None:
        self._name = name
        self._words = words
        first = text.partition("\n")[0]
        delimiter = max(";,\t", key=first.count)
        self._rows = csv.reader(text.splitlines(), delimiter=delimiter, strict=True)
        header = [cell.strip().lower() for cell in self._next() or []]
        self._width = len(header)
        self._at: dict[str, list[int]] = {}
        for field in FIELDS:
            wanted = [columns[field]] if field in columns else [field, *preset.get(field, ())]
            self._at[field] = [header.index(each.lower()) for each in wanted if each.lower() in header]
        for field in ("reference", "amount"):
            if not self._at[field]:
                known = ", ".join(header)
                raise self._fault(f"no column for {field} among {known}; name it with --column {field}=NAME")

    def read(self) -> ProviderStatement:
        lines: list[Line] = []
        ignored = 0
        since: Instant | None = None
        until: Instant | None = None
        while (row := self._next()) is not None:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != self._width:
                raise self._fault(f"{len(row)} columns where the header has {self._width}")
            line, end = self._line(row)
            if line is None:
                ignored += 1
                continue
            lines.append(line)
            if line.at is not None and end is not None:
                since, until = min(since or line.at, line.at), max(until or end, end)
        return ProviderStatement(lines, ignored, since, until)

    def _line(self, row: Sequence[str]) -> tuple[Line | None, Instant | None]:
        amount = self._read(row, "amount", _amount)
        kind = self._word(row, "type") or (REFUND if (amount or 0) < 0 else PAYMENT)
        status = self._word(row, "status") or "succeeded"
        if IGNORED in (kind, status):
            return None, None
        references = tuple(cell for at in self._at["reference"] if (cell := row[at].strip().lstrip("'")))
        if not references:
            raise self._fault("it has no reference")
        if amount is None:
            raise self._fault("it has no amount")
        currency = self._cell(row, "currency").upper() or None
        if currency is not None and currency not in CURRENCIES:
            raise self._fault(f"{currency} is not one of {', '.join(CURRENCIES)}")
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
        allowed = (PAYMENT, REFUND, IGNORED) if field == "type" else ("succeeded", "failed", "pending", IGNORED)
        if meaning not in allowed:
            raise self._fault(
                f"the {field} {word!r} is unknown; explain it with --word {word}={allowed[0]} (or ignore)"
            )
        return meaning

    def _read(self, row: Sequence[str], field: str, parse: Callable[[str], T | None]) -> T | None:
        cell = self._cell(row, field)
        if not cell:
            return None
        value = parse(cell)
        if value is None:
            raise self._fault(f"the {field} {cell!r} cannot be read")
        return value

    def _cell(self, row: Sequence[str], field: str) -> str:
        return next((cell for at in self._at[field] if (cell := row[at].strip())), "")

    def _next(self) -> list[str] | None:
        try:
            return next(self._rows, None)
        except csv.Error as error:
            raise self._fault(str(error)) from None

    def _fault(self, problem: str) -> UnreadableStatement:
        return UnreadableStatement(f"{self._name}, line {max(1, self._rows.line_num)}: {problem}.")


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
