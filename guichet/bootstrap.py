"""The composition root: builds everything once, from the settings.

What only a server needs is imported where it is built: most commands need a database and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Final

from guichet import __version__, tracing
from guichet.clock import Clock, SystemClock
from guichet.context import AppContext
from guichet.db import migrate
from guichet.db.batching import Batching
from guichet.db.engine import Database
from guichet.db.sqlite import SqliteDatabase
from guichet.domain.merchants import ENVS, Merchant, new_key, new_webhook_secret
from guichet.http_client import HttpClient
from guichet.merchants import repository as merchants
from guichet.merchants.catalogue import Catalogues
from guichet.merchants.catalogue_file import load_catalogue
from guichet.merchants.vault import Vault
from guichet.payments.settlement_batch import AT_ONCE, settle_all
from guichet.providers.base import Provider
from guichet.providers.providers_file import NO_PROVIDERS, ProvidersConfig, read_providers_file
from guichet.providers.registry import Registry
from guichet.server.rate_limit import shared_counters
from guichet.settings import Settings, SettingsError, with_development_key

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp

    from guichet.worker import Worker

USER_AGENT: Final = f"Guichet/{__version__}"


@dataclass(frozen=True, slots=True)
class Service:
    """One process's everything."""

    ctx: AppContext
    http_client: HttpClient

    def worker(self) -> Worker:
        from guichet.worker import Worker

        return Worker(self.ctx, self.http_client)


class SchemaOutdated(SettingsError):
    """The database's schema is not the one this code needs."""


def database(settings: Settings) -> Database:
    if settings.embedded:
        return SqliteDatabase(settings.sqlite_path)
    from guichet.db.postgres import PostgresDatabase

    return PostgresDatabase(settings.database_url, bouncer=settings.pgbouncer, listen_url=settings.listen_url)


async def ensure_schema(settings: Settings) -> None:
    """The embedded default migrates itself; a PostgreSQL schema is migrated by a person who decides when."""
    if settings.embedded:
        await migrate.upgrade(settings)
        return
    revision = await migrate.current(settings)
    if revision != migrate.head():
        raise SchemaOutdated("The database schema is not up to date: run `guichet migrate` first.")


@asynccontextmanager
async def service(
    settings: Settings,
    clock: Clock | None = None,
    connections: Mapping[str, Provider] | None = None,
    routes: Mapping[str, Sequence[str]] | None = None,
    operators: ProvidersConfig = NO_PROVIDERS,
) -> AsyncIterator[Service]:
    """Everything, opened and closed. The schema must be up to date (`ensure_schema`).

    `operators` are those of the operators' file; `connections` and `routes` stand in for them where a test brings
    connectors of its own.
    """
    settings = with_development_key(settings)
    clock = clock or SystemClock()
    db = database(settings)
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
        stack.enter_context(tracing.exporting(settings))
        ctx = AppContext(
            settings=settings,
            db=db,
            clock=clock,
            vault=Vault(settings.secret_keys),
            settlements=Batching(partial(settle_all, db), AT_ONCE),
            registry=Registry(clock, connections, routes or {})
            if connections
            else operators.registry(clock, http_client),
            catalogues=Catalogues(db, clock, load_catalogue(settings.catalogue_file)),
            shared_counters=await stack.enter_async_context(shared_counters(settings.redis_url)),
        )
        yield Service(ctx, http_client)


def live_providers(settings: Settings) -> ProvidersConfig:
    """The operators' file; without one the simulator in development, nobody in production."""
    codes = {mode.operator for mode in load_catalogue(settings.catalogue_file).modes}
    if settings.providers_file is not None:
        operators = read_providers_file(settings.providers_file, os.environ, codes)
    elif settings.development:
        with resources.as_file(resources.files("guichet.data") / "simulated_providers.toml") as path:
            operators = read_providers_file(path, os.environ, codes, {"simulator": settings.public_url + "/simulator"})
    else:
        operators = NO_PROVIDERS
    if operators.simulated and not (settings.development or settings.allow_simulator):
        raise SettingsError(
            f"GUICHET_PROVIDERS_FILE leads to the simulator ({operators.simulated[0]}): "
            "the production profile refuses it unless GUICHET_ALLOW_SIMULATOR is yes."
        )
    return operators


def simulator(
    settings: Settings, clock: Clock, operators: ProvidersConfig, address: str | None = None
) -> Starlette | None:
    """The operators' simulator, where this profile may serve it; it notifies the server at `public_url`.

    `address`: where it is found itself, when it is served alone.
    """
    if not (settings.development or settings.allow_simulator):
        return None
    from guichet_simulator.app import SECRETS, Dashboard, create_simulator

    dashboards = {
        family: Dashboard(callback_url=f"{settings.public_url}/providers/{family}/callback", secret=SECRETS.get(family))
        for family in {each.provider for each in operators.accounts.values()}
    }
    state = settings.home / "simulator.db"
    return create_simulator(
        state, public_url=address or f"{settings.public_url}/simulator", clock=clock, callbacks=dashboards
    )


def awake(operators_simulator: Starlette | None) -> AbstractAsyncContextManager[object]:
    """Lets time pass in a mounted simulator: what came due while it was down is told before anybody asks."""
    return operators_simulator.router.lifespan_context(operators_simulator) if operators_simulator else nullcontext()


def application(service: Service, worker: Worker | None, operators_simulator: ASGIApp | None = None) -> ASGIApp:
    """The whole server: the API at /v1 and its documentation, the hosted pages, and what a load balancer asks."""
    from starlette.routing import BaseRoute, Mount, Route, Router

    from guichet.api.app import Api
    from guichet.api.callbacks import routes as callback_routes
    from guichet.api.docs import routes as doc_routes
    from guichet.checkout.app import routes as page_routes
    from guichet.server.health import healthz, readyz
    from guichet.server.json_response import no_such_address
    from guichet.server.metrics_endpoint import routes_behind_token
    from guichet.server.request_context import RequestContext

    ctx = service.ctx
    routes: list[BaseRoute] = [
        Route("/healthz", healthz),
        Route("/readyz", readyz(ctx.db, worker)),
        *routes_behind_token(ctx),
        *doc_routes(ctx.settings),
        *callback_routes(ctx),
        *page_routes(ctx),
    ]
    if operators_simulator is not None:
        routes.append(Mount("/simulator", operators_simulator))
    app = RequestContext(Api(ctx, Router(routes, redirect_slashes=False, default=no_such_address)))
    if spans := tracing.spans():
        from guichet.server.request_tracing import TracedRequests

        return TracedRequests(app, spans)
    return app


async def create_merchant(
    ctx: AppContext, name: str, status: str = "active", currency: str = "XOF", keys: Mapping[str, str] | None = None
) -> tuple[Merchant, dict[str, str]]:
    """A merchant with a key for each environment (new unless given; shown here and never again), endpoints, wallets."""
    now = ctx.clock.now()
    secrets = {env: ctx.vault.encrypt(new_webhook_secret()) for env in ENVS}
    keys = dict(keys) if keys else {env: new_key(env) for env in ENVS}
    async with ctx.db.transaction() as tx:
        merchant = await merchants.create(tx, name, status, currency, secrets, now)
        for env, key in keys.items():
            await merchants.add_key(tx, merchant.id, env, key, None, now)
    return merchant, keys
