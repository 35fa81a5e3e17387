"""The composition root: builds everything that a process needs, once, from the settings.

Modules that only a server needs are imported inside functions: most commands need nothing but a database.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from guichet import __version__, tracing
from guichet.availability import AvailabilityReader
from guichet.back_office.merchants import create_merchant as create_merchant  # noqa: PLC0414 - for commands and tests
from guichet.clock import Clock, SystemClock
from guichet.context import AppContext, HandOver, SettlementBatches, WakeUps
from guichet.db import demonstration
from guichet.db.batching import Batching
from guichet.db.engine import Database
from guichet.db.errors import DatabaseMissing, SchemaOutdated
from guichet.db.schema import check_schema
from guichet.db.sqlite.database import SqliteDatabase
from guichet.db.write_probe import WriteProbe
from guichet.domain.records import Record
from guichet.http_client import HttpClient
from guichet.merchants.catalogue import Catalogues
from guichet.merchants.catalogue_file import load_catalogue
from guichet.merchants.provider_merchants import ProviderMerchants
from guichet.merchants.request_log import RequestLog
from guichet.merchants.vault import Vault
from guichet.payments.initiation import finish_slow_initiations
from guichet.providers.base import Provider
from guichet.providers.providers_file import (
    NO_PROVIDERS,
    ProvidersConfig,
    first_real_account,
    read_providers_file,
)
from guichet.providers.registry import Registry
from guichet.refunds.automatic import settle_payments
from guichet.refunds.settlement import settle_refunds
from guichet.settings import Settings, SettingsError, with_development_key

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from starlette.applications import Starlette
    from starlette.types import ASGIApp

    from guichet.accounts.sign_in import WithoutPassword
    from guichet.db.postgres.database import PostgresDatabase
    from guichet.server.health import Alive
    from guichet.server.lazy import LazyApplication
    from guichet.server.rate_limit import RateLimiter
    from guichet.worker.worker import Worker

USER_AGENT: Final = f"Guichet/{__version__}"
#: In the data folder: what the simulated providers know.
SIMULATOR_STATE: Final = "simulator.db"
#: What `Service.worker` imports.
WORKER_MODULES: Final = (
    "guichet.worker.worker",
    "guichet.worker.service_checks_loop",
    "guichet.server.doctor.service_checks",
)
#: Seconds for one statement of what watches the service.
_MONITORING_TIMEOUT: Final = 8.0
#: On SQLite each holds the event loop for about fifty microseconds.
_SETTLEMENTS_PER_TRANSACTION: Final = 32


class Service(Record, frozen=True):
    """All that a process holds."""

    ctx: AppContext
    http_client: HttpClient

    def worker(self) -> Worker:
        from guichet.server.doctor.service_checks import keep_checks
        from guichet.worker.service_checks_loop import ServiceChecks
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
) -> AsyncIterator[Service]:
    """Opens everything, and closes it when the block ends. The schema must be up to date (`ensure_schema`).

    `providers`: what the providers' file says. Tests give `accounts` (providers by account) and `routes`
    instead, with providers of their own. `db`: a database that is not open yet; by default, that of the settings.
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
            settlements=settlement_batches(db, settings, hand_over),
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


