"""How a reconciliation is shown: on screen, as CSV, as JSON."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from guichet.cli import spreadsheets
from guichet.cli.support import date, people, print_json, print_table
from guichet.clock import Instant
from guichet.domain.money import plain
from guichet.domain.reconciliation import DIFFERENT, MATCHED, MISSING_HERE, MISSING_THERE, Finding
from guichet.schemas.json_output import number

_OUTCOMES: Final = (MATCHED, MISSING_HERE, MISSING_THERE, DIFFERENT)
_COLUMNS: Final = (
    "outcome",
    "type",
    "our_reference",
    "merchant",
    "our_status",
    "our_amount",
    "their_reference",
    "their_amount",
    "currency",
    "our_date",
    "their_date",
    "line",
    "note",
)


@dataclass(frozen=True, slots=True)
class Compared:
    counts: Counter[str]
    differences: list[Finding]
    ignored: int
    since: Instant | None
    until: Instant | None


class Output:
    """The CSV on demand."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("w", encoding="utf-8", newline="") if path else None
        self._rows = spreadsheets.writer(self._file, _COLUMNS) if self._file else None

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def write(self, finding: Finding) -> None:
        if self._rows is not None:
            self._rows.writerow(_row(finding))


def _row(finding: Finding) -> tuple[object, ...]:
    line, ours = finding.line, finding.ours
    kind = line.kind if line else ours.kind if ours else ""
    currency = ours.currency if ours else (line.currency if line else None)
    return (
        finding.outcome,
        kind,
        ours.reference if ours else "",
        ours.merchant_id if ours else "",
        ours.status if ours else "",
        spreadsheets.figure(ours.amount) if ours else "",
        spreadsheets.text(" ".join(line.references)) if line else "",
        spreadsheets.figure(line.amount) if line and line.amount is not None else "",
        currency or "",
        spreadsheets.moment(ours.at) if ours and ours.at else "",
        spreadsheets.moment(line.at) if line else "",
        line.number if line else "",
        spreadsheets.text(finding.note),
    )


def show(compared: Compared, *, as_json: bool) -> None:
    counts = {outcome: compared.counts[outcome] for outcome in _OUTCOMES}
    if as_json:
        differences = [_described(each) for each in compared.differences]
        spanned = {"from": date(compared.since), "to": date(compared.until)}
        print_json({**spanned, "counts": counts, "ignored": compared.ignored, "differences": differences})
        return
    if compared.differences:
        columns = ("Outcome", "Type", "Ours", "Amount here", "Theirs", "Amount there", "Line", "Note")
        print_table(columns, [_screen(each) for each in compared.differences])
    if compared.since is not None and compared.until is not None:
        people.print(f"From {spreadsheets.moment(compared.since)} to {spreadsheets.moment(compared.until)} UTC:")
    people.print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()) + ".")
    if compared.ignored:
        people.print(f"{compared.ignored} lines were ignored, as told.")


def _screen(finding: Finding) -> tuple[object, ...]:
    line, ours = finding.line, finding.ours
    return (
        finding.outcome,
        line.kind if line else ours.kind if ours else "",
        ours.reference if ours else "",
        plain(ours.amount) if ours else "",
        line.references[0] if line and line.references else "",
        plain(line.amount) if line and line.amount is not None else "",
        line.number if line else "",
        finding.note,
    )


def _described(finding: Finding) -> dict[str, object]:
    line, ours = finding.line, finding.ours
    return {
        "outcome": finding.outcome,
        "note": finding.note,
        "type": line.kind if line else ours.kind if ours else None,
        "ours": ours
        and {
            "reference": ours.reference,
            "merchant": ours.merchant_id,
            "status": ours.status,
            "amount": number(ours.amount),
            "currency": ours.currency,
        },
        "theirs": line
        and {
            "line": line.number,
            "references": list(line.references),
            "status": line.status,
            "amount": None if line.amount is None else number(line.amount),
            "currency": line.currency,
            "date": date(line.at),
        },
    }
