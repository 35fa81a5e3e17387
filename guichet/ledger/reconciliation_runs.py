"""The daily comparison of each provider account with our ledger: which days are due, and what was found.

A row is made on the day that it is about, so the first day of an account is the one on which a worker first knew it. It
is due some hours after that day's end. A run that found differences is repeated daily for a week, because payments
settle late; one that could not read the provider's history is repeated hourly for two weeks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec.json import encode
from sqlalchemy import bindparam, func, select, update

from guichet.clock import DAY, HOUR, Instant, earlier, iso, later
from guichet.db.engine import Database
from guichet.db.sql_functions import is_listed, new_row, params, upsert
from guichet.db.tables import reconciliation_runs
from guichet.domain.messages import Answer, Message, decode, shortened, verbatim
from guichet.domain.messages import encode as encode_message
from guichet.domain.money import number
from guichet.domain.reconciliation import MATCHED, Finding

#: Hours after a day's end until its history is complete enough to compare.
DUE_AFTER: Final = 4 * HOUR
#: A run that takes longer is started again, perhaps by another worker.
LEASE: Final = HOUR
RETRY_UNREADABLE: Final = HOUR
REPEAT_DIFFERENT: Final = DAY
#: How old a day may be for a run with differences to be repeated, and for any run at all.
_REPEATED_FOR: Final = 7 * DAY
_TRIED_FOR: Final = 14 * DAY
#: Days before today for which a missing row is made, when no worker ran for a while.
_CATCH_UP: Final = 7
#: Differences of a run that are kept; all of them are counted.
KEPT: Final = 1000
#: Days of which `recent_runs` tells.
SHOWN_DAYS: Final = 31

_table: Final = reconciliation_runs
_LAST_DAY: Final = select(func.max(_table.c.day)).where(_table.c.provider_account == bindparam("provider_account"))
_INSERT: Final = (
    upsert(_table).values(new_row(_table)).on_conflict_do_nothing(index_elements=["provider_account", "day"])
)
_DUE: Final = (
    select(_table.c.id)
    .where(
        _table.c.due_at <= bindparam("now"),
        is_listed(_table.c.provider_account, "accounts"),
    )
    .order_by(_table.c.due_at, _table.c.id)
    .limit(1)
    .with_for_update(skip_locked=True)
    .scalar_subquery()
)
_CLAIM: Final = (
    update(_table)
    .where(_table.c.id == _DUE, _table.c.due_at <= bindparam("now"))
    .values(due_at=bindparam("until"), started_at=bindparam("now"), attempts=_table.c.attempts + 1)
    .returning(_table.c.id, _table.c.provider_account, _table.c.day)
)
_LEASED: Final = (_table.c.id == bindparam("run_id"), _table.c.due_at == bindparam("lease"))
_FINISH: Final = (
    update(_table)
    .where(*_LEASED)
    .values(
        due_at=bindparam("next_due_at"),
        finished_at=bindparam("finished_at"),
        error=None,
        **params("lines", "matched", "differences", "found"),
    )
)
_FAIL: Final = update(_table).where(*_LEASED).values(due_at=bindparam("next_due_at"), error=bindparam("error"))
_RECENT: Final = (
    select(*(column for column in _table.c if column.name != "id"))
    .where(_table.c.day >= bindparam("since"))
    .order_by(_table.c.day.desc(), _table.c.provider_account)
)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that this process may make until `lease`."""

    id: int
    provider_account: str
    day: Instant
    lease: Instant


@dataclass(frozen=True, slots=True)
class Run:
    """A row of `reconciliation_runs`. `found`: the differences that were kept, as JSON."""

    provider_account: str
    day: Instant
    due_at: Instant | None
    attempts: int
    started_at: Instant | None
    finished_at: Instant | None
    lines: int
    matched: int
    differences: int
    found: str
    error: Message | None

    @property
    def details(self) -> list[dict[str, Any]]:
        findings = msgspec.json.decode(self.found, type=list[dict[str, Any]])
        return [{**finding, "note": msgspec.convert(finding["note"], Message | None)} for finding in findings]


