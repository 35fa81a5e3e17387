"""The checks of `guichet doctor` about providers: the daily comparison, and operators that do not work."""

from guichet.availability import availabilities
from guichet.clock import Instant, iso
from guichet.db.engine import Database
from guichet.domain.availability import UP
from guichet.domain.messages import Message
from guichet.server.doctor.check import DoctorCheck, age
from guichet.server.doctor.problems import DoctorProblem
from guichet.server.reconciliation_checks import ReconciledAccount, reconciled_accounts


async def reconciliation(db: Database, now: Instant) -> DoctorCheck:
    found = await reconciled_accounts(db, now)
    problems = [
        DoctorProblem.DIFFERENCES(count=each.differences, account=each.provider_account)
        for each in found
        if each.differences
    ]
    problems += [_late(each, age(each.compared_until, now)) for each in found if each.late(now)]
    rows: list[dict[str, object]] = [
        {
            "provider_account": each.provider_account,
            "differences": each.differences,
            "compared_until": iso(each.compared_until),
            "error": each.error and str(each.error),
        }
        for each in found
    ]
    return DoctorCheck("reconciliation", problems, rows)


def _late(account: ReconciledAccount, ago: Message) -> Message:
    if not account.error:
        return DoctorProblem.NOT_COMPARED(account=account.provider_account, age=ago)
    return DoctorProblem.NOT_COMPARABLE(account=account.provider_account, age=ago, answer=account.error)


async def availability(db: Database, now: Instant) -> DoctorCheck:
    found = await availabilities(db)
    return DoctorCheck(
        "operators",
        [
            DoctorProblem.OPERATOR_STATE(
                operator=each.operator,
                availability=each.state,
                age=age(each.since, now),
                availability_reason=each.reason or "",
            )
            for each in found
            if each.state != UP
        ],
        [
            {"operator": each.operator, "state": each.state, "since": iso(each.since), "reason": str(each.reason or "")}
            for each in found
        ],
    )
