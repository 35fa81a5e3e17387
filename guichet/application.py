"""The HTTP application of a server. What a first payment does not need is imported with the first request that does."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount, Route

from guichet import tracing
from guichet.api.app import ROOT, api_routes
from guichet.api.callbacks import PREFIX, callback_routes
from guichet.bootstrap import Service
from guichet.context import AppContext
from guichet.server import error_handler
from guichet.server.browser_pages import BrowserPages
from guichet.server.health import healthz, readyz
from guichet.server.lazy import LazyApplication
from guichet.server.rate_limit import RateLimiter, RateLimitMiddleware
from guichet.server.rate_limits import CALLBACKS, api_limit
from guichet.server.request_context import ClientAddresses, RequestContext

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from guichet.accounts.sign_in import WithoutPassword
    from guichet.server.health import Alive

#: What requests other than a first payment import.
IMPORTED_LATER: Final = (
    "guichet.api.endpoint_table",
    "guichet.payments.polling",
    "guichet.provider_callbacks.receive",
    "guichet.refunds.automatic",
)


def application(
    service: Service,
    worker: Alive | None,
    operators_simulator: ASGIApp | None = None,
    demo: WithoutPassword | None = None,
) -> ASGIApp:
    """The API and its documentation, the hosted pages, the console, callbacks, and what a load balancer asks.

    `worker`: the one of this process, whose health `/readyz` shows; None when it runs elsewhere. `demo`: how the
    people of a demonstration sign in.
    """
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
