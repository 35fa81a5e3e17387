"""The checks of `guichet doctor` about providers: the daily comparison, and operators that do not work."""

from guichet.availability.states import availabilities
from guichet.clock import Instant, iso
from guichet.db.engine import Database
from guichet.domain.availability import UP
from guichet.server.doctor.check import Check, age
from guichet.server.reconciliation_checks import reconciled_accounts


async def reconciliation(db: Database, now: Instant) -> Check:
    found = await reconciled_accounts(db, now)
    problems = [
        f"{each.differences} differences with {each.provider_account} in a week: `guichet reconcile --runs --json`"
        for each in found
        if each.differences
    ]
    problems += [
        f"{each.provider_account} was last compared {age(each.compared_until, now)} ago: "
        f"{each.error or 'does a worker run?'}"
        for each in found
        if each.late(now)
    ]
    rows: list[dict[str, object]] = [
        {
            "provider_account": each.provider_account,
            "differences": each.differences,
            "compared_until": iso(each.compared_until),
            "error": each.error,
        }
        for each in found
    ]
    return Check("reconciliation", problems, rows)


async def availability(db: Database, now: Instant) -> Check:
    found = await availabilities(db)
    return Check(
        "operators",
        [
            f"{each.operator} is {each.state} for {age(each.since, now)}: {each.reason}"
            for each in found
            if each.state != UP
        ],
        [
            {"operator": each.operator, "state": each.state, "since": iso(each.since), "reason": each.reason}
            for each in found
        ],
    )
