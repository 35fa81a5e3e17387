"""The audit of the ledger: recomputes everything, step by step, and names the first row of each check that is wrong.

It reads what is committed while the service runs: every comparison is either one statement (which sees one instant) or
stops at a horizon behind which nothing can appear any more. Memory: one figure an account, whatever the number of rows.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, insert, select

from guichet.clock import Clock, Instant
from guichet.db.engine import Database
from guichet.db.tables import ledger_audits
from guichet.ledger.audit.accounts import check_operators, check_waiting, check_wallets, sum_accounts
from guichet.ledger.audit.books import Books
from guichet.ledger.audit.chain import check_chain
from guichet.ledger.audit.subjects import check_homes, check_payments, check_refunds

_RECORD: Final = insert(ledger_audits).values(
    {column.name: bindparam(column.name) for column in ledger_audits.c if column.name != "id"}
)
_LAST: Final = select(ledger_audits).order_by(ledger_audits.c.id.desc()).limit(1)


@dataclass(frozen=True, slots=True)
class Check:
    """`fault`: the first row that is wrong, in one sentence; None when there is none."""

    name: str
    fault: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """`head` is the digest of the last seal (None before the first): note it elsewhere. `owed`: what each operator
    owes, by (env, currency, operator code), in hundredths."""

    started_at: Instant
    finished_at: Instant
    head: str | None
    seals: int
    postings: int
    payments: int
    refunds: int
    checks: tuple[Check, ...]
    owed: dict[tuple[str, str, str], int]

    @property
    def fault(self) -> str | None:
        return next((check.fault for check in self.checks if check.fault), None)


@dataclass(frozen=True, slots=True)
class LastAudit:
    """A row of `ledger_audits`."""

    id: int
    started_at: Instant
    finished_at: Instant
    head: str | None
    postings: int
    payments: int
    refunds: int
    fault: str | None


async def audit(db: Database, clock: Clock, progress: Callable[[str], None], noted: Collection[str] = ()) -> Report:
    """Runs every check, also after a fault, and records the result. `noted`: digests written down at earlier audits."""
    started_at = clock.now()
    books = Books(db, started_at, progress)
    checks: list[Check] = [Check("chain", await check_chain(books, noted))]
    await sum_accounts(books)
    rest: dict[str, Callable[[Books], Awaitable[str | None]]] = {
        "payments": check_payments,
        "refunds": check_refunds,
        "postings": check_homes,
        "waiting credits": check_waiting,
        "wallets": check_wallets,
        "operators": check_operators,
    }
    checks += [Check(name, await check(books)) for name, check in rest.items()]
    report = Report(
        started_at=started_at,
        finished_at=clock.now(),
        head=books.head,
        seals=books.read["seals"],
        postings=books.read["postings"],
        payments=books.read["payments"],
        refunds=books.read["refunds"],
        checks=tuple(checks),
        owed=_owed(books),
    )
    await _record(db, report)
    return report


async def last_audit(db: Database) -> LastAudit | None:
    row = await db.one(_LAST)
    return LastAudit(*row) if row else None


async def _record(db: Database, report: Report) -> None:
    await db.write(
        _RECORD,
        started_at=report.started_at,
        finished_at=report.finished_at,
        head=report.head,
        postings=report.postings,
        payments=report.payments,
        refunds=report.refunds,
        fault=report.fault,
    )


def _owed(books: Books) -> dict[tuple[str, str, str], int]:
    owed: dict[tuple[str, str, str], int] = {}
    for (_, env, currency, account), amount in sorted(books.totals.items()):
        if account.startswith("operator:"):
            key = (env, currency, account.removeprefix("operator:"))
            owed[key] = owed.get(key, 0) - amount
    return owed