def settlement_batches(db: Database, settings: Settings, hand_over: HandOver) -> SettlementBatches:
    pages_url = f"{settings.public_url}/pay"
    return SettlementBatches(
        Batching(partial(settle_payments, db, pages_url, hand_over=hand_over), _SETTLEMENTS_PER_TRANSACTION),
        Batching(partial(settle_refunds, db, hand_over), _SETTLEMENTS_PER_TRANSACTION),
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


def live_providers(settings: Settings) -> ProvidersConfig:
    """What the providers' file says. Without a file: the simulator in development, no provider in production."""
    codes = {mode.operator for mode in load_catalogue(settings.catalogue_file).modes}
    if settings.providers_file is not None:
        providers = read_providers_file(settings.providers_file, os.environ, codes)
    elif settings.development:
        with resources.as_file(resources.files("guichet.data") / "simulated_providers.toml") as path:
            providers = read_providers_file(path, os.environ, codes, {"simulator": settings.public_url + "/simulator"})
    else:
        providers = NO_PROVIDERS
    if providers.simulated and not (settings.development or settings.allow_simulator):
        raise SettingsError(
            f"GUICHET_PROVIDERS_FILE leads to the simulator ({providers.simulated[0]}): "
            "the production profile refuses it unless GUICHET_ALLOW_SIMULATOR is yes."
        )
    if not settings.development:
        providers.refuse_sandboxes()
    return providers


async def usable_providers(settings: Settings) -> ProvidersConfig:
    """What `live_providers` returns, once every account could be built, as a server does; none is called."""
    providers = live_providers(settings)
    async with provider_registry(settings, providers):
        return providers


@asynccontextmanager
async def provider_registry(settings: Settings, providers: ProvidersConfig) -> AsyncIterator[Registry]:
    """The accounts, ready to be called, without a database. Raises ProvidersFileError when the settings of one cannot
    work."""
    http_client = HttpClient(ca_file=settings.egress_ca_file, loopback=settings.development, user_agent=USER_AGENT)
    try:
        yield providers.registry(SystemClock(), http_client)
    finally:
        await http_client.aclose()


def refuse_real_providers(settings: Settings) -> None:
    """Raises SettingsError in development when the providers' file has an account with a real provider.

    Somebody forgot GUICHET_PROFILE then: the simulator, the demo merchant and loopback webhooks would be open beside
    real money.
    """
    if not settings.development or settings.providers_file is None:
        return
    real = first_real_account(settings.providers_file, os.environ)
    if real is not None:
        raise SettingsError(
            f"GUICHET_PROFILE is development, but [accounts.{real.name}] of GUICHET_PROVIDERS_FILE leads to a real "
            f"provider ({urlsplit(real.base_url).hostname}): set GUICHET_PROFILE=production, or use its sandbox or the "
            "simulator."
        )


def simulator(
    settings: Settings,
    clock: Clock,
    providers: ProvidersConfig,
    address: str | None = None,
    at_root: str | None = None,
) -> Starlette | None:
    """The simulated provider APIs; None where this profile must not serve them. Callbacks go to `public_url`.

    `address`: the simulator's own URL when it is served alone. `at_root`: the provider whose paths also stand at the
    root of the host; raises ValueError when there is no such provider.
    """
    return _create_simulator(settings, clock, providers, address, at_root) if _serves_simulator(settings) else None


def _serves_simulator(settings: Settings) -> bool:
    return settings.development or settings.allow_simulator


def _create_simulator(
    settings: Settings,
    clock: Clock,
    providers: ProvidersConfig,
    address: str | None = None,
    at_root: str | None = None,
) -> Starlette:
    from guichet_simulator.app import SECRETS, Dashboard, create_simulator

    dashboards = {
        name: Dashboard(callback_url=settings.callback_url(name), secret=SECRETS.get(name))
        for name in {account.provider for account in providers.accounts.values()}
    }
    state = settings.home / SIMULATOR_STATE
    public_url = address or f"{settings.public_url}/simulator"
    return create_simulator(state, public_url=public_url, clock=clock, callbacks=dashboards, at_root=at_root)


def mounted_simulator(settings: Settings, clock: Clock, providers: ProvidersConfig) -> LazyApplication | None:
    """The same, built at its first request and run until it is closed; `start` does so earlier."""
    from guichet.server.lazy import LazyApplication

    if not _serves_simulator(settings):
        return None
    return LazyApplication(partial(_create_simulator, settings, clock, providers))


def application(
    service: Service,
    worker: Alive | None,
    operators_simulator: ASGIApp | None = None,
    demo: WithoutPassword | None = None,
) -> ASGIApp:
    """The whole server: the API and its documentation, the hosted pages, the console, callbacks, and what a load
    balancer asks.

    `worker`: the one of this process, whose health `/readyz` shows; None when it runs elsewhere. `demo`: how the
    people of a demonstration sign in.
    """
    from starlette.middleware import Middleware
    from starlette.routing import BaseRoute, Mount, Route

    from guichet.api.app import ROOT, api_routes
    from guichet.api.callbacks import PREFIX, callback_routes
    from guichet.server import error_handler
    from guichet.server.browser_pages import BrowserPages
    from guichet.server.health import healthz, readyz
    from guichet.server.lazy import LazyApplication
    from guichet.server.rate_limit import RateLimiter, RateLimitMiddleware
    from guichet.server.rate_limits import CALLBACKS, api_limit
    from guichet.server.request_context import ClientAddresses, RequestContext

    ctx = service.ctx
    limiter = RateLimiter(ctx.shared_counters, ctx.clock)
    console = LazyApplication(partial(_console, ctx, limiter, demo))
    routes: list[BaseRoute] = [
        *api_routes(ctx),
        Route("/healthz", healthz),
        Route("/readyz", readyz(ctx.write_probe, worker)),
        *callback_routes(ctx),
        *LazyApplication(partial(_docs, ctx)).at("/openapi.json", "/docs"),
        *LazyApplication(partial(_checkout, ctx, limiter)).at("/pay", "/checkout"),
        *console.at("/console", "/admin"),
    ]
    if ctx.settings.metrics_token is not None and ctx.settings.metrics_port is None:
        from guichet.server.metrics_endpoint import routes as metrics_routes

        routes += metrics_routes(ctx)
    if operators_simulator is not None:
        routes.append(Mount("/simulator", operators_simulator))
    limits = {f"{ROOT}/": api_limit(ctx.settings), f"{PREFIX}/": CALLBACKS}
    rate_limit = Middleware(RateLimitMiddleware, limiter, limits, f"{ROOT}/", ClientAddresses.of(ctx.settings))
    pages = BrowserPages(console, ctx.settings.public_url, (ROOT, PREFIX))
    routed = error_handler.application(routes, [rate_limit], pages.handle_error)
    app: ASGIApp = RequestContext(routed, ctx.request_log, ctx.settings.public_url)
    if tracer := tracing.tracer():
        from guichet.server.request_tracing import TracedRequests

        return TracedRequests(app, tracer)
    return app


def _docs(ctx: AppContext) -> ASGIApp:
    from guichet.api.docs import docs

    return docs(ctx.settings)


def _checkout(ctx: AppContext, limiter: RateLimiter) -> ASGIApp:
    from guichet.checkout.app import checkout

    return checkout(ctx, limiter)


def _console(ctx: AppContext, limiter: RateLimiter, demo: WithoutPassword | None) -> ASGIApp:
    from guichet.accounts.passwords import Passwords
    from guichet.console.app import console_application

    return console_application(ctx, limiter, Passwords(), demo)
