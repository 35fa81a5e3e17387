"""Compares a provider's statement with our ledger, line by line.

Only movements of money are compared: a line that failed there and a payment that failed here make no finding.

What a difference between a provider's statement and our ledger comes with: `guichet reconcile` prints it, the rows
of `reconciliation_runs` keep it, the back office says it in the reader's language.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from guichet.clock import Instant
from guichet.domain.ids import MerchantId
from guichet.domain.late_results import LateStage
from guichet.domain.messages import Code, Message
from guichet.domain.money import Currency, Hundredths
from guichet.domain.payments import PaymentStatus, SubjectType
from guichet.domain.records import Record


class ComparisonNote(Code):
    """`status`: of the payment or refund here, or of the line there."""

    UNKNOWN_HERE = "comparison_note.unknown_here"
    REFUNDED_ELSEWHERE = "comparison_note.refunded_elsewhere"
    CURRENCIES = "comparison_note.currencies", "theirs", "ours"
    STATUS_HERE = "comparison_note.status_here", "status"
    NOT_THERE = "comparison_note.not_there"
    STATUS_THERE = "comparison_note.status_there", "status"
    SECOND_TIME = "comparison_note.second_time"


PAYMENT: Final = "payment"
REFUND: Final = "refund"
#: Not compared here (`disputes/`); listed where it changed a balance in another currency.
DISPUTE: Final = "dispute"
LineKind = SubjectType | Literal["dispute"]

#: The status of a movement in the statement.
LineStatus = Literal["succeeded", "failed", "pending"]

MATCHED: Final = "matched"
DIFFERENT: Final = "different amount"
#: The provider moved money that our ledger does not have.
MISSING_HERE: Final = "missing here"
#: Our ledger has money that the provider did not move.
MISSING_THERE: Final = "missing there"
OUTCOMES: Final = (MATCHED, MISSING_HERE, MISSING_THERE, DIFFERENT)


class Settled(Record, frozen=True, gc=False):
    """What a movement did to our balance with the provider, where we hold another currency than was paid: `amount` in
    hundredths, negative when it left, and the `fee` that was kept besides."""

    amount: int
    fee: int
    currency: Currency


class Line(Record, frozen=True, gc=False):
    """One movement in the provider's statement. There may be a hundred thousand, so the garbage collector leaves them
    alone: it would stop the event loop for as long as it looks at them.

    `number`: its line in the file, or its position in the history. `references`: ours and the provider's. `amount` is
    in hundredths, None if the statement has none. `fee`: what the provider charged for it, in hundredths (negative:
    gave back); None if the statement does not say.
    """

    number: int
    kind: LineKind
    references: tuple[str, ...]
    amount: Hundredths | None
    currency: str | None
    status: LineStatus
    at: Instant | None
    fee: Hundredths | None = None
    settled: Settled | None = None

    @property
    def moved(self) -> bool:
        return self.status == "succeeded"


class ComparedSubject(Record, frozen=True):
    """A payment or refund of ours. `amount`: what the provider was asked to move, in hundredths. `more_references`: of
    a refund, those of its current request and of its payment, by which some providers name it."""

    kind: SubjectType
    id: int
    merchant_id: MerchantId
    reference: str
    provider_reference: str | None
    provider_account: str | None
    status: PaymentStatus
    amount: Hundredths
    currency: Currency
    at: Instant
    operator: str
    more_references: tuple[str, ...] = ()
    #: What the provider did after the end was told (`domain/late_results.py`).
    late_stage: LateStage | None = None

    @property
    def moved(self) -> bool:
        """Whether the provider moved the money, as far as we know: what it did late is the contrary of the status, but
        for a failed refund that people have paid after all."""
        if self.kind == REFUND and self.status == "failed":
            return self.late_stage in ("receivable", "paid", "returned")
        was_told = self.status in ("succeeded", "refunded")
        contradicted = self.late_stage not in (None, "asking")
        return was_told != contradicted

    @property
    def keys(self) -> set[str]:
        """Every reference by which the provider may name it."""
        references = (self.reference, self.reference.replace("-", ""), self.provider_reference, *self.more_references)
        return {_key(reference) for reference in references if reference}


class Finding(Record, frozen=True):
    """The result of comparing one of ours with its line; `line` or `ours` is None if only the other exists."""

    outcome: str
    line: Line | None
    ours: ComparedSubject | None
    note: Message | None = None


@dataclass
class StatementIndex:
    """The lines of a statement, with an index by reference; it records which lines were matched."""

    lines: list[Line] = field(default_factory=list)
    #: Tuples, and not lists, for the same reason.
    _by_key: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    _matched: set[int] = field(default_factory=set)

    def add(self, line: Line) -> None:
        for key in {_key(reference) for reference in line.references}:
            self._by_key[line.kind, key] = (*self._by_key.get((line.kind, key), ()), len(self.lines))
        self.lines.append(line)

    def match(self, subject: ComparedSubject, *, expected: bool) -> Iterator[Finding]:
        """Compares one of ours with the lines that name it. `expected`: the statement should have a line about it,
        because it belongs to the period."""
        indices = sorted({index for key in subject.keys for index in self._by_key.get((subject.kind, key), ())})
        self._matched.update(indices)
        lines = [self.lines[index] for index in indices]
        moved = [line for line in lines if line.moved]
        if not subject.moved:
            note = ComparisonNote.STATUS_HERE(status=subject.status)
            yield from (Finding(MISSING_HERE, line, subject, note) for line in moved)
        elif not moved:
            if expected or lines:
                note = ComparisonNote.STATUS_THERE(status=lines[-1].status) if lines else ComparisonNote.NOT_THERE()
                # Dated by the line: a refund may come back days after its success.
                yield Finding(MISSING_THERE, lines[-1] if lines else None, subject, note)
        else:
            yield _compared(moved[0], subject)
            yield from (Finding(MISSING_HERE, line, subject, ComparisonNote.SECOND_TIME()) for line in moved[1:])

    def unmatched(self) -> Iterator[Line]:
        """Lines that moved money and were matched with nothing of ours so far."""
        return (line for index, line in enumerate(self.lines) if line.moved and index not in self._matched)


def _compared(line: Line, subject: ComparedSubject) -> Finding:
    """An amount or currency that the statement leaves out is not compared."""
    if line.amount is not None and line.amount != subject.amount:
        return Finding(DIFFERENT, line, subject)
    if line.currency is not None and line.currency != subject.currency:
        return Finding(DIFFERENT, line, subject, ComparisonNote.CURRENCIES(theirs=line.currency, ours=subject.currency))
    return Finding(MATCHED, line, subject)


def _key(reference: str) -> str:
    return reference.strip().lower()
