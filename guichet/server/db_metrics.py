"""Metrics that are read from the database when `/metrics` is scraped.

A read is reused for at least three seconds, and for twenty times as long as it took, so that scrapes use the database
for a twentieth of the time at most.

Queries that `guichet doctor` needs too are in `health_checks.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import Executable, Table, bindparam, case, func, literal_column, select

from guichet.availability import availabilities
from guichet.back_office import provider_balances
from guichet.chain_heads import last_published
from guichet.clock import DAY, HOUR, MINUTE, SECOND, Clock, Instant, earlier
from guichet.db.engine import Database
from guichet.db.postgres.replication import replication
from guichet.db.tables import payments, refunds, webhook_deliveries
from guichet.domain.availability import OperatorState
from guichet.domain.merchants import Environment
from guichet.domain.records import Record
from guichet.incidents.repository import KINDS
from guichet.ledger.last_audit import last_audit
from guichet.logs import log
from guichet.server import health_checks
from guichet.server.health_checks import PENDING, STUCK_AFTER
from guichet.server.reconciliation_checks import reconciled_accounts
from guichet.server.replication_metrics import replication_families

#: Pending payments and refunds are counted by age: created less than that long ago, and OLDER.
AGES: Final = {"1m": MINUTE, "10m": 10 * MINUTE, "1h": STUCK_AFTER, "1d": DAY, "3d": 3 * DAY}
OLDER: Final = "older"
#: Finished deliveries are counted among this many of the latest deliveries.
_LATEST: Final = 10_000


class Pending(Record, frozen=True):
    """The number of pending payments or refunds of one age (a key of AGES, or OLDER). `operator` is empty for
    refunds."""

    env: Environment
    operator: str
    age: str
    count: int


def _by_age(table: Table, operator: Any) -> Executable:
    age = case(*((table.c.created_at > bindparam(f"age_{name}"), name) for name in AGES), else_=OLDER)
    rows = select(table.c.env, operator.label("operator"), age.label("age")).where(table.c.status == PENDING)
    aged = rows.subquery()
    by = (aged.c.env, aged.c.operator, aged.c.age)
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


async def pending(db: Database, subjects: str, now: Instant) -> list[Pending]:
    """Pending `payments` or `refunds` by age, of both environments. Reads the pending rows."""
    bounds = {f"age_{name}": earlier(now, age) for name, age in AGES.items()}
    return [Pending(*row) for row in await db.scan(_PENDING[subjects], **bounds)]


async def delivery_states(db: Database, now: Instant) -> dict[str, int]:
    """The number of deliveries by state: all that are `waiting` for their first attempt or `retrying`; `success` and
    `failed` among the latest 10 000 created within the last hour. Reads the pending rows, and those 10 000.
    """
    states = dict.fromkeys(("waiting", "retrying", "success", "failed"), 0)
    for never_answered, count in await db.scan(_UNDELIVERED):
        states["waiting" if never_answered else "retrying"] = count
    states.update((status, count) for status, count in await db.scan(_ENDED, since=earlier(now, HOUR)))
    return states


#: Seconds for which a read is reused at least.
FRESH_FOR: Final = 3.0
#: A successful read is reused for this many times as long as it took.
_REUSE_FACTOR: Final = 20
#: Seconds after which a read is abandoned: Prometheus waits ten for its answer.
READ_TIMEOUT: Final = 8.0
_AUDITS: Final = ("clean", "faulty", "never")
_AVAILABILITY: Final[dict[OperatorState, float]] = {"up": 1.0, "degraded": 0.5, "down": 0.0}


class DatabaseMetrics(Collector):
    """A Prometheus collector of what the last `refresh` read. `timeout`: seconds after which a read is abandoned.

    `serving`: the database whose connections are counted; `db` unless given.
    """

    def __init__(
        self, db: Database, clock: Clock, timeout: float = READ_TIMEOUT, serving: Database | None = None
    ) -> None:
        self._db = db
        self._serving = serving or db
        self._clock = clock
        self._timeout = timeout
        self._families: list[GaugeMetricFamily] = []
        self._stale_at = 0.0
        self._refreshing = asyncio.Lock()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self._families

    async def refresh(self) -> None:
        """Reads the metrics unless the last read is still fresh. Concurrent scrapes share one read.

        Raises nothing: if the database fails, `guichet_database_up` is 0.
        """
        async with self._refreshing:
            loop = asyncio.get_running_loop()
            started_at = loop.time()
            if started_at < self._stale_at:
                return
            try:
                async with asyncio.timeout(self._timeout):
                    families = [family async for family in _read(self._db, self._clock.now())]
                up = True
            except Exception as error:  # `/metrics` must still show the counters of the process.
                log.warning("metrics.database", error=repr(error))
                families, up = [], False
            took = loop.time() - started_at
            self._families = [*families, *_metrics_of_the_read(self._serving, up=up, took=took)]
            # Repeat a failed read soon: it may have waited for seconds, and reusing it for twenty times as long would
            # show the database as down long after it is back.
            self._stale_at = loop.time() + (max(FRESH_FOR, _REUSE_FACTOR * took) if up else FRESH_FOR)


def _metrics_of_the_read(db: Database, *, up: bool, took: float) -> Iterator[GaugeMetricFamily]:
    """The metrics about the read itself and, on PostgreSQL, about the pools of connections."""
    yield GaugeMetricFamily("guichet_database_up", "1 if the last read of these metrics succeeded, else 0.", float(up))
    yield GaugeMetricFamily("guichet_database_read_seconds", "Seconds that the last read took.", took)
    if pools := db.pool_use():
        used = GaugeMetricFamily(
            "guichet_database_connections_used",
            "Database connections of this process in use (PostgreSQL), by what they are for: read, write.",
            labels=("pool",),
        )
        most = GaugeMetricFamily(
            "guichet_database_connections_max", "Most database connections of this process.", labels=("pool",)
        )
        for name, pool in pools.items():
            used.add_metric((name,), pool.used)
            most.add_metric((name,), pool.most)
        yield from (used, most)


async def _read(db: Database, now: Instant) -> AsyncIterator[GaugeMetricFamily]:
    if db.pool_use():  # PostgreSQL.
        for family in replication_families(await replication(db)):
            yield family
    for read in (_pending, _queues, _ledger, _incidents, _floats, _reconciliation, _availability):
        for family in await read(db, now):
            yield family


async def _pending(db: Database, now: Instant) -> list[GaugeMetricFamily]:
    payments = GaugeMetricFamily(
        "guichet_payments_pending",
        f"Pending payments by age: created less than that long ago, or {OLDER}.",
        labels=("env", "operator", "age"),
    )
    refunds = GaugeMetricFamily("guichet_refunds_pending", "Pending refunds by age.", labels=("env", "age"))
    for group in await pending(db, "payments", now):
        payments.add_metric((group.env, group.operator, group.age), group.count)
    for group in await pending(db, "refunds", now):
        refunds.add_metric((group.env, group.age), group.count)
    return [payments, refunds]


async def _queues(db: Database, now: Instant) -> list[GaugeMetricFamily]:
    states = GaugeMetricFamily(
        "guichet_deliveries",
        "Webhook deliveries: all that are waiting or retrying; success and failed among the latest 10 000 created"
        " within the last hour.",
        labels=("state",),
    )
    due = GaugeMetricFamily("guichet_queue_due", "Jobs of each queue that are due now.", labels=("queue",))
    lag = GaugeMetricFamily("guichet_queue_lag_seconds", "How long the oldest of them has been due.", labels=("queue",))
    for state, count in (await delivery_states(db, now)).items():
        states.add_metric((state,), count)
    for jobs in await health_checks.due_jobs(db, now):
        due.add_metric((jobs.queue,), jobs.count)
        lag.add_metric((jobs.queue,), 0 if jobs.due_since is None else _seconds(jobs.due_since, now))
    return [states, due, lag]


async def _ledger(db: Database, now: Instant) -> list[GaugeMetricFamily]:
    state = GaugeMetricFamily(
        "guichet_ledger_audit_state", "1 for the result of the last audit, else 0.", labels=("state",)
    )
    age = GaugeMetricFamily(
        "guichet_ledger_audit_age_seconds", "How long ago the last audit ended; absent before the first one."
    )
    last = await last_audit(db)
    last_result = "never" if last is None else "clean" if last.fault is None else "faulty"
    for result in _AUDITS:
        state.add_metric((result,), result == last_result)
    if last is not None:
        age.add_metric((), _seconds(last.finished_at, now))
    unchained = await health_checks.first_unchained(db)
    lag = GaugeMetricFamily(
        "guichet_ledger_hash_chain_lag_seconds",
        "Age of the oldest posting that is not in the hash chain yet; about two minutes is normal.",
        0 if unchained is None else _seconds(unchained[1], now),
    )
    published = GaugeMetricFamily(
        "guichet_ledger_head_age_seconds",
        "How long ago the heads of the hash chains left the machine; absent before the first time.",
    )
    if (published_at := (await last_published(db)).published_at) is not None:
        published.add_metric((), _seconds(published_at, now))
    return [state, age, lag, published]


async def _incidents(db: Database, now: Instant) -> list[GaugeMetricFamily]:
    incidents = GaugeMetricFamily("guichet_incidents_open", "Open live incidents, by kind.", labels=("kind",))
    counts = {kind: count for kind, count, _ in await health_checks.open_incidents(db)}
    for kind in sorted({*KINDS, *counts}):
        incidents.add_metric((kind,), counts.get(kind, 0))
    unmatched_callbacks = GaugeMetricFamily(
        "guichet_unmatched_callbacks",
        "Callbacks of the last day that match no payment or refund.",
        await health_checks.unmatched_callbacks_since(db, now),
    )
    return [incidents, unmatched_callbacks]


async def _floats(db: Database, now: Instant) -> list[GaugeMetricFamily]:
    labels = ("provider_account", "wallet", "currency")
    balance = GaugeMetricFamily(
        "guichet_float_balance", "Our balance with a provider as it was read last, in main units.", labels=labels
    )
    alert_below = GaugeMetricFamily(
        "guichet_float_alert_below", "The balance below which the providers' file wants an alert.", labels=labels
    )
    age = GaugeMetricFamily(
        "guichet_float_age_seconds", "How long ago the balances were read.", labels=("provider_account",)
    )
    for stored in await provider_balances.stored(db):
        values = (stored.provider_account, stored.wallet, stored.currency)
        balance.add_metric(values, stored.amount / 100)
        if stored.alert_below is not None:
            alert_below.add_metric(values, stored.alert_below / 100)
    for read in await provider_balances.reads(db):
        if read.read_at is not None:
            age.add_metric((read.provider_account,), _seconds(read.read_at, now))
    return [balance, alert_below, age]


async def _reconciliation(db: Database, now: Instant) -> list[GaugeMetricFamily]:
    differences = GaugeMetricFamily(
        "guichet_reconciliation_differences",
        "Differences between a provider's history and our ledger, in the days of the last week.",
        labels=("provider_account",),
    )
    age = GaugeMetricFamily(
        "guichet_reconciliation_age_seconds",
        "Time since the end of the latest day that was compared; a day and four hours is normal.",
        labels=("provider_account",),
    )
    for account in await reconciled_accounts(db, now):
        differences.add_metric((account.provider_account,), account.differences)
        age.add_metric((account.provider_account,), _seconds(account.compared_until, now))
    return [differences, age]


async def _availability(db: Database, now: Instant) -> list[GaugeMetricFamily]:
    states = GaugeMetricFamily(
        "guichet_operator_availability",
        "Live payments by each operator: 1 up, 0.5 degraded, 0 down, by technical failures of the last hour at most.",
        labels=("operator",),
    )
    for row in await availabilities(db):
        states.add_metric((row.operator,), _AVAILABILITY[row.state])
    return [states]


def _seconds(since: Instant, now: Instant) -> float:
    return max(0, now - since) / SECOND
