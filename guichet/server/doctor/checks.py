"""The checks of `guichet doctor`, which the back office shows too: what a person must look into."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from guichet.back_office import provider_balances
from guichet.chain_heads import PUBLISH_EVERY, REPEATED_AFTER, TURN, current_heads, last_published
from guichet.clock import DAY, HOUR, MINUTE, Instant, earlier, iso, later
from guichet.db.engine import Database
from guichet.db.worker_leases import turn_ends_at
from guichet.domain.messages import Amount
from guichet.domain.money import plain
from guichet.domain.records import described
from guichet.ledger.last_audit import last_audit
from guichet.server import health_checks
from guichet.server.doctor.check import DoctorCheck, DoctorProblem, age
from guichet.server.doctor.providers import availability, reconciliation
from guichet.server.health_checks import LATE_AFTER, QUEUE_NAMES

#: Reasons for which a live payment fails through no fault of its customer (keys of `domain/failures.py`'s
#: REFUSAL_REASONS).
_ROUTE_FAILURES: Final = ("configuration", "not_connected", "operator_unavailable")
#: The balances with the providers must be read this often; the worker tries every five minutes.
_BALANCES_EVERY: Final = HOUR
#: The ledger must be audited this often.
_AUDIT_EVERY: Final = 7 * DAY
#: The heads must leave the machine this often; the worker repeats them every hour.
_HEADS_EVERY: Final = 2 * REPEATED_AFTER
#: The first heads must have left this long after a worker began with them.
_FIRST_HEADS_WITHIN: Final = MINUTE


async def of_the_service(db: Database, now: Instant) -> AsyncIterator[DoctorCheck]:
    """One after the other, so that whoever must not wait for all of them has the first ones."""
    for check in _CHECKS:
        yield await check(db, now)


async def _stuck(db: Database, now: Instant) -> DoctorCheck:
    stuck = await health_checks.stuck_subjects(db, now)
    return DoctorCheck(
        "stuck payments and refunds",
        [
            DoctorProblem.PENDING(
                count=group.count,
                subjects=f"{group.subject_type}s",
                operator=group.operator,
                age=age(group.oldest_at, now),
            )
            for group in stuck
        ],
        [described(group, ("type", "operator", "count", "oldest_at"), type=group.subject_type) for group in stuck],
    )


async def _queues(db: Database, now: Instant) -> DoctorCheck:
    due = await health_checks.due_jobs(db, earlier(now, LATE_AFTER))
    late = [(QUEUE_NAMES[jobs.queue], jobs.count, jobs.due_since) for jobs in due if jobs.due_since is not None]
    return DoctorCheck(
        "queues",
        [DoctorProblem.QUEUE_LATE(count=count, queue=queue, age=age(since, now)) for queue, count, since in late],
        [{"queue": queue, "count": count, "due_since": iso(since)} for queue, count, since in late],
    )


async def _routes(db: Database, now: Instant) -> DoctorCheck:
    routes = await health_checks.failing_routes(db, now, _ROUTE_FAILURES)
    return DoctorCheck(
        "routes",
        [
            DoctorProblem.ROUTE_FAILS(
                failed=route.failed, operator=route.operator, account=route.provider_account, succeeded=route.succeeded
            )
            for route in routes
        ],
        [described(route, ("provider_account", "operator", "failed", "succeeded")) for route in routes],
    )


async def _endpoints(db: Database, now: Instant) -> DoctorCheck:
    endpoints = await health_checks.failing_endpoints(db, now)
    columns = ("merchant_id", "env", "destination", "abandoned", "retrying", "delivered")
    return DoctorCheck(
        "webhook endpoints",
        [
            DoctorProblem.ENDPOINT_FAILS(
                destination=endpoint.destination,
                merchant=endpoint.merchant_id,
                name=endpoint.merchant,
                env=endpoint.env,
                abandoned=endpoint.abandoned,
                retrying=endpoint.retrying,
                delivered=endpoint.delivered,
            )
            for endpoint in endpoints
        ],
        [described(endpoint, columns) for endpoint in endpoints],
    )


async def _keys(db: Database, now: Instant) -> DoctorCheck:
    keys = await health_checks.expiring_keys(db, now)
    return DoctorCheck(
        "API keys",
        [
            DoctorProblem.KEY_EXPIRES(
                key=key.key_id,
                env=key.env,
                merchant=key.merchant_id,
                name=key.merchant,
                age=age(now, key.expires_at),
            )
            for key in keys
        ],
        [described(key, ("key_id", "merchant_id", "env", "expires_at")) for key in keys],
    )


async def _incidents(db: Database, now: Instant) -> DoctorCheck:
    incidents = await health_checks.open_incidents(db)
    unmatched_callbacks = await health_checks.unmatched_callbacks_since(db, now)
    problems = [
        DoctorProblem.INCIDENTS(count=count, incident=kind, age=age(since, now)) for kind, count, since in incidents
    ]
    if unmatched_callbacks:
        problems.append(DoctorProblem.CALLBACKS_UNMATCHED(count=unmatched_callbacks))
    rows: list[dict[str, object]] = [
        {"kind": kind, "count": count, "oldest_at": iso(since)} for kind, count, since in incidents
    ]
    return DoctorCheck(
        "incidents",
        problems,
        rows + ([{"kind": "unmatched_callbacks", "count": unmatched_callbacks}] if unmatched_callbacks else []),
    )


async def _floats(db: Database, now: Instant) -> DoctorCheck:
    low = [balance for balance in await provider_balances.stored(db) if balance.is_low]
    reads = await provider_balances.reads(db)
    unread = [read for read in reads if read.error and now - (read.read_at or 0) > _BALANCES_EVERY]
    problems = [
        DoctorProblem.BALANCE_LOW(
            balance=Amount(balance.amount, balance.currency),
            wallet=f"{balance.provider_account} {balance.wallet}".rstrip(),
            bound=Amount(balance.alert_below or 0),
        )
        for balance in low
    ]
    problems += [
        DoctorProblem.BALANCE_UNREAD(account=read.provider_account, answer=read.error or "") for read in unread
    ]
    columns = ("provider_account", "wallet", "balance", "currency")
    rows = [described(balance, columns, balance=plain(balance.amount)) for balance in low]
    return DoctorCheck(
        "balances with providers", problems, rows + [{"provider_account": read.provider_account} for read in unread]
    )


async def _hash_chain(db: Database, now: Instant) -> DoctorCheck:
    overdue = await health_checks.overdue_for_hash_chain(db, now)
    if overdue is None:
        return DoctorCheck("ledger hash chain", [])
    posting, at = overdue
    problem = DoctorProblem.POSTING_UNCHAINED(posting=posting, age=age(at, now))
    return DoctorCheck("ledger hash chain", [problem], [{"posting_id": posting, "created_at": iso(at)}])


async def _audit(db: Database, now: Instant) -> DoctorCheck:
    last = await last_audit(db)
    if last is None:
        return DoctorCheck("ledger audit", [DoctorProblem.NEVER_AUDITED()])
    result = {"clean": last.fault is None, "fault": last.fault and str(last.fault)}
    row = described(last, ("finished_at", "clean", "fault", "head"), **result)
    if last.fault is not None:
        problem = DoctorProblem.AUDIT_FAULT(age=age(last.finished_at, now), audit_fault=last.fault)
        return DoctorCheck("ledger audit", [problem], [row])
    if last.finished_at < now - _AUDIT_EVERY:
        return DoctorCheck("ledger audit", [DoctorProblem.AUDIT_OLD(age=age(last.finished_at, now))], [row])
    return DoctorCheck("ledger audit", [], [row])


async def _published_heads(db: Database, now: Instant) -> DoctorCheck:
    last = await last_published(db)
    if last.published_at is None:
        heads = await current_heads(db, last.database_id, now)
        overdue = (heads.posting_id or heads.act) and await _first_publication_is_overdue(db, now)
        return DoctorCheck("published heads", [DoctorProblem.HEADS_NEVER_LEFT()] if overdue else [])
    rows = [described(last, ("published_at", "posting_id", "act"))]
    if last.published_at > earlier(now, _HEADS_EVERY):
        return DoctorCheck("published heads", [], rows)
    problem = DoctorProblem.HEADS_OLD(age=age(last.published_at, now))
    return DoctorCheck("published heads", [problem], rows)


async def _first_publication_is_overdue(db: Database, now: Instant) -> bool:
    """Whether a worker has had its turn and published nothing, or none runs at all. Right after an installation or an
    upgrade no worker has had one yet."""
    turn_ends = await turn_ends_at(db, TURN)
    if turn_ends is None:
        return await health_checks.overdue_for_hash_chain(db, now) is not None
    return now > later(earlier(turn_ends, PUBLISH_EVERY), _FIRST_HEADS_WITHIN)


_CHECKS: Final[tuple[Callable[[Database, Instant], Awaitable[DoctorCheck]], ...]] = (
    _stuck,
    _queues,
    _routes,
    _endpoints,
    _keys,
    _incidents,
    _floats,
    _hash_chain,
    _audit,
    _published_heads,
    reconciliation,
    availability,
)
