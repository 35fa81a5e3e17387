"""What the staff must know about, each found by an index: `guichet doctor` and `/metrics` show it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Executable, Table, bindparam, case, func, literal_column, select

from guichet.clock import DAY, HOUR, MINUTE, Instant, earlier, later
from guichet.db.engine import Database
from guichet.db.ids_by_date import IdsByDate
from guichet.db.sql_functions import json_texts
from guichet.db.tables import (
    api_keys,
    incidents,
    merchants,
    payments,
    postings,
    refunds,
    unmatched_callbacks,
    webhook_deliveries,
)
from guichet.domain.ids import ApiKeyId, MerchantId
from guichet.domain.merchants import Environment
from guichet.ledger.hash_chain import chain_head

#: A live payment or refund that is pending for this long is stuck: customers answer within minutes.
STUCK_AFTER: Final = HOUR
#: Work that has been due for this long is not being done.
LATE_AFTER: Final = 5 * MINUTE
#: Postings of this age are in the hash chain if a worker runs.
UNCHAINED_AFTER: Final = 15 * MINUTE
EXPIRING_WITHIN: Final = 30 * DAY
#: Written out in the statement: a plan made once for all parameters may then use the partial indexes too.
PENDING: Final[ColumnElement[str]] = literal_column("'pending'")
_FAILING_SINCE: Final = DAY
_MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Stuck:
    """Pending for too long, by operator; `oldest` is when it was made."""

    noun: str
    operator: str
    count: int
    oldest: Instant


@dataclass(frozen=True, slots=True)
class Due:
    """A queue: how much of it is due, and since when the oldest piece is (None: nothing is)."""

    queue: str
    count: int
    since: Instant | None


@dataclass(frozen=True, slots=True)
class Late:
    """A queue whose work has been due for too long; `since`: when the oldest piece was."""

    queue: str
    count: int
    since: Instant


@dataclass(frozen=True, slots=True)
class Failing:
    """A destination of webhooks within a day: deliveries abandoned, being tried again, and delivered."""

    merchant_id: MerchantId
    env: Environment
    destination: str
    abandoned: int
    retrying: int
    delivered: int


@dataclass(frozen=True, slots=True)
class FailingRoute:
    """A provider account within a day: live payments that failed for no reason of the customer's, and succeeded."""

    provider_account: str
    operator: str
    failed: int
    succeeded: int


@dataclass(frozen=True, slots=True)
class Expiring:
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


_STUCK: Final = {
    "payment": _pending_since(payments, payments.c.operator),
    "refund": _pending_since(refunds, payments.c.operator),
}
_QUEUES: Final = {
    "polling": _due_since(payments, payments.c.next_poll_at),
    "refunds": _due_since(refunds, refunds.c.next_poll_at),
    "deliveries": _due_since(webhook_deliveries, webhook_deliveries.c.next_attempt_at),
}
_NOUNS: Final = {
    "polling": "payments to poll",
    "refunds": "refunds",
    "deliveries": "webhook deliveries",
}


def _number(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0))


_ABANDONED: Final = _number(webhook_deliveries.c.status == "failed")
_RETRYING: Final = _number(
    (webhook_deliveries.c.status == "pending") & webhook_deliveries.c.last_attempt_at.is_not(None)
)
_TARGET: Final = (webhook_deliveries.c.merchant_id, webhook_deliveries.c.env, webhook_deliveries.c.destination)
_FAILING: Final = (
    select(*_TARGET, _ABANDONED, _RETRYING, _number(webhook_deliveries.c.status == "success"))
    .where(webhook_deliveries.c.id >= bindparam("first"))
    .group_by(*_TARGET)
    .having(_ABANDONED + _RETRYING > 0)
    .order_by(_ABANDONED.desc(), *_TARGET)
    .limit(_MOST)
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
_OF_THE_ROUTE: Final = _number(
    (payments.c.status == "failed") & payments.c.failure_reason.bool_op("IN")(json_texts(bindparam("reasons")))
)
_FAILING_ROUTES: Final = (
    select(*_ROUTE, _OF_THE_ROUTE, _number((payments.c.status == "succeeded") | (payments.c.status == "refunded")))
    .where(payments.c.id >= bindparam("first"), payments.c.env == "live")
    .group_by(*_ROUTE)
    .having(_OF_THE_ROUTE > 0)
    .order_by(_OF_THE_ROUTE.desc(), *_ROUTE)
    .limit(_MOST)
)
_INCIDENTS: Final = (
    select(incidents.c.kind, func.count(), func.min(incidents.c.opened_at))
    .where(incidents.c.closed_at.is_(None))
    .group_by(incidents.c.kind)
    .order_by(incidents.c.kind)
)
_STRAYS: Final = (
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


async def stuck(db: Database, now: Instant) -> list[Stuck]:
    """Live payments and refunds. Cost: the pending rows."""
    before = earlier(now, STUCK_AFTER)
    return [Stuck(noun, *row) for noun, query in _STUCK.items() for row in await db.scan(query, before=before)]


async def due(db: Database, now: Instant) -> list[Due]:
    """Every queue. Cost: the due rows."""
    return [Due(queue, *(await db.scan(query, before=now))[0]) for queue, query in _QUEUES.items()]


async def late(db: Database, now: Instant) -> list[Late]:
    """Queues that nobody works off. Cost: the due rows."""
    found = await due(db, earlier(now, LATE_AFTER))
    return [Late(_NOUNS[each.queue], each.count, each.since) for each in found if each.since is not None]


async def failing(db: Database, now: Instant) -> list[Failing]:
    """Destinations that answered badly within a day, the worst first. Cost: the deliveries of that day."""
    first = await _DELIVERIES.first_at(db, earlier(now, _FAILING_SINCE))
    return [Failing(*row[:3], *map(int, row[3:])) for row in await db.scan(_FAILING, first=first)]


async def failing_routes(db: Database, now: Instant, reasons: Iterable[str]) -> list[FailingRoute]:
    """Connections over which live payments failed for one of `reasons` within a day. Cost: the payments of that day."""
    first = await _PAYMENTS.first_at(db, earlier(now, _FAILING_SINCE))
    rows = await db.scan(_FAILING_ROUTES, first=first, reasons=json.dumps(sorted(reasons)))
    return [FailingRoute(row[0], row[1], int(row[2]), int(row[3])) for row in rows]


async def expiring(db: Database, now: Instant) -> list[Expiring]:
    """Keys that stop working within 30 days, the next first."""
    return [Expiring(*row) for row in await db.scan(_EXPIRING, now=now, before=later(now, EXPIRING_WITHIN))]


async def open_incidents(db: Database) -> list[tuple[str, int, Instant]]:
    """(kind, how many are open, since when the oldest)."""
    return [tuple(row) for row in await db.scan(_INCIDENTS)]


async def unmatched_callbacks_since(db: Database, now: Instant) -> int:
    """Notifications of the last day that match nothing."""
    return int((await db.scan(_STRAYS, since=earlier(now, DAY)))[0][0])


async def first_unchained(db: Database) -> tuple[int, Instant] | None:
    """The id and date of the first posting that is not in the hash chain yet; None when there is none."""
    chained, _ = await chain_head(db)
    row = await db.one(_UNCHAINED, chained=chained)
    return None if row is None else (row[0], row[1])


async def overdue_for_hash_chain(db: Database, now: Instant) -> tuple[int, Instant] | None:
    """The first posting that should have been added to the hash chain long ago (id, date); None when there is none."""
    found = await first_unchained(db)
    return found if found is not None and found[1] <= now - UNCHAINED_AFTER else None
