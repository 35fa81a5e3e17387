"""The composition root: builds everything that a process needs, once, from the settings.

Modules that few processes need are imported inside functions: most commands need nothing but a database, and a server
listens before it settles a payment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from guichet import tracing
from guichet.availability import AvailabilityReader
from guichet.clock import Clock, SystemClock
from guichet.context import AppContext, HandOver, SettlementBatches, WakeUps
from guichet.db import demonstration
from guichet.db.batching import Batching, Result
from guichet.db.engine import Database
from guichet.db.errors import DatabaseMissing, SchemaOutdated
from guichet.db.schema import check_schema
from guichet.db.sqlite.database import SqliteDatabase
from guichet.db.write_probe import WriteProbe
from guichet.domain.payments import Payment, Refund
from guichet.domain.records import Record
from guichet.http_client import HttpClient
from guichet.merchants.catalogue import Catalogues
from guichet.merchants.catalogue_file import load_catalogue
from guichet.merchants.provider_merchants import ProviderMerchants
from guichet.merchants.request_log import RequestLog
from guichet.merchants.vault import Vault
from guichet.payments.initiation import finish_slow_initiations
from guichet.provider_accounts import USER_AGENT
from guichet.providers.base import Provider
from guichet.providers.providers_file import NO_PROVIDERS, ProvidersConfig
from guichet.providers.registry import Registry
from guichet.settings import Settings, with_development_key

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from guichet.db.postgres.database import PostgresDatabase
    from guichet.worker.worker import Worker

#: What `Service.worker` imports.
WORKER_MODULES: Final = ("guichet.worker.worker", "guichet.server.doctor.service_checks")
#: On SQLite each holds the event loop for about fifty microseconds.
_SETTLEMENTS_PER_TRANSACTION: Final = 32
#: Seconds for one statement of what watches the service.
_MONITORING_TIMEOUT: Final = 8.0


class Service(Record, frozen=True):
    """All that a process holds."""

    ctx: AppContext
    http_client: HttpClient

    def worker(self) -> Worker:
        from guichet.server.doctor.service_checks import keep_checks
        from guichet.worker.timed_loops import ServiceChecks
        from guichet.worker.worker import Worker

        return Worker(self.ctx, self.http_client, ServiceChecks(self.ctx, keep_checks))


def database(settings: Settings) -> Database:
    if settings.embedded:
        return SqliteDatabase(settings.sqlite_path)
    from guichet.db.postgres.database import PostgresDatabase

    return PostgresDatabase(
        settings.database_url,
        bouncer=settings.pgbouncer,
        listen_url=settings.listen_url,
        timelines_file=settings.timelines_file,
    )


def monitoring_database(settings: Settings) -> PostgresDatabase | None:
    """See `AppContext.monitoring_db`. Past PgBouncer, whose connections may all wait too, if an address is known."""
    if settings.embedded:
        return None
    from guichet.db.postgres.database import PostgresDatabase

    direct = settings.direct
    return PostgresDatabase(
        direct.database_url,
        bouncer=direct.pgbouncer,
        statement_timeout=_MONITORING_TIMEOUT,
        read_connections=2,
        write_connections=1,
        timelines_file=settings.timelines_file,
    )


async def ensure_schema(settings: Settings, *, create: bool = False) -> None:
    """Raises what `check_schema` raises, but brings an embedded database up to date itself: on PostgreSQL the staff
    decide when to migrate.

    `create`: also creates an embedded database that is not there, in the development profile only. In production a
    missing database is an environment that was not loaded.
    """
    if await needs_upgrade(settings, create=create):
        from guichet.db.migrate import upgrade

        await upgrade(settings)


async def needs_upgrade(settings: Settings, *, create: bool = False) -> bool:
    """Whether `ensure_schema` would change something. Raises what that raises, and changes nothing itself."""
    try:
        await check_schema(settings)
    except DatabaseMissing:
        if not (create and settings.embedded and settings.development):
            raise
        return True
    except SchemaOutdated:
        if not settings.embedded:
            raise
        return True
    return False


@asynccontextmanager
async def service(
    settings: Settings,
    clock: Clock | None = None,
    accounts: Mapping[str, Provider] | None = None,
    routes: Mapping[str, Sequence[str]] | None = None,
    providers: ProvidersConfig = NO_PROVIDERS,
    db: Database | None = None,
    gathers: float = 0.0,
) -> AsyncIterator[Service]:
    """Opens everything, and closes it when the block ends. The schema must be up to date (`ensure_schema`).

    `providers`: what the providers' file says. Tests give `accounts` (providers by account) and `routes`
    instead, with providers of their own. `db`: a database that is not open yet; by default, that of the settings.
    `gathers`: seconds in which outcomes are gathered that are applied together, where nobody waits for them.
    """
    settings = with_development_key(settings)
    clock = clock or SystemClock()
    db = db or database(settings)
    await db.open()
    http_client = HttpClient(
        allow=settings.egress_allow,
        ca_file=settings.egress_ca_file,
        loopback=settings.development,
        user_agent=USER_AGENT,
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(db.close)
        stack.push_async_callback(http_client.aclose)
        if not settings.development:
            await demonstration.refuse_in_production(db)
        stack.enter_context(tracing.exporting(settings))
        if (monitoring_db := monitoring_database(settings)) is not None:
            await monitoring_db.open(connect=False)
            stack.push_async_callback(monitoring_db.close)
        wakeups = WakeUps()
        hand_over = HandOver(wakeups.deliveries)
        ctx = AppContext(
            settings=settings,
            db=db,
            clock=clock,
            vault=Vault(settings.secret_keys),
            http_client=http_client,
            registry=Registry(clock, accounts, routes or {}) if accounts else providers.registry(clock, http_client),
            providers=providers,
            catalogues=Catalogues(db, clock, load_catalogue(settings.catalogue_file)),
            provider_merchants=ProviderMerchants(db, clock),
            availability=AvailabilityReader(db, clock),
            settlements=settlement_batches(db, settings, hand_over, gathers),
            request_log=RequestLog(clock),
            monitoring_db=monitoring_db,
            write_probe=WriteProbe(
                db, clock, settings.sqlite_path.parent if settings.embedded else None, monitoring_db
            ),
            shared_counters=await stack.enter_async_context(_shared_counters(settings.redis_url)),
            wakeups=wakeups,
            hand_over=hand_over,
        )
        stack.push_async_callback(_end_tasks, ctx)
        yield Service(ctx, http_client)


def settlement_batches(
    db: Database, settings: Settings, hand_over: HandOver, gathers: float = 0.0
) -> SettlementBatches:
    """Settlements that arrive together are written together."""

    def write_payments() -> partial[Coroutine[Any, Any, Sequence[Result[Payment]]]]:
        from guichet.payments.settlement import settle_payments
        from guichet.refunds.automatic import after_link_payments

        return partial(settle_payments, db, hand_over, partial(after_link_payments, f"{settings.public_url}/pay"))

    def write_refunds() -> partial[Coroutine[Any, Any, Sequence[Result[Refund]]]]:
        from guichet.refunds.settlement import settle_refunds

        return partial(settle_refunds, db, hand_over)

    return SettlementBatches(
        Batching.written_by(write_payments, _SETTLEMENTS_PER_TRANSACTION, gathers),
        Batching.written_by(write_refunds, _SETTLEMENTS_PER_TRANSACTION, gathers),
    )


@asynccontextmanager
async def _shared_counters(redis_url: str | None) -> AsyncIterator[Redis | None]:
    if redis_url is None:
        yield None
        return
    from guichet.server.redis_windows import connected

    async with connected(redis_url) as redis:
        yield redis


async def _end_tasks(ctx: AppContext) -> None:
    """Ends calls to providers that still run: the leases of their rows run out, and the providers are asked again."""
    await finish_slow_initiations(ctx, grace=0)
    tasks = [*ctx.running_polls.values(), *ctx.awaited_polls, *ctx.ledger_audits]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await ctx.write_probe.close()
