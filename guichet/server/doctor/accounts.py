"""The check of `guichet doctor` about accounts that left the providers' file while payments over them are pending."""

import asyncio
import tomllib
from collections import Counter
from pathlib import Path

from sqlalchemy import func, select

from guichet.db.engine import Database
from guichet.db.tables import payments, refunds
from guichet.server.doctor.check import DoctorCheck
from guichet.server.doctor.problems import DoctorProblem
from guichet.server.health_checks import PENDING

_COUNTS = [
    select(table.c.provider_account, func.count())
    .where(table.c.env == "live", table.c.status == PENDING, table.c.provider_account.is_not(None))
    .group_by(table.c.provider_account)
    for table in (payments, refunds)
]


async def pending_accounts(db: Database) -> list[tuple[str, int]]:
    """Each account with how many live payments and refunds are pending over it. Reads the pending ones."""
    found: Counter[str] = Counter()
    for counts in _COUNTS:
        for account, count in await db.all(counts):
            found[account] += count
    return sorted(found.items())


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
