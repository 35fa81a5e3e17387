"""The checks of `guichet doctor` about providers: the daily comparison, operators that do not work, and accounts that
left the providers' file while payments over them are pending."""

import asyncio
import tomllib
from collections import Counter
from pathlib import Path

from sqlalchemy import func, select

from guichet.availability import availabilities
from guichet.clock import Instant, iso
from guichet.db.engine import Database
from guichet.db.tables import payments, refunds
from guichet.domain.availability import UP
from guichet.domain.messages import Message
from guichet.server.doctor.check import DoctorCheck, DoctorProblem, age
from guichet.server.health_checks import PENDING
from guichet.server.reconciliation_checks import ReconciledAccount, reconciled_accounts

_COUNTS = [
    select(table.c.provider_account, func.count())
    .where(table.c.env == "live", table.c.status == PENDING, table.c.provider_account.is_not(None))
    .group_by(table.c.provider_account)
    for table in (payments, refunds)
]


async def reconciliation(db: Database, now: Instant) -> DoctorCheck:
    accounts = await reconciled_accounts(db, now)
    problems = [
        DoctorProblem.DIFFERENCES(count=account.differences, account=account.provider_account)
        for account in accounts
        if account.differences
    ]
    problems += [_late(account, age(account.compared_until, now)) for account in accounts if account.late(now)]
    rows: list[dict[str, object]] = [
        {
            "provider_account": account.provider_account,
            "differences": account.differences,
            "compared_until": iso(account.compared_until),
            "error": account.error and str(account.error),
        }
        for account in accounts
    ]
    return DoctorCheck("reconciliation", problems, rows)


def _late(account: ReconciledAccount, ago: Message) -> Message:
    if not account.error:
        return DoctorProblem.NOT_COMPARED(account=account.provider_account, age=ago)
    return DoctorProblem.NOT_COMPARABLE(account=account.provider_account, age=ago, answer=account.error)


async def availability(db: Database, now: Instant) -> DoctorCheck:
    rows = await availabilities(db)
    return DoctorCheck(
        "operators",
        [
            DoctorProblem.OPERATOR_STATE(
                operator=row.operator,
                availability=row.state,
                age=age(row.since, now),
                availability_reason=row.reason or "",
            )
            for row in rows
            if row.state != UP
        ],
        [
            {"operator": row.operator, "state": row.state, "since": iso(row.since), "reason": str(row.reason or "")}
            for row in rows
        ],
    )


async def pending_accounts(db: Database) -> list[tuple[str, int]]:
    """Each account with how many live payments and refunds are pending over it. Reads the pending ones."""
    pending: Counter[str] = Counter()
    for counts in _COUNTS:
        for account, count in await db.all(counts):
            pending[account] += count
    return sorted(pending.items())


async def accounts_in_use(db: Database, providers_file: Path | None) -> DoctorCheck:
    """A warning for each account that is not in the file. No secret is needed: only names are read."""
    name = "accounts in use"
    if providers_file is None:
        return DoctorCheck(name, [])
    try:
        text = await asyncio.to_thread(providers_file.read_text, encoding="utf-8")
        known = tomllib.loads(text).get("accounts", {})
    except (OSError, ValueError):  # `check-config` says what is wrong with it.
        return DoctorCheck(name, [])
    missing = [(account, count) for account, count in await pending_accounts(db) if account not in known]
    return DoctorCheck(
        name,
        [],
        [{"provider_account": account, "pending": count} for account, count in missing],
        warnings=[DoctorProblem.ACCOUNT_MISSING(count=count, account=account) for account, count in missing],
    )
