"""The state of the daily comparisons with providers, for `guichet doctor` and `/metrics`."""

from typing import Final

from guichet.clock import DAY, HOUR, Instant, later
from guichet.db.engine import Database
from guichet.domain.messages import Message
from guichet.domain.records import Record
from guichet.ledger.reconciliation_runs import DUE_AFTER, recent_runs

#: Days whose differences count. A person has looked at older ones by then, or never will.
_DAYS: Final = 7
#: A day that was not compared this long after it could have been is late.
_LATE_AFTER: Final = DAY + HOUR


class ReconciledAccount(Record, frozen=True):
    """One account in the last week. `differences`: in the results that stand. `compared_until`: the end of the latest
    day that was compared, or the beginning of the first one if none was. `error`: of the latest attempt."""

    provider_account: str
    differences: int
    compared_until: Instant
    error: Message | None

    def late(self, now: Instant) -> bool:
        return now > later(self.compared_until, DAY + DUE_AFTER + _LATE_AFTER)


async def reconciled_accounts(db: Database, now: Instant) -> list[ReconciledAccount]:
    """Accounts whose latest day is today or yesterday, by name. Reads the rows of a week, one for each account and day.

    An account that left the providers' file gets no new days, so it is gone from here after two.
    """
    runs = await recent_runs(db, now, _DAYS)
    accounts = []
    for account in sorted({run.provider_account for run in runs}):
        account_runs = [run for run in runs if run.provider_account == account]
        if account_runs[0].day + 2 * DAY <= now:
            continue
        compared = [later(run.day, DAY) for run in account_runs if run.finished_at is not None]
        errors = [run.error for run in account_runs if run.error is not None]
        accounts.append(
            ReconciledAccount(
                account,
                sum(run.differences for run in account_runs),
                max(compared, default=account_runs[-1].day),
                errors[0] if errors else None,
            )
        )
    return accounts
