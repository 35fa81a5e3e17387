"""The metrics that are read from the database when `/metrics` is scraped: not more often than every few seconds, and,
while the database answers, for a twentieth of the time at most.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from guichet.clock import SECOND, Clock, Instant
from guichet.db.engine import Database
from guichet.ledger.audit import last_audit
from guichet.logs import log
from guichet.payments.incidents import MISMATCH, STUCK
from guichet.server import db_metrics_queries, health_checks

#: What was read is shown again for so many seconds at least, and for so many times as long as reading it took.
FRESH_FOR: Final = 3.0
_REST: Final = 20
#: Seconds after which a read is abandoned: Prometheus waits ten for its answer.
READ_TIMEOUT: Final = 8.0
_KINDS: Final = (MISMATCH, STUCK)
_AUDITS: Final = ("clean", "faulty", "never")

Family = GaugeMetricFamily


class DatabaseMetrics(Collector):
    """A Prometheus collector of what the last `refresh` read. `timeout`: seconds after which a read is abandoned."""

    def __init__(self, db: Database, clock: Clock, timeout: float = READ_TIMEOUT) -> None:
        self._db = db
        self._clock = clock
        self._timeout = timeout
        self._families: list[Family] = []
        self._stale_at = 0.0
        self._refreshing = asyncio.Lock()

    def collect(self) -> Iterator[Family]:
        yield from self._families

    async def refresh(self) -> None:
        """Reads again if the last read is old enough; concurrent scrapes share one read.

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
            except Exception as error:  # The counters of the process are served all the same.
                log.warning("metrics.database", error=repr(error))
                families, up = [], False
            took = loop.time() - started_at
            self._families = [*families, *_read_metrics(self._db, up=up, took=took)]
            # A failed read waited more than it cost: a long rest would show the database as down after it came back.
            self._stale_at = loop.time() + (max(FRESH_FOR, _REST * took) if up else FRESH_FOR)


def _read_metrics(db: Database, *, up: bool, took: float) -> Iterator[Family]:
    yield Family("guichet_database_up", "1 if the last read of these metrics succeeded, else 0.", float(up))
    yield Family("guichet_database_read_seconds", "Seconds that the last read took.", took)
    if (pool := db.pool_use()) is not None:
        used, most = pool
        yield Family(
            "guichet_database_connections_used", "Database connections of this process in use (PostgreSQL).", used
        )
        yield Family("guichet_database_connections_max", "Most database connections of this process.", most)


async def _read(db: Database, now: Instant) -> AsyncIterator[Family]:
    for family in await _pending(db, now):
        yield family
    for family in await _queues(db, now):
        yield family
    for family in await _ledger(db, now):
        yield family
    for family in await _incidents(db, now):
        yield family


async def _pending(db: Database, now: Instant) -> list[Family]:
    payments = Family(
        "guichet_payments_pending",
        f"Pending payments by age: created less than that long ago, or {db_metrics_queries.OLDER}.",
        labels=("env", "operator", "age"),
    )
    refunds = Family("guichet_refunds_pending", "Pending refunds by age.", labels=("env", "age"))
    for each in await db_metrics_queries.pending(db, "payments", now):
        payments.add_metric((each.env, each.operator, each.age), each.count)
    for each in await db_metrics_queries.pending(db, "refunds", now):
        refunds.add_metric((each.env, each.age), each.count)
    return [payments, refunds]


async def _queues(db: Database, now: Instant) -> list[Family]:
    states = Family(
        "guichet_deliveries",
        "Webhook deliveries: all that are waiting or retrying; success and failed among the latest 10 000 created"
        " within the last hour.",
        labels=("state",),
    )
    due = Family("guichet_queue_due", "Jobs of each queue that are due now.", labels=("queue",))
    lag = Family("guichet_queue_lag_seconds", "How long the oldest of them has been due.", labels=("queue",))
    for state, count in (await db_metrics_queries.delivery_states(db, now)).items():
        states.add_metric((state,), count)
    for each in await health_checks.due(db, now):
        due.add_metric((each.queue,), each.count)
        lag.add_metric((each.queue,), 0 if each.since is None else _seconds(each.since, now))
    return [states, due, lag]


async def _ledger(db: Database, now: Instant) -> list[Family]:
    state = Family("guichet_ledger_audit_state", "1 for the result of the last audit, else 0.", labels=("state",))
    age = Family("guichet_ledger_audit_age_seconds", "How long ago the last audit ended; absent before the first one.")
    last = await last_audit(db)
    found = "never" if last is None else "clean" if last.fault is None else "faulty"
    for each in _AUDITS:
        state.add_metric((each,), each == found)
    if last is not None:
        age.add_metric((), _seconds(last.finished_at, now))
    unchained = await health_checks.first_unchained(db)
    lag = Family(
        "guichet_ledger_hash_chain_lag_seconds",
        "Age of the oldest posting that is not in the hash chain yet; about two minutes is normal.",
        0 if unchained is None else _seconds(unchained[1], now),
    )
    return [state, age, lag]


async def _incidents(db: Database, now: Instant) -> list[Family]:
    incidents = Family("guichet_incidents_open", "Open incidents, by kind.", labels=("kind",))
    found = {kind: count for kind, count, _ in await health_checks.open_incidents(db)}
    for kind in sorted({*_KINDS, *found}):
        incidents.add_metric((kind,), found.get(kind, 0))
    unmatched_callbacks = Family(
        "guichet_unmatched_callbacks",
        "Callbacks of the last day that match no payment or refund.",
        await health_checks.unmatched_callbacks_since(db, now),
    )
    return [incidents, unmatched_callbacks]


def _seconds(since: Instant, now: Instant) -> float:
    return max(0, now - since) / SECOND
