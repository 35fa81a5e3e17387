"""The checks of `guichet doctor`, which the back office shows too: what a person must look into."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from guichet.clock import DAY, HOUR, Instant, earlier, iso
from guichet.db.engine import Database
from guichet.domain.money import plain
from guichet.heads.publication import REPEATED_AFTER
from guichet.heads.published import current_heads, last_published
from guichet.ledger.audit import last_audit
from guichet.payments import provider_balances
from guichet.server import health_checks
from guichet.server.doctor.check import Check, age
from guichet.server.doctor.providers import availability, reconciliation

#: Reasons for which a live payment fails through no fault of its customer (keys of `domain/failures.py`'s
#: REFUSAL_REASONS).
_ROUTE_FAILURES: Final = ("configuration", "not_connected", "operator_unavailable")
#: The balances with the providers must be read this often; the worker tries every five minutes.
_BALANCES_EVERY: Final = HOUR
#: The ledger must be audited this often.
_AUDIT_EVERY: Final = 7 * DAY
#: The heads must leave the machine this often; the worker repeats them every hour.
_HEADS_EVERY: Final = 2 * REPEATED_AFTER


async def of_the_service(db: Database, now: Instant) -> AsyncIterator[Check]:
    """One after the other, so that whoever must not wait for all of them has the first ones."""
    for check in _CHECKS:
        yield await check(db, now)


async def _stuck(db: Database, now: Instant) -> Check:
    found = await health_checks.stuck_subjects(db, now)
    return Check(
        "stuck payments and refunds",
        [
            f"{each.count} live {each.subject_type}s by {each.operator}, pending for up to {age(each.oldest_at, now)}"
            for each in found
        ],
        [
            {
                "type": each.subject_type,
                "operator": each.operator,
                "count": each.count,
                "oldest_at": iso(each.oldest_at),
            }
            for each in found
        ],
    )


async def _queues(db: Database, now: Instant) -> Check:
    found = await health_checks.late_queues(db, now)
    return Check(
        "queues",
        [f"{each.count} {each.queue} late by up to {age(each.due_since, now)}: does a worker run?" for each in found],
        [{"queue": each.queue, "count": each.count, "due_since": iso(each.due_since)} for each in found],
    )


async def _routes(db: Database, now: Instant) -> Check:
    found = await health_checks.failing_routes(db, now, _ROUTE_FAILURES)
    return Check(
        "routes",
        [
            f"{each.failed} live payments by {each.operator} failed over {each.provider_account} in a day through no "
            f"fault of their customers, {each.succeeded} succeeded: `guichet providers check`"
            for each in found
        ],
        [
            {
                "provider_account": each.provider_account,
                "operator": each.operator,
                "failed": each.failed,
                "succeeded": each.succeeded,
            }
            for each in found
        ],
    )


async def _endpoints(db: Database, now: Instant) -> Check:
    found = await health_checks.failing_endpoints(db, now)
    return Check(
        "webhook endpoints",
        [
            f"{each.destination} of merchant {each.merchant_id} ({each.env}): {each.abandoned} given up, "
            f"{each.retrying} being tried again, {each.delivered} delivered in a day"
            for each in found
        ],
        [
            {
                "merchant_id": each.merchant_id,
                "env": each.env,
                "destination": each.destination,
                "abandoned": each.abandoned,
                "retrying": each.retrying,
                "delivered": each.delivered,
            }
            for each in found
        ],
    )


async def _keys(db: Database, now: Instant) -> Check:
    found = await health_checks.expiring_keys(db, now)
    return Check(
        "API keys",
        [
            f"key {each.key_id} ({each.env}) of merchant {each.merchant_id}, {each.merchant}, expires in "
            f"{age(now, each.expires_at)}"
            for each in found
        ],
        [
            {
                "key_id": each.key_id,
                "merchant_id": each.merchant_id,
                "env": each.env,
                "expires_at": iso(each.expires_at),
            }
            for each in found
        ],
    )


async def _incidents(db: Database, now: Instant) -> Check:
    found = await health_checks.open_incidents(db)
    unmatched_callbacks = await health_checks.unmatched_callbacks_since(db, now)
    problems = [
        f"{count} {kind}, the oldest since {age(since, now)}: `guichet incidents`" for kind, count, since in found
    ]
    if unmatched_callbacks:
        problems.append(
            f"{unmatched_callbacks} callbacks of the last day match no payment or refund: `guichet incidents`"
        )
    rows: list[dict[str, object]] = [
        {"kind": kind, "count": count, "oldest_at": iso(since)} for kind, count, since in found
    ]
    return Check(
        "incidents",
        problems,
        rows + ([{"kind": "unmatched_callbacks", "count": unmatched_callbacks}] if unmatched_callbacks else []),
    )


async def _floats(db: Database, now: Instant) -> Check:
    low = [each for each in await provider_balances.stored(db) if each.is_low]
    reads = await provider_balances.reads(db)
    unread = [each for each in reads if each.error and now - (each.read_at or 0) > _BALANCES_EVERY]
    problems = [
        f"{plain(each.amount)} {each.currency} with {each.provider_account} {each.wallet}".rstrip()
        + f", below the bound of {plain(each.alert_below or 0)}: fill it, refunds are paid from it"
        for each in low
    ]
    problems += [f"the balance with {each.provider_account} cannot be read: {each.error}" for each in unread]
    rows: list[dict[str, object]] = [
        {
            "provider_account": each.provider_account,
            "wallet": each.wallet,
            "balance": plain(each.amount),
            "currency": each.currency,
        }
        for each in low
    ]
    return Check(
        "balances with providers", problems, rows + [{"provider_account": each.provider_account} for each in unread]
    )


async def _hash_chain(db: Database, now: Instant) -> Check:
    found = await health_checks.overdue_for_hash_chain(db, now)
    if found is None:
        return Check("ledger hash chain", [])
    posting, at = found
    problem = f"posting {posting} has waited {age(at, now)} to enter the hash chain: does a worker run?"
    return Check("ledger hash chain", [problem], [{"posting_id": posting, "created_at": iso(at)}])


async def _audit(db: Database, now: Instant) -> Check:
    last = await last_audit(db)
    if last is None:
        return Check("ledger audit", ["there has been none yet: `guichet ledger audit`"])
    row = {"finished_at": iso(last.finished_at), "clean": last.fault is None, "fault": last.fault, "head": last.head}
    if last.fault is not None:
        return Check("ledger audit", [f"{age(last.finished_at, now)} ago it found: {last.fault}"], [row])
    if last.finished_at < now - _AUDIT_EVERY:
        return Check("ledger audit", [f"the last one is {age(last.finished_at, now)} old"], [row])
    return Check("ledger audit", [], [row])


async def _published_heads(db: Database, now: Instant) -> Check:
    last = await last_published(db)
    if last.published_at is None:
        heads = await current_heads(db, last.database_id, now)
        never = ["they never left the machine: does a worker run?"] if heads.posting_id or heads.act else []
        return Check("published heads", never)
    rows: list[dict[str, object]] = [
        {"published_at": iso(last.published_at), "posting_id": last.posting_id, "act": last.act}
    ]
    if last.published_at > earlier(now, _HEADS_EVERY):
        return Check("published heads", [], rows)
    problem = f"they last left the machine {age(last.published_at, now)} ago: look for ledger.head_not_published"
    return Check("published heads", [problem], rows)


_CHECKS: Final[tuple[Callable[[Database, Instant], Awaitable[Check]], ...]] = (
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
