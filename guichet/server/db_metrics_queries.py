"""Queries that only `/metrics` needs. Those that `guichet doctor` needs too are in `health_checks.py`."""

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Executable, Table, bindparam, case, func, literal_column, select

from guichet.clock import DAY, HOUR, MINUTE, Instant, earlier
from guichet.db.engine import Database
from guichet.db.tables import payments, refunds, webhook_deliveries
from guichet.domain.merchants import Environment
from guichet.server.health_checks import PENDING, STUCK_AFTER

#: Pending payments and refunds are counted by age: created less than that long ago, and OLDER.
AGES: Final = {"1m": MINUTE, "10m": 10 * MINUTE, "1h": STUCK_AFTER, "1d": DAY, "3d": 3 * DAY}
OLDER: Final = "older"
#: Finished deliveries are counted among this many of the latest deliveries.
_LATEST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Pending:
    """The number of pending payments or refunds of one age (a key of AGES, or OLDER). `operator` is empty for
    refunds."""

    env: Environment
    operator: str
    age: str
    count: int


def _by_age(table: Table, operator: Any) -> Executable:
    age = case(*((table.c.created_at > bindparam(f"age_{name}"), name) for name in AGES), else_=OLDER)
    rows = select(table.c.env, operator.label("operator"), age.label("age")).where(table.c.status == PENDING)
    each = rows.subquery()
    by = (each.c.env, each.c.operator, each.c.age)
    return select(*by, func.count()).group_by(*by)


_PENDING: Final = {
    "payments": _by_age(payments, payments.c.operator),
    "refunds": _by_age(refunds, literal_column("''")),
}
_NEVER_ANSWERED: Final = webhook_deliveries.c.last_attempt_at.is_(None)
_UNDELIVERED: Final = (
    select(_NEVER_ANSWERED, func.count()).where(webhook_deliveries.c.status == PENDING).group_by(_NEVER_ANSWERED)
)
_ENDED: Final = (
    select(webhook_deliveries.c.status, func.count())
    .where(
        webhook_deliveries.c.id > select(func.max(webhook_deliveries.c.id)).scalar_subquery() - _LATEST,
        webhook_deliveries.c.created_at >= bindparam("since"),
        webhook_deliveries.c.status != "pending",
    )
    .group_by(webhook_deliveries.c.status)
)


async def pending(db: Database, what: str, now: Instant) -> list[Pending]:
    """Pending `payments` or `refunds` by age, of both environments. Reads the pending rows."""
    bounds = {f"age_{name}": earlier(now, age) for name, age in AGES.items()}
    return [Pending(*row) for row in await db.scan(_PENDING[what], **bounds)]


async def delivery_states(db: Database, now: Instant) -> dict[str, int]:
    """The number of deliveries by state: all that are `waiting` for their first attempt or `retrying`; `success` and
    `failed` among the latest 10 000 created within the last hour. Reads the pending rows, and those 10 000.
    """
    states = dict.fromkeys(("waiting", "retrying", "success", "failed"), 0)
    for never_answered, count in await db.scan(_UNDELIVERED):
        states["waiting" if never_answered else "retrying"] = count
    states.update((status, count) for status, count in await db.scan(_ENDED, since=earlier(now, HOUR)))
    return states
