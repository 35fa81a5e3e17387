"""The report of a reconciliation: on screen, as CSV, as JSON."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guichet.cli.console import console, iso_or_none, print_json, print_table, with_sentence
from guichet.clock import Instant
from guichet.domain.money import plain
from guichet.domain.reconciliation import MATCHED, OUTCOMES, Finding
from guichet.exports import cells, differences
from guichet.ledger.reconciliation_runs import describe


@dataclass(frozen=True, slots=True)
class Comparison:
    """`counts`: findings by result; `differences`: those that do not match; `ignored`: lines left out on request."""

    counts: Counter[str]
    differences: list[Finding]
    ignored: int
    since: Instant | None
    until: Instant | None

    def add(self, finding: Finding) -> None:
        self.counts[finding.outcome] += 1
        if finding.outcome != MATCHED:
            self.differences.append(finding)


class CsvReport:
    """Writes every finding to a CSV file; does nothing without a path."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("w", encoding="utf-8", newline="") if path else None
        self._rows = cells.writer(self._file, differences.COLUMNS) if self._file else None

    def __enter__(self) -> "CsvReport":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def write(self, finding: Finding) -> None:
        if self._rows is not None:
            self._rows.writerow(differences.row(finding))


def show(comparison: Comparison, *, as_json: bool) -> None:
    counts = {result: comparison.counts[result] for result in OUTCOMES}
    if as_json:
        differences = [with_note(describe(each)) for each in comparison.differences]
        period = {"from": iso_or_none(comparison.since), "to": iso_or_none(comparison.until)}
        print_json({**period, "counts": counts, "ignored": comparison.ignored, "differences": differences})
        return
    if comparison.differences:
        columns = ("Result", "Type", "Ours", "Amount here", "Theirs", "Amount there", "Line", "Note")
        print_table(columns, [_screen(each) for each in comparison.differences])
    if comparison.since is not None and comparison.until is not None:
        console.print(f"From {cells.moment(comparison.since)} to {cells.moment(comparison.until)} UTC:")
    console.print(", ".join(f"{count} {result}" for result, count in counts.items()) + ".")
    if comparison.ignored:
        console.print(f"{comparison.ignored} lines were ignored as requested.")


def with_note(difference: dict[str, Any]) -> dict[str, object]:
    """As `--json` prints it. Without a note its sentence is empty."""
    told = with_sentence("note", difference["note"])
    return {**difference, **told, "note": told["note"] or ""}


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
        finding.note or "",
    )