@dataclass
class Result:
    """What a run found so far about its day."""

    day: Instant
    lines: int = 0
    matched: int = 0
    differences: int = 0
    findings: list[dict[str, object]] = field(default_factory=list)

    def add(self, finding: Finding) -> bool:
        """Counts a finding about this day; what touches only the day before or after belongs to that day's run. Whether
        it is a difference of this day."""
        at = finding.line.at if finding.line else finding.ours.at if finding.ours else None
        if at is not None and not self.day <= at < self.day + DAY:
            return False
        self.lines += finding.line is not None
        if finding.outcome == MATCHED:
            self.matched += 1
            return False
        self.differences += 1
        if len(self.findings) < KEPT:
            self.findings.append(describe(finding))
        return True


def day_of(at: Instant) -> Instant:
    """The beginning of the UTC day."""
    return earlier(at, at % DAY)


async def add_days(db: Database, provider_account: str, now: Instant) -> None:
    """Makes the rows of this account up to today that do not exist yet."""
    today = day_of(now)
    row = await db.one(_LAST_DAY, provider_account=provider_account)
    first = today if row is None or row[0] is None else max(row[0] + DAY, today - _CATCH_UP * DAY)
    nothing = {"attempts": 0, "started_at": None, "finished_at": None, "lines": 0, "matched": 0, "differences": 0}
    days = [Instant(day) for day in range(first, today + 1, DAY)]
    await db.write_many(
        _INSERT,
        [
            {
                "provider_account": provider_account,
                "day": day,
                "due_at": later(day, DAY + DUE_AFTER),
                **nothing,
                "found": "[]",
                "error": None,
            }
            for day in days
        ],
    )


async def claim(db: Database, accounts: Sequence[str], now: Instant) -> Claimed | None:
    """The run that has been due for longest, leased to this process. Cost: an index range of the due rows."""
    lease = later(now, LEASE)
    row = await db.write(_CLAIM, accounts=encode(sorted(accounts)).decode(), now=now, until=lease)
    return None if row is None else Claimed(row[0], row[1], Instant(row[2]), lease)


async def finish(db: Database, run: Claimed, result: Result, now: Instant) -> None:
    """Keeps the result, unless another process took the run over."""
    again = result.differences and later(now, REPEAT_DIFFERENT) < run.day + _REPEATED_FOR
    await db.write(
        _FINISH,
        run_id=run.id,
        lease=run.lease,
        next_due_at=later(now, REPEAT_DIFFERENT) if again else None,
        finished_at=now,
        lines=result.lines,
        matched=result.matched,
        differences=result.differences,
        found=encode(result.findings).decode(),
    )


async def fail(db: Database, run: Claimed, error: Answer, now: Instant) -> None:
    """Keeps why the run could not be made, and when it is tried again."""
    again = later(now, RETRY_UNREADABLE)
    await db.write(
        _FAIL,
        run_id=run.id,
        lease=run.lease,
        next_due_at=again if again < run.day + _TRIED_FOR else None,
        error=encode_message(verbatim(shortened(error, 500))),
    )


async def recent_runs(db: Database, now: Instant, days: int = SHOWN_DAYS) -> list[Run]:
    """The runs of the latest `days`, the newest day first. Cost: the rows of those days, one for each account."""
    return [
        Run(*[*row, decode(error)]) for *row, error in await db.scan(_RECENT, since=earlier(day_of(now), days * DAY))
    ]


def describe(finding: Finding) -> dict[str, object]:
    """A finding as a run keeps it; commands print it in JSON with the sentence of its note."""
    line, subject = finding.line, finding.ours
    return {
        "result": finding.outcome,
        "note": finding.note,
        "type": line.kind if line else subject.kind if subject else None,
        "ours": subject
        and {
            "reference": subject.reference,
            "merchant_id": subject.merchant_id,
            "status": subject.status,
            "amount": number(subject.amount),
            "currency": subject.currency,
        },
        "theirs": line
        and {
            "line": line.number,
            "references": list(line.references),
            "status": line.status,
            "amount": None if line.amount is None else number(line.amount),
            "currency": line.currency,
            "date": None if line.at is None else iso(line.at),
        },
    }
