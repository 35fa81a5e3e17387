"""Health checks: queries for problems that the staff must look into. `guichet doctor` and `/metrics` show the results.

Every query uses an index, and its docstring says how many rows it reads.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import ColumnElement, Executable, Table, bindparam, case, func, literal_column, select

from guichet.clock import DAY, HOUR, MINUTE, Instant, earlier, later
from guichet.db.engine import Database
from guichet.db.lists.ids_by_date import IdsByDate
from guichet.db.sql_functions import is_listed
from guichet.db.tables import (
    api_keys,
    incidents,
    merchants,
    payments,
    postings,
    provider_callbacks,
    refunds,
    unmatched_callbacks,
    webhook_deliveries,
)
from guichet.domain.ids import ApiKeyId, MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.payments import SubjectType
from guichet.domain.records import Record
from guichet.ledger.hash_chain import chain_head

#: A live payment or refund that has been pending for this long is stuck: customers confirm within minutes.
STUCK_AFTER: Final = HOUR
#: A queue is late when its oldest job has been due for this long.
LATE_AFTER: Final = 5 * MINUTE
#: While a worker runs, postings of this age are in the hash chain.
UNCHAINED_AFTER: Final = 15 * MINUTE
EXPIRING_WITHIN: Final = 30 * DAY
#: A literal and not a parameter: only then can a generic plan use the partial indexes on pending rows.
PENDING: Final[ColumnElement[str]] = literal_column("'pending'")
_FAILING_SINCE: Final = DAY
#: Deliveries of that day that are read: the newest.
_MOST_READ: Final = 200_000
_MOST: Final = 100


class StuckSubjects(Record, frozen=True):
    """Live payments or refunds of one operator that have been pending for too long."""

    subject_type: SubjectType
    operator: str
    count: int
    oldest_at: Instant


class DueJobs(Record, frozen=True):
    """How many jobs of a queue are due, and since when the oldest of them (None: no job is due)."""

    queue: str
    count: int
    due_since: Instant | None


class FailingEndpoint(Record, frozen=True):
    """A destination of webhooks, and its deliveries of the last day: abandoned, being retried, delivered. `merchant` is
    the merchant's name."""

    merchant_id: MerchantId
    merchant: str
    env: Environment
    destination: str
    abandoned: int
    retrying: int
    delivered: int


class FailingRoute(Record, frozen=True):
    """One operator at one provider account, and its live payments of the last day: how many failed through no fault of
    the customer, and how many succeeded."""

    provider_account: str
    operator: str
    failed: int
    succeeded: int


class ExpiringKey(Record, frozen=True):
    """An API key that stops working soon. `merchant` is the merchant's name."""

    key_id: ApiKeyId
    merchant_id: MerchantId
    merchant: str
    env: Environment
    expires_at: Instant


def _pending_since(table: Table, operator: Any) -> Executable:
    chosen = select(operator, func.count(), func.min(table.c.created_at))
    if table is refunds:
        chosen = chosen.select_from(refunds).join(payments, payments.c.id == refunds.c.payment_id)
    return (
        chosen.where(table.c.status == "pending", table.c.env == "live", table.c.created_at <= bindparam("before"))
        .group_by(operator)
        .order_by(operator)
    )


def _due_since(table: Table, due: ColumnElement[Any]) -> Executable:
    return select(func.count(), func.min(due)).where(table.c.status == PENDING, due <= bindparam("before"))


_STUCK: Final[dict[SubjectType, Executable]] = {
    "payment": _pending_since(payments, payments.c.operator),
    "refund": _pending_since(refunds, payments.c.operator),
}
_QUEUES: Final = {
    "polling": _due_since(payments, payments.c.next_poll_at),
    "callbacks": _due_since(provider_callbacks, provider_callbacks.c.due_at),
    "refunds": _due_since(refunds, refunds.c.next_poll_at),
    "deliveries": _due_since(webhook_deliveries, webhook_deliveries.c.next_attempt_at),
}
QUEUE_NAMES: Final = {
    "polling": "payments to poll",
    "callbacks": "callbacks to ask about",
    "refunds": "refunds",
    "deliveries": "webhook deliveries",
}


def _count_if(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0))


