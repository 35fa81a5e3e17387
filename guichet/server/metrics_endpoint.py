"""`GET /metrics`: what this process counted and what the database holds, in Prometheus' text format."""

import asyncio
import secrets
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from guichet.context import AppContext
from guichet.metrics import REGISTRY
from guichet.server.db_metrics import Figures

PATH: Final = "/metrics"


def routes(ctx: AppContext) -> list[Route]:
    """The one route; with `GUICHET_METRICS_TOKEN` it asks for it as a bearer token."""
    expected = ctx.settings.metrics_token
    figures = Figures(ctx.db, ctx.clock)
    of_the_database = CollectorRegistry()
    of_the_database.register(figures)

    async def metrics(request: Request) -> Response:
        if expected is not None and not _authorized(request, expected):
            return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
        await figures.refresh()
        # Thousands of lines: written beside the event loop.
        counted, read = await asyncio.to_thread(lambda: (generate_latest(REGISTRY), generate_latest(of_the_database)))
        return Response(counted + read, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    return [Route(PATH, metrics, methods=["GET"])]


def routes_behind_token(ctx: AppContext) -> list[Route]:
    """On the service's own port: only with a token, and only when the metrics have no port of their own."""
    settings = ctx.settings
    return [] if settings.metrics_token is None or settings.metrics_port is not None else routes(ctx)


def _authorized(request: Request, expected: str) -> bool:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and secrets.compare_digest(given.strip().encode(), expected.encode())