#: The deliveries of a day, apart from what is asked about them: otherwise SQLite, once it has statistics, reads all of
#: them through an index that has the groups in their order.
_RECENT: Final = (
    select(
        *(webhook_deliveries.c[name] for name in ("merchant_id", "env", "destination", "status", "last_attempt_at")),
    )
    .where(webhook_deliveries.c.id >= bindparam("first"))
    .order_by(webhook_deliveries.c.id.desc())
    .limit(_MOST_READ)
    .subquery()
)
_ABANDONED: Final = _count_if(_RECENT.c.status == "failed")
_RETRYING: Final = _count_if((_RECENT.c.status == "pending") & _RECENT.c.last_attempt_at.is_not(None))
_TARGET: Final = (_RECENT.c.merchant_id, _RECENT.c.env, _RECENT.c.destination)
_WORST: Final = (
    select(
        *_TARGET,
        _ABANDONED.label("abandoned"),
        _RETRYING.label("retrying"),
        _count_if(_RECENT.c.status == "success").label("delivered"),
    )
    .group_by(*_TARGET)
    .having(_ABANDONED + _RETRYING > 0)
    .order_by(_ABANDONED.desc(), *_TARGET)
    .limit(_MOST)
    .subquery()
)
_FAILING: Final = (
    select(
        _WORST.c.merchant_id,
        merchants.c.name,
        *(_WORST.c[name] for name in ("env", "destination", "abandoned", "retrying", "delivered")),
    )
    .join(merchants, merchants.c.id == _WORST.c.merchant_id)
    .order_by(_WORST.c.abandoned.desc(), _WORST.c.merchant_id, _WORST.c.env, _WORST.c.destination)
)
_EXPIRING: Final = (
    select(api_keys.c.id, api_keys.c.merchant_id, merchants.c.name, api_keys.c.env, api_keys.c.expires_at)
    .join(merchants, merchants.c.id == api_keys.c.merchant_id)
    .where(
        api_keys.c.revoked_at.is_(None),
        api_keys.c.expires_at > bindparam("now"),
        api_keys.c.expires_at <= bindparam("before"),
    )
    .order_by(api_keys.c.expires_at)
    .limit(_MOST)
)
_ROUTE: Final = (payments.c.provider_account, payments.c.operator)
_FAILED_BY_ROUTE: Final = _count_if((payments.c.status == "failed") & is_listed(payments.c.failure_reason, "reasons"))
_FAILING_ROUTES: Final = (
    select(*_ROUTE, _FAILED_BY_ROUTE, _count_if((payments.c.status == "succeeded") | (payments.c.status == "refunded")))
    .where(payments.c.id >= bindparam("first"), payments.c.env == "live")
    .group_by(*_ROUTE)
    .having(_FAILED_BY_ROUTE > 0)
    .order_by(_FAILED_BY_ROUTE.desc(), *_ROUTE)
    .limit(_MOST)
)
_INCIDENTS: Final = (
    select(incidents.c.kind, func.count(), func.min(incidents.c.opened_at))
    .where(incidents.c.closed_at.is_(None), incidents.c.env == "live")
    .group_by(incidents.c.kind)
    .order_by(incidents.c.kind)
)
_UNMATCHED: Final = (
    select(func.count()).select_from(unmatched_callbacks).where(unmatched_callbacks.c.received_at >= bindparam("since"))
)
_UNCHAINED: Final = (
    select(postings.c.id, postings.c.created_at)
    .where(postings.c.id > bindparam("chained"))
    .order_by(postings.c.id)
    .limit(1)
)
_DELIVERIES: Final = IdsByDate(webhook_deliveries)
_PAYMENTS: Final = IdsByDate(payments)


async def stuck_subjects(db: Database, now: Instant) -> list[StuckSubjects]:
    """Live payments and refunds that have been pending for an hour, by operator. Reads the pending rows."""
    return [
        StuckSubjects(subject_type, *row)
        for subject_type, query in _STUCK.items()
        for row in await db.scan(query, before=earlier(now, STUCK_AFTER))
    ]


async def due_jobs(db: Database, now: Instant) -> list[DueJobs]:
    """The due jobs of each queue (a key of QUEUE_NAMES). Reads the due rows."""
    return [DueJobs(queue, *(await db.scan(query, before=now))[0]) for queue, query in _QUEUES.items()]


async def failing_endpoints(db: Database, now: Instant) -> list[FailingEndpoint]:
    """Destinations with failed deliveries in the last day, the worst first. Reads the deliveries of that day,
    at most _MOST_READ."""
    first = await _DELIVERIES.first_at(db, earlier(now, _FAILING_SINCE))
    return [FailingEndpoint(*row[:4], *map(int, row[4:])) for row in await db.scan(_FAILING, first=first)]


async def failing_routes(db: Database, now: Instant, reasons: Iterable[str]) -> list[FailingRoute]:
    """Provider accounts at which live payments failed for one of `reasons` in the last day, the worst first.

    Reads the payments of that day.
    """
    first = await _PAYMENTS.first_at(db, earlier(now, _FAILING_SINCE))
    rows = await db.scan(_FAILING_ROUTES, first=first, reasons=json.dumps(sorted(reasons)))
    return [FailingRoute(row[0], row[1], int(row[2]), int(row[3])) for row in rows]


async def expiring_keys(db: Database, now: Instant) -> list[ExpiringKey]:
    """API keys that expire within 30 days, the next one first."""
    return [ExpiringKey(*row) for row in await db.scan(_EXPIRING, now=now, before=later(now, EXPIRING_WITHIN))]


async def open_incidents(db: Database) -> list[tuple[str, int, Instant]]:
    """For each kind: (kind, number of open live incidents, when the oldest was opened)."""
    return [tuple(row) for row in await db.scan(_INCIDENTS)]


async def unmatched_callbacks_since(db: Database, now: Instant) -> int:
    """Number of callbacks of the last day that match no payment or refund."""
    return int((await db.scan(_UNMATCHED, since=earlier(now, DAY)))[0][0])


async def first_unchained(db: Database) -> tuple[int, Instant] | None:
    """(id, date) of the first posting that is not in the hash chain yet; None when there is none."""
    chained = (await chain_head(db)).last_posting_id
    row = await db.one(_UNCHAINED, chained=chained)
    return None if row is None else (row[0], row[1])


async def overdue_for_hash_chain(db: Database, now: Instant) -> tuple[int, Instant] | None:
    """(id, date) of the first posting that is 15 minutes old and not in the hash chain yet; None when there is none."""
    oldest = await first_unchained(db)
    return oldest if oldest is not None and oldest[1] <= now - UNCHAINED_AFTER else None
